// logits: f32 [T, V] of given tokens, streamed into a .npy file.
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/memory_text.hpp"
#include "cli/model_flags.hpp"
#include "cli/output_file.hpp"
#include "cli/progress.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "runtime/logits.hpp"
#include "tensor/npy.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Example:
  cyb-llm logits MODEL --tokens 504,3575,282 -o logits.npy --exact
  python3 -c 'import numpy; print(numpy.load("logits.npy").argmax(-1))'
Row t holds the logits after the first t + 1 tokens. No token is added: a model that wants a begin-of-text token needs it in
the list.)";

class LogitsCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.text("--tokens", tokens_, "IDS",
                 "Token ids, required: 1,2,3 (@FILE: from a file, -: from standard input)");
    options.text("-o,--output", output_, "FILE",
                 "The .npy file to write, required: f32 [tokens, vocabulary]");
    options.flag("--force", force_, "Overwrite FILE where it exists");
    model_.declare_context(options);
    model_.declare_engine(options);
    model_.declare_verify(options);
    options.flag("--json", json_,
                 "One JSON object: {\"path\", \"shape\", \"backend\", \"run_path\", \"model_id\", "
                 "\"memory\"}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    if (tokens_.empty()) return fail(usage_error("--tokens is missing: --tokens 1,2,3"));
    if (output_.empty()) return fail(usage_error("-o is missing: -o logits.npy"));
    CYB_TRY(check_output_file(output_, force_));
    const std::stop_token stop = context.interrupts.begin();
    if (tokens_ == "-" || tokens_.starts_with('@')) {
      CYB_ASSIGN(tokens_, read_text(tokens_ == "-" ? tokens_ : tokens_.substr(1),
                                    context.interrupts.wake_fd()));
    }
    CYB_ASSIGN(const std::vector<std::int32_t> ids, parse_ids(tokens_));
    EngineOptions options = model_.engine_options();
    options.max_outputs = 32;
    CYB_ASSIGN(const std::shared_ptr<Engine> engine, model_.load(context, stop, options));
    CYB_TRY(check_context(*engine, ids.size(), "--tokens"));
    CYB_ASSIGN(AtomicFile file, AtomicFile::create(output_));
    const Shape shape{static_cast<std::int64_t>(ids.size()),
                      static_cast<std::int64_t>(engine->vocab_size())};
    CYB_ASSIGN(const std::string header, npy_header(DType::kF32, shape));
    CYB_TRY(file.write(header));
    Progress progress(context.output, "logits");
    const auto sink = [&](std::uint32_t first_row, std::span<const float> rows) -> Result<void> {
      progress.update(first_row, ids.size(), "");
      return file.write(std::as_bytes(rows));
    };
    CYB_TRY(all_logits(*engine, ids, sink, stop));
    CYB_TRY(file.commit());
    progress.clear();
    if (json_) {
      context.output.line(Json{{"path", json_text(output_)},
                               {"shape", {ids.size(), engine->vocab_size()}},
                               {"backend", std::string(engine->backend().name())},
                               {"run_path", std::string(path_name(engine->path()))},
                               {"model_id", engine->model_id()},
                               {"memory", memory_json(engine->memory())}}
                              .dump());
    } else {
      context.output.note(
          fmt::format("{}: f32 [{}, {}]", output_, ids.size(), engine->vocab_size()));
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  ModelFlags model_;
  std::string tokens_, output_;
  bool force_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_logits_command() {
  return std::make_unique<LogitsCommand>();
}

}  // namespace cyb::cli
