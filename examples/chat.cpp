// chat.cpp: two turns of a conversation through the C++ API, and the log-probability of a text's
// last token. c++ -std=c++23 chat.cpp $(pkg-config --cflags --libs cyb) && ./a.out MODEL
#include <cyb/cyb.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

int report(const cyb::Error& error) {
  std::fprintf(stderr, "error %s: %s\n", std::string(error.code()).c_str(),
               std::string(error.text()).c_str());
  return error.exit_code();
}

/// log p(last id | the ids before it), from the logits of the position before.
double last_logprob(const cyb::Model& model, const std::vector<std::int32_t>& ids,
                    const std::vector<float>& logits) {
  const float* row = logits.data() + (ids.size() - 2) * model.vocab_size();
  double sum = 0;
  for (std::size_t i = 0; i < model.vocab_size(); ++i) sum += std::exp(static_cast<double>(row[i]));
  return row[ids.back()] - std::log(sum);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL\n", argv[0]);
    return 1;
  }
  const auto model = cyb::Model::open(argv[1]);
  if (!model) return report(model.error());
  auto session = cyb::Session::create(*model);
  if (!session) return report(session.error());

  std::vector<cyb::Message> messages;
  cyb::AnswerOptions options{.max_tokens = 48, .temperature = 0};
  options.on_text = [](std::string_view text) {
    std::printf("%.*s", static_cast<int>(text.size()), text.data());
    return std::fflush(stdout) != 0;
  };
  for (const char* question : {"What is the capital city of Japan?", "What is gravity?"}) {
    std::printf("> %s\n", question);
    messages.push_back({"user", question});
    const auto answer = session->chat(messages, options);
    if (!answer) return report(answer.error());
    std::printf("\n");
    messages.push_back({"assistant", std::string(answer->text())});
  }

  const auto ids = model->encode("What goes up must come down");
  if (!ids) return report(ids.error());
  const auto logits = model->logits(*ids);
  if (!logits) return report(logits.error());
  std::printf("log p(last token) = %.4f\n", last_logprob(*model, *ids, *logits));
}
