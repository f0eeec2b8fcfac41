// serve as a process: it answers, finishes what runs and ends; replay makes its answers again.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "e2e/program.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// Posts each line of `requests`; prints the answers, one a line.
constexpr const char* kClient = R"(
import http.client, sys
host = open(sys.argv[1]).read().split("//")[1].strip()
for line in open(sys.argv[2]):
    connection = http.client.HTTPConnection(host, timeout=100)
    connection.request("POST", "/v1/chat/completions", line.strip(), {"Content-Type": "application/json"})
    print(connection.getresponse().read().decode())
)";

class Serve : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_text_checkpoint(source_));
    const ProcessResult result = program_.run({"import", source_, "-o", model_});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(program_.file(name), std::ios::binary) << text;
  }
  /// Answers to the requests from one server that is stopped afterwards.
  std::vector<Json> serve(const std::vector<Json>& requests) const {
    std::string lines;
    for (const Json& request : requests) lines += request.dump() + "\n";
    write("requests", lines);
    write("client.py", kClient);
    const std::string script =
        "cd \"$2\"; \"$0\" -q serve \"$1\" --port 0 --threads 1 > address & P=$!; "
        "until [ -s address ]; do sleep 0.02; kill -0 $P || exit 99; done; "
        "python3 client.py address requests; kill -TERM $P; wait $P";
    ProcessOptions options;
    options.environment = program_.environment();
    const ProcessResult result = run_process(
        {"bash", "-c", script, built_program("cyb-llm"), model_, program_.file("")}, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<Json> out;
    std::istringstream text(result.out);
    for (std::string line; std::getline(text, line);) out.push_back(Json::parse(line));
    EXPECT_EQ(out.size(), requests.size()) << result.out << result.err;
    return out;
  }
  ProcessResult replay(const Json& saved, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"replay", "-", model_});
    ProcessOptions options;
    options.input = saved.dump();
    return program_.run(more, options);
  }

  Program program_;
  std::string source_ = program_.file("source"), model_ = program_.file("m.model");
};

TEST_F(Serve, AnswersComeAgainBitForBit) {
  const Json messages = {{{"role", "user"}, {"content", "Tell me."}}};
  const std::vector<Json> requests = {
      {{"messages", messages},
       {"max_tokens", 12},
       {"temperature", 1.2},
       {"n", 3},
       {"logprobs", true},
       {"top_logprobs", 3}},
      {{"messages", messages}, {"max_tokens", 9}, {"temperature", 0}}};
  const std::vector<Json> answers = serve(requests);
  ASSERT_EQ(answers.size(), 2u);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Json saved = {{"request", requests[i]}, {"response", answers[i]}};
    ProcessResult result = replay(saved);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.out, "the same answer, bit for bit\n");
    result = replay(saved, {"--threads", "2", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_TRUE(Program::json(result)["same"]);
    EXPECT_TRUE(Program::json(result)["difference"].is_null());
  }
  Json saved = {{"request", requests[0]}, {"response", answers[0]}};
  Json& number = saved["response"]["choices"][1]["logprobs"]["content"][2]["logprob"];
  number = std::nextafter(number.get<double>(), 0.0);
  const ProcessResult result = replay(saved, {"--json"});
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_EQ(Program::json(result)["difference"]["at"], "/choices/1/logprobs/content/2/logprob");
}

TEST_F(Serve, WhatIsNoSavedAnswerIsRefused) {
  const auto refused = [&](const Json& saved, const std::string& words) {
    const ProcessResult result = replay(saved);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  const Json recipe = {{"model_id", "blake3:00"}, {"seed", 1}};
  refused(Json::array(), "is no JSON object");
  refused({{"response", Json::object()}}, "has no `request`");
  refused({{"request", Json::object()}}, "has no `response`");
  refused({{"request", Json::object()}, {"response", Json::object()}}, "has no recipe");
  refused({{"request", Json::object()}, {"response", {{"cyb_llm", recipe}}}, {"path", "/x"}},
          "replay of the route \"/x\"");
  refused({{"request", Json::object()}, {"response", {{"cyb_llm", recipe}}}},
          "the answer is of the model blake3:00");
}

}  // namespace
}  // namespace cyb::test
