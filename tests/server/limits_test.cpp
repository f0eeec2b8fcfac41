// Grammars and schemas that would cost too much, and models that would not stop, over HTTP.
#include <gtest/gtest.h>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// Prefers `favourite` wherever a grammar lets it, then lower ids.
Script prefers(std::int32_t favourite) {
  Script script;
  script.row = [favourite](std::span<const std::int32_t>, std::span<float> logits) {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = -0.01f * static_cast<float>(i);
    logits[static_cast<std::size_t>(favourite)] = 20.0f;
  };
  return script;
}

Json schema_format(const Json& schema) {
  return {{"type", "json_schema"}, {"json_schema", {{"name", "s"}, {"schema", schema}}}};
}

// V15
TEST(ServerLimits, CostlyGrammarsAreRefusedOrRight) {
  const TestServer server(prefers('a'), test_model(true, 4096));
  const std::string deep(60000, '(');
  Json cycle = {{"$ref", "#/$defs/a"}};
  cycle["$defs"]["a"]["$ref"] = "#/$defs/a";
  const Json list = {{"type", "array"}, {"items", {{"type", "null"}}}};
  Json most = list, least = list;
  most["maxItems"] = 18446744073709551615ULL;
  least["minItems"] = 9223372036854775808ULL;
  const std::vector<Json> bodies = {
      {{"grammar", "root ::= " + deep}},
      {{"grammar", "root ::= " + deep + "\"a\"" + std::string(60000, ')')}},
      {{"grammar", "root ::= root"}},
      {{"grammar", "root ::= (\"a\"*)*"}},
      {{"response_format", schema_format(cycle)}},
      {{"response_format", schema_format(most)}},
      {{"response_format", schema_format(least)}},
  };
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    Json body = bodies[i];
    body["max_tokens"] = 8;
    const auto began = std::chrono::steady_clock::now();
    const Reply reply = server.chat(body);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    EXPECT_TRUE(reply.status == 400 || i == 3 || i == 5) << i << reply.body.substr(0, 300);
    EXPECT_LT(reply.body.size(), 2000u);
    EXPECT_LT(seconds.count(), 5) << i;  // 200 ms of processor time are the limit of a grammar
    EXPECT_EQ(server.chat({{"max_tokens", 1}}).status, 200);
  }
  const Json star = server.chat({{"grammar", "root ::= (\"a\"*)*"}, {"max_tokens", 5}}).json();
  EXPECT_EQ(star["choices"][0]["message"]["content"], "aaaaa");
  Json numbers = {{"type", "array"}, {"items", {{"type", "number"}}}};
  numbers["minItems"] = 10;
  numbers["maxItems"] = 1000;
  const TestServer closing(prefers(']'), test_model(true, 4096));
  const Json choice =
      closing.chat({{"response_format", schema_format(numbers)}}).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop") << choice;
  EXPECT_GE(Json::parse(choice["message"]["content"].get<std::string>()).size(), 10u);
}

// V17
TEST(ServerLimits, AModelThatWantsBlanksForEverEndsInValidJson) {
  for (const char blank : {' ', '\n', '\t'}) {
    const TestServer server(prefers(blank), test_model(true, 4096));
    const Json schema = Json::parse(
        R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
            "required": ["a", "b"], "additionalProperties": false})");
    const Reply reply = server.chat(
        {{"response_format", schema_format(schema)}, {"stream", true}, {"max_tokens", 400}});
    const std::string text = stream_texts(reply)[0];
    const Json answer = Json::parse(text, nullptr, false);
    const Json finish = Json::parse(reply.events().at(reply.events().size() - 2));
    const std::string reason = finish["choices"][0]["finish_reason"];
    EXPECT_TRUE(answer.is_object() || reason == "length") << text;
    EXPECT_EQ(text.find(std::string(34, blank)), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace cyb::test
