// Structured output and tool calls of chats.
#include <gtest/gtest.h>

#include "server/tool_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// The deltas of a stream as one message.
Json streamed_message(const Reply& reply, std::string& reason) {
  Json out = {{"content", ""}, {"reasoning_content", ""}, {"tool_calls", Json::array()}};
  const auto events = reply.events();
  EXPECT_EQ(events.empty() ? "" : events.back(), "[DONE]") << reply.body;
  for (const std::string& text : events) {
    if (text == "[DONE]") continue;
    const Json chunk = Json::parse(text);
    for (const Json& choice : chunk["choices"]) {
      const Json& delta = choice["delta"];
      if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
      for (const char* key : {"content", "reasoning_content"}) {
        if (delta.contains(key))
          out[key] = out[key].get<std::string>() + delta[key].get<std::string>();
      }
      for (const Json& call : delta.value("tool_calls", Json::array())) {
        const std::size_t index = call["index"];
        if (call.contains("id")) {
          EXPECT_EQ(index, out["tool_calls"].size());
          out["tool_calls"].push_back(call);
        } else {
          Json& text_so_far = out["tool_calls"].at(index)["function"]["arguments"];
          text_so_far =
              text_so_far.get<std::string>() + call["function"]["arguments"].get<std::string>();
        }
      }
    }
  }
  return out;
}

TEST(ServerTools, CallsComeApartFromContentStreamedOrNot) {
  const ToolServer server("Let me look.\n" + kCall + "\n" + kCall + "\n");
  const Json choice = server.chat({{"tools", kTools}}).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls") << choice;
  EXPECT_EQ(choice["message"]["content"], "Let me look.");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 2u);
  const Json& call = choice["message"]["tool_calls"][1];
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
  EXPECT_NE(call["id"], choice["message"]["tool_calls"][0]["id"]);
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"]["name"], "get_weather");
  EXPECT_EQ(call["function"]["arguments"], R"({"city": "Paris"})");
  EXPECT_NE(server.said->prompt.find("\"name\": \"stop_it\""), std::string::npos);

  std::string reason;
  const Json streamed =
      streamed_message(server.chat({{"tools", kTools}, {"stream", true}}), reason);
  EXPECT_EQ(reason, "tool_calls");
  EXPECT_EQ(streamed["content"], "Let me look.");
  ASSERT_EQ(streamed["tool_calls"].size(), 2u);
  EXPECT_EQ(streamed["tool_calls"][1]["function"], call["function"]);
}

TEST(ServerTools, WithoutToolsAndWithNoneTheTextStaysAsItIs) {
  const ToolServer server(kCall);
  for (const Json& body : {Json::object(), Json{{"tools", kTools}, {"tool_choice", "none"}}}) {
    const Json choice = server.chat(body).json()["choices"][0];
    EXPECT_EQ(choice["message"]["content"], kCall);
    EXPECT_EQ(choice["finish_reason"], "stop");
    EXPECT_FALSE(choice["message"].contains("tool_calls"));
    EXPECT_EQ(server.said->prompt.find("<tools:"), std::string::npos);
  }
}

TEST(ServerTools, ACallThatIsCutOffIsReportedAsItStands) {
  const ToolServer server(kCall);
  const Json choice = server.chat({{"tools", kTools}, {"max_tokens", 60}}).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << choice;
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], R"({"city": "P)");
}

TEST(ServerTools, DutyAndStrictnessAreGrammars) {
  const ToolServer server("I will not.");
  for (const Json& choice_of :
       {Json("required"),
        Json::parse(R"({"type": "function", "function": {"name": "get_weather"}})")}) {
    const Json choice =
        server.chat({{"tools", kTools}, {"tool_choice", choice_of}}).json()["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls") << choice;
    ASSERT_GE(choice["message"]["tool_calls"].size(), 1u);
    const Json& function = choice["message"]["tool_calls"][0]["function"];
    EXPECT_TRUE(Json::accept(function["arguments"].get<std::string>())) << function;
  }
  Json strict = kTools;
  strict[0]["function"]["strict"] = true;
  const ToolServer wrong(
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
      "\"Berlin\"}}\n</tool_call>");
  const Json bound = wrong.chat({{"tools", strict}}).json()["choices"][0]["message"];
  ASSERT_EQ(bound["tool_calls"].size(), 1u) << bound;
  const Json arguments =
      Json::parse(bound["tool_calls"][0]["function"]["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["city"] == "Rome" || arguments["city"] == "Paris") << bound;
  EXPECT_EQ(server.chat({{"tools", strict}}).json()["choices"][0]["message"]["content"],
            "I will not.");
  const ToolServer twice(kCall + "\n" + kCall);
  const Json one = twice.chat({{"tools", kTools}, {"parallel_tool_calls", false}}).json();
  EXPECT_EQ(one["choices"][0]["message"]["tool_calls"].size(), 1u);
}

TEST(ServerTools, ConversationsWithCallsReachTheTemplate) {
  const ToolServer server("Rain.");
  const Json messages = Json::parse(R"([
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
      "function": {"name": "get_weather", "arguments": "{\"city\":\"Rome\"}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"}])");
  const Reply reply = server.chat({{"messages", messages}, {"tools", kTools}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(server.said->prompt.find("\"arguments\": {\"city\": \"Rome\"}}"), std::string::npos)
      << server.said->prompt;
  EXPECT_NE(server.said->prompt.find("<tool:rain>"), std::string::npos);
  // A template that joins texts is given texts.
  const ToolServer texts("ok",
                         "{% for m in messages %}<{{ m.content }}{% for c in m.tool_calls or [] %}"
                         "{{ '>>>all' + c.function.arguments }}{% endfor %}>{% endfor %}"
                         "{% if tools %}{% endif %}<|mark|>");
  EXPECT_EQ(texts.chat({{"messages", messages}}).status, 200);
  EXPECT_NE(texts.said->prompt.find(">>>all{\"city\":\"Rome\"}"), std::string::npos);
}

TEST(ServerTools, ModelsThatKnowNoToolsAreTold) {
  const ToolServer server(
      "{\"name\": \"stop_it\", \"arguments\": {}}",
      "{% for m in messages %}<{{ m.role }}:{{ m.content }}>{% endfor %}<|mark|>");
  const Json choice = server.chat({{"tools", kTools}}).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls") << choice;
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "stop_it");
  EXPECT_TRUE(server.said->prompt.starts_with("<system:You can call functions."));
  const ToolServer other("x", "{{ tools | tojson }} in a form of its own <|mark|>");
  const Reply refused = other.chat({{"tools", kTools}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.code(), "unsupported_parameter");
}

TEST(ServerTools, MistakesInToolsAreNamed) {
  const ToolServer server("x");
  const auto param = [&](const Json& body) {
    const Reply reply = server.chat(body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return reply.json()["error"]["param"].get<std::string>();
  };
  const auto with = [](const char* function) {
    return Json{{"tools", {{{"type", "function"}, {"function", Json::parse(function)}}}}};
  };
  EXPECT_EQ(param({{"tools", {7}}}), "tools[0]");
  EXPECT_EQ(param({{"tools", {{{"type", "retrieval"}}}}}), "tools[0].type");
  EXPECT_EQ(param({{"tools", {{{"type", "function"}}}}}), "tools[0].function");
  EXPECT_EQ(param(with(R"({"name": "a b"})")), "tools[0].function.name");
  EXPECT_EQ(param(with(R"({"name": "f", "extra": 1})")), "tools[0].function.extra");
  EXPECT_EQ(param(with(R"({"name": "f", "parameters": {"type": "array"}})")),
            "tools[0].function.parameters");
  EXPECT_EQ(param({{"tools", {kTools[0], kTools[0]}}}), "tools[1].function.name");
  EXPECT_EQ(param({{"tool_choice", "required"}}), "tool_choice");
  EXPECT_EQ(param({{"tools", kTools}, {"tool_choice", "maybe"}}), "tool_choice");
  EXPECT_EQ(param({{"tools", kTools},
                   {"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}}),
            "tool_choice");
  EXPECT_EQ(param({{"tools", kTools}, {"tool_choice", "required"}, {"stop", "x"}}), "stop");
  EXPECT_EQ(param({{"tools", kTools}, {"regex", "a"}}), "regex");
  Json body = with(R"({"name": "f", "strict": true,
                       "parameters": {"type": "object", "properties": {"a": {"not": {}}}}})");
  const Reply reply = server.chat(body);
  EXPECT_EQ(reply.json()["error"]["param"], "tools");
  EXPECT_NE(reply.body.find("function f: #/properties/a"), std::string::npos) << reply.body;
  const Json messages = {{{"role", "user"}, {"content", "x"}, {"tool_calls", {{{"id", "1"}}}}}};
  EXPECT_EQ(param({{"messages", messages}}), "messages[0].tool_calls[0]");
  EXPECT_EQ(param({{"messages", {{{"role", "tool"}, {"content", "x"}}}}}),
            "messages[0].tool_call_id");
}

TEST(ServerTools, ReasoningIsApartFromContent) {
  const std::string source =
      "{% for m in messages %}<{{ m.content }}>{% endfor %}{% if open %}<think>\n{% endif "
      "%}<|mark|>"
      "{# </think> #}";
  const ToolServer server("<think>\nHm.\n</think>\n\nFour.", source);
  const Json message = server.chat(Json::object()).json()["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Four.");
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  std::string reason;
  const Json streamed = streamed_message(server.chat({{"stream", true}}), reason);
  EXPECT_EQ(streamed["content"], "Four.");
  EXPECT_EQ(streamed["reasoning_content"], "Hm.");
  EXPECT_EQ(reason, "stop");
}

TEST(ServerForms, SchemasBindTheAnswer) {
  const ToolServer server("no JSON");
  const Json schema = Json::parse(
      R"({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 3}},
          "required": ["n"], "additionalProperties": false})");
  const Json format = {{"type", "json_schema"},
                       {"json_schema", {{"name", "n"}, {"strict", true}, {"schema", schema}}}};
  for (int i = 0; i < 2; ++i) {
    const Json choice = server.chat({{"response_format", format}}).json()["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "stop") << choice;
    const Json answer = Json::parse(choice["message"]["content"].get<std::string>());
    EXPECT_GE(answer["n"], 1);
    EXPECT_LE(answer["n"], 3);
  }
  EXPECT_EQ(server.server.server->service().grammars().size(), 1u);
  const ToolServer object("{\"a\": [1, 2]} and more");
  const Json choice =
      object.chat({{"response_format", {{"type", "json_object"}}}}).json()["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "{\"a\": [1, 2]}");
  EXPECT_EQ(object.chat({{"response_format", {{"type", "text"}}}}).status, 200);
}

TEST(ServerForms, GrammarsOfBothRoutes) {
  const ToolServer server("no");
  EXPECT_EQ(server.chat({{"regex", "[a-c]{2}z"}}).json()["choices"][0]["message"]["content"],
            "aaz");
  EXPECT_EQ(server.chat({{"grammar", "root ::= \"x\" | \"yy\""}})
                .json()["choices"][0]["message"]["content"],
            "x");
  const auto text = [&](Json body) {
    body["temperature"] = 0;
    body["prompt"] = "a<|mark|>";
    return server.server.complete(body).json()["choices"][0]["text"].get<std::string>();
  };
  EXPECT_EQ(text({{"lark", "start: \"k\""}}), "k");
  EXPECT_EQ(text({{"json_schema", {{"const", 7}, {"type", "integer"}}}}), "7");
  EXPECT_EQ(text({{"regex", "q"}}), "q");
}

TEST(ServerForms, MistakesNameFieldAndPath) {
  const ToolServer server("x");
  const auto refused = [&](const Json& body, const char* param, const char* part) {
    const Reply reply = server.chat(body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], param) << reply.body;
    EXPECT_NE(reply.body.find(part), std::string::npos) << reply.body;
  };
  const auto schema = [](const char* text) {
    return Json{{"response_format",
                 {{"type", "json_schema"},
                  {"json_schema", {{"name", "x"}, {"schema", Json::parse(text)}}}}}};
  };
  refused(schema(R"({"type": "object", "properties": {"a": {"type": "string", "if": {}}}})"),
          "response_format", "#/properties/a");
  refused(schema(R"({"$ref": "#/nowhere"})"), "response_format", "#");
  refused({{"response_format", {{"type", "xml"}}}}, "response_format", "json_schema");
  refused({{"grammar", "root ::= ("}}, "grammar", "line 1");
  refused({{"regex", "("}}, "regex", "column");
  refused({{"regex", "a"}, {"lark", "start: \"a\""}}, "lark", "regex");
  refused({{"regex", "a"}, {"stop", "b"}}, "stop", "regex");
  std::string deep = "{\"type\": \"integer\"}";
  for (int i = 0; i < 25; ++i) deep = R"({"type": "array", "items": )" + deep + "}";
  EXPECT_EQ(server.chat(schema(deep.c_str())).status, 200);
}

}  // namespace
}  // namespace cyb::test
