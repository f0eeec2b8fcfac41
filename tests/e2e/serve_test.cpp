// serve as a process: it answers, finishes what runs and ends; replay makes its answers again.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "e2e/program.hpp"
#include "support/text_adapter.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// Posts each line of `requests`; prints the answers, one a line, streams as JSON strings.
constexpr const char* kClient = R"(
import http.client, json, sys
host = open(sys.argv[1]).read().split("//")[1].strip()
for line in open(sys.argv[2]):
    connection = http.client.HTTPConnection(host, timeout=100)
    connection.request("POST", "/v1/chat/completions", line.strip(), {"Content-Type": "application/json"})
    text = connection.getresponse().read().decode()
    print(json.dumps(text) if text.startswith("data:") else text)
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
  std::vector<Json> serve(const std::vector<Json>& requests,
                          const std::vector<std::string>& more = {}) const {
    std::string lines;
    for (const Json& request : requests) lines += request.dump() + "\n";
    write("requests", lines);
    write("client.py", kClient);
    const std::string script =
        "cd \"$2\"; \"$0\" -q serve \"$1\" --port 0 --threads 1 \"${@:3}\" > address & P=$!; "
        "until [ -s address ]; do sleep 0.02; kill -0 $P || exit 99; done; "
        "python3 client.py address requests; kill -TERM $P; wait $P";
    ProcessOptions options;
    options.environment = program_.environment();
    std::vector<std::string> command = {
        "bash", "-c", script, built_program("cyb-llm"), model_, program_.file("")};
    command.insert(command.end(), more.begin(), more.end());
    const ProcessResult result = run_process(command, options);
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

TEST_F(Serve, StreamsAndLinesAreReplayedToo) {
  const Json messages = {{{"role", "user"}, {"content", "Tell me."}}};
  Json whole = {{"messages", messages}, {"max_tokens", 12}, {"n", 2}, {"temperature", 1.1}};
  Json stream = whole;
  whole["logprobs"] = stream["logprobs"] = stream["stream"] = true;
  Json with_usage = stream;
  with_usage["stream_options"] = {{"include_usage", true}};
  // What the server was told is in the recipe: replay needs no option for it.
  const std::vector<Json> answers =
      serve({whole, stream, with_usage}, {"--ctx", "64", "--kv", "f32", "--exact"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["cyb_llm"]["context_tokens"], 64);
  const std::string lines = Json{{"request", whole}, {"response", answers[0]}}.dump() + "\n\n" +
                            Json{{"request", stream}, {"stream", answers[1]}}.dump() + "\n" +
                            Json{{"request", with_usage}, {"stream", answers[2]}}.dump();
  write("all.jsonl", lines);
  ProcessResult result = program_.run({"replay", program_.file("all.jsonl"), model_});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* line : {":1: ", ":3: ", ":4: "}) {
    EXPECT_NE(result.out.find(line + std::string("the same answer, bit for bit\n")),
              std::string::npos)
        << result.out;
  }
  // One other letter in a stream is found.
  std::string text = answers[1];
  const std::size_t at = text.find("\"logprob\":-") + 11;
  text[at] = text[at] == '1' ? '2' : '1';
  result = replay({{"request", stream}, {"stream", text}}, {"--json"});
  EXPECT_EQ(result.exit_code, 6) << result.out << result.err;
  EXPECT_FALSE(Program::json(result)["same"]);
}

TEST_F(Serve, AReplayOfAnotherRequestIsRefused) {
  const Json request = {{"messages", {{{"role", "user"}, {"content", "Tell me."}}}},
                        {"max_tokens", 5},
                        {"temperature", 0.5}};
  const std::vector<Json> answers = serve({request});
  ASSERT_EQ(answers.size(), 1u);
  const auto refused = [&](const Json& saved, const std::string& words,
                           std::vector<std::string> more = {}) {
    more.emplace_back("--json");
    const ProcessResult result = replay(saved, more);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(Program::json(result)["error"]["code"], "R03") << result.out;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  const Json saved = {{"request", request}, {"response", answers[0]}};
  refused(saved, "numerics was", {"--exact"});
  refused(saved, "numerics was", {"--kv", "q8"});
  const std::pair<const char*, Json> changes[] = {
      {"max_tokens", 6}, {"stop", "x"}, {"n", 2}, {"regex", "a*"}};
  for (const auto& [name, value] : changes) {
    Json other = saved;
    other["request"][name] = value;
    refused(other, "it is not the request that was answered");
  }
  Json other = saved;
  other["request"]["temperature"] = 0.25;
  refused(other, "sampler was [{\"name\":\"temperature\",\"temperature\":0.5}], is [{");
  other = saved;
  other["response"]["cyb_llm"]["seed"] = answers[0]["cyb_llm"]["seed"].get<std::uint64_t>() ^ 1U;
  refused(other, "it is not the request that was answered");
  // What is only shown, and how it was sent, is no other request.
  other = saved;
  other["request"]["user"] = "somebody";
  other["request"]["model"] = "other";
  EXPECT_EQ(replay(other).exit_code, 0);
}

TEST_F(Serve, AdaptersAndModelsAreChosenByTheRequest) {
  const std::string adapter = program_.file("adapter");
  ASSERT_TRUE(write_text_adapter(adapter));
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"run", model_, "Tell me.", "--max-tokens", "9", "--temperature", "0", "--json"});
    const ProcessResult result = program_.run(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Program::json(result)["text"].get<std::string>();
  };
  std::vector<Json> requests;
  for (const char* model : {"m", "m:pirate", "other"}) {
    requests.push_back({{"model", model},
                        {"messages", {{{"role", "user"}, {"content", "Tell me."}}}},
                        {"max_tokens", 9},
                        {"temperature", 0}});
  }
  const std::vector<Json> answers =
      serve(requests, {"other=" + source_, "--lora", "pirate=" + adapter, "--memory", "1G",
                       "--keep-alive", "5m", "--pin", "m"});
  ASSERT_EQ(answers.size(), 3u);
  const auto text = [&](std::size_t i) {
    return answers[i]["choices"][0]["message"]["content"].get<std::string>();
  };
  const std::string plain = run({}), with = run({"--lora", adapter});
  EXPECT_NE(plain, with);
  EXPECT_EQ(text(0), plain);
  EXPECT_EQ(text(1), with);
  EXPECT_EQ(text(2), plain);
}

TEST_F(Serve, WhatServeIsToldIsChecked) {
  const auto refused = [&](std::vector<std::string> more, const std::string& words) {
    more.insert(more.begin(), {"serve", model_});
    const ProcessResult result = program_.run(more);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  refused({"m=" + source_}, "two models have the name");
  refused({"a/b c=" + source_}, "a/b c");
  refused({"--pin", "x"}, "there is no model \"x\"");
  refused({"--memory", "much"}, "is no number of bytes");
  refused({"--memory", "1K"}, "all models together may take 1024");
  refused({"--keep-alive", "soon"}, "is no time");
  refused({"--lora", "x:y=z"}, "there is no model \"x\"");
  refused({"--lora", "latest=z"}, "latest is a tag");
}

TEST_F(Serve, WhatIsNoSavedAnswerIsRefused) {
  const auto refused = [&](const Json& saved, const std::string& words) {
    const ProcessResult result = replay(saved);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  const auto refused_stream = [&](const std::string& stream, const std::string& words) {
    refused({{"request", Json::object()}, {"stream", stream}}, words);
  };
  refused_stream("", "has no [DONE]");
  refused_stream("data: {\"choices\":[]}\n\n", "has no [DONE]");
  refused_stream("data: {\n\ndata: [DONE]\n\n", "is no JSON object");
  refused_stream("data: {\"error\":{\"message\":\"x\"}}\n\n", "ended with an error");
  refused_stream("data: {\"choices\":[{\"index\":16}]}\n\ndata: [DONE]", "no `index`");
  refused_stream(
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":3}]}}]}\n\n",
      "a tool call has no `index`");
  refused_stream(": a comment\n\ndata: [DONE]\n\n", "has no recipe");
  const Json recipe = {{"model_id", "blake3:00"}, {"seed", 1}};
  refused(Json::array(), "is no JSON object");
  refused({{"response", Json::object()}}, "has no `request`");
  refused({{"request", Json::object()}}, "has no `response`");
  refused({{"request", Json::object()}, {"response", Json::object()}}, "has no recipe");
  refused({{"request", Json::object()}, {"response", {{"cyb_llm", recipe}}}, {"path", "/x"}},
          "replay of the route \"/x\"");
  refused({{"request", Json::object()}, {"response", {{"cyb_llm", recipe}}}},
          "the answer is of the model blake3:00");
  for (const std::string& text :
       {std::string("{}\n{"), std::string(100000, '['), std::string("\xff"),
        std::string("{\"a\":") + std::string(200, '[')}) {
    ProcessOptions options;
    options.input = text;
    const ProcessResult result = program_.run({"replay", "-", model_, "--json"}, options);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(Program::json(result)["error"]["code"], "R01") << result.out;
  }
}

}  // namespace
}  // namespace cyb::test
