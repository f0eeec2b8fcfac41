// Formats whose arguments stand between tags, and ids that a model makes itself, over HTTP.
#include <gtest/gtest.h>

#include "server/tool_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kQwen =
    "{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}{% for m in messages %}"
    "<{{ m.role }}:{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "{{ '<tool_call>\\n<function=' ~ c.function.name ~ '>\\n' }}"
    "{% for k, v in c.function.arguments | items %}"
    "{{ '<parameter=' ~ k ~ '>\\n' ~ v ~ '\\n</parameter>\\n' }}{% endfor %}"
    "{{ '</function>\\n</tool_call>' }}{% endfor %}>{% endfor %}<|mark|>";
constexpr const char* kGlm =
    "{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}{% for m in messages %}"
    "<{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}"
    "<tool_call>{{ c.function.name }}\n{% for k, v in c.function.arguments.items() %}"
    "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v | tojson if v is not string else v "
    "}}</arg_value>\n"
    "{% endfor %}</tool_call>{% endfor %}>{% endfor %}<|mark|>";
constexpr const char* kKimi =
    "{{ tools | tojson if tools else '' }}{% for m in messages %}<{{ m.role }}:{{ m.content or '' "
    "}}"
    "{% for c in m.tool_calls or [] %}<|tool_calls_section_begin|><|tool_call_begin|>{{ c.id }}"
    "<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}<|tool_call_end|>"
    "<|tool_calls_section_end|>{% endfor %}>{% endfor %}<|mark|>";

const Json kTyped = Json::parse(R"([{"type": "function", "function": {"name": "get_weather",
  "parameters": {"type": "object", "required": ["city", "days"], "properties": {
    "city": {"type": "string", "enum": ["Rome", "Paris"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}])");
const Json kAnswered = Json::parse(R"([
  {"role": "user", "content": "Weather?"},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
    "function": {"name": "get_weather", "arguments": "{\"city\":\"Rome\",\"days\":3}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "rain"}])");

Json message_of(const ToolServer& server, const Json& body) {
  const Reply reply = server.chat(body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.status == 200 ? reply.json()["choices"][0]["message"] : Json();
}

TEST(ServerToolFormats, ArgumentsBetweenTagsHaveTheirTypes) {
  const std::pair<const char*, const char*> answers[] = {
      {kQwen,
       "Look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
       "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"},
      {kGlm,
       "Look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"}};
  for (const auto& [chat_template, answer] : answers) {
    const ToolServer server(answer, chat_template);
    const Json message = message_of(server, {{"tools", kTyped}});
    EXPECT_EQ(message["content"], "Look.");
    ASSERT_EQ(message["tool_calls"].size(), 1u) << message;
    EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"city": "Paris", "days": 3})");
    // What was answered goes back as it was written.
    EXPECT_EQ(server.chat({{"messages", {{{"role", "user"}, {"content", "x"}}, message}}}).status,
              200);
    std::string call(answer);
    call.erase(0, call.find('<'));
    EXPECT_NE(server.said->prompt.find(call), std::string::npos) << server.said->prompt;
    // Without a word of its own the model is made to call.
    const ToolServer silent("I will not.", chat_template);
    for (const Json& choice : {Json("required"), Json("auto")}) {
      Json tools = kTyped;
      tools[0]["function"]["strict"] = true;
      const Json bound = message_of(silent, {{"tools", tools}, {"tool_choice", choice}});
      if (choice == "auto") {
        EXPECT_EQ(bound["content"], "I will not.");
        continue;
      }
      const Json arguments =
          Json::parse(bound["tool_calls"].at(0)["function"]["arguments"].get<std::string>());
      EXPECT_TRUE(arguments["city"] == "Rome" || arguments["city"] == "Paris") << bound;
      EXPECT_TRUE(arguments["days"].is_number_integer()) << bound;
    }
    // A value of another type than the schema's is not written under strict.
    std::string wrong(answer);
    wrong.replace(wrong.rfind('3'), 1, "many");
    Json tools = kTyped;
    EXPECT_EQ(
        Json::parse(message_of(ToolServer(wrong, chat_template), {{"tools", tools}})["tool_calls"]
                        .at(0)["function"]["arguments"]
                        .get<std::string>())["days"],
        "many");
    tools[0]["function"]["strict"] = true;
    EXPECT_TRUE(
        Json::parse(message_of(ToolServer(wrong, chat_template), {{"tools", tools}})["tool_calls"]
                        .at(0)["function"]["arguments"]
                        .get<std::string>())["days"]
            .is_number_integer());
  }
}

TEST(ServerToolFormats, ConversationsReachTheTemplateAsObjects) {
  const ToolServer qwen("x", kQwen), glm("x", kGlm);
  ASSERT_EQ(qwen.chat({{"messages", kAnswered}}).status, 200);
  EXPECT_NE(qwen.said->prompt.find("<parameter=days>\n3\n</parameter>"), std::string::npos)
      << qwen.said->prompt;
  ASSERT_EQ(glm.chat({{"messages", kAnswered}}).status, 200);
  EXPECT_NE(glm.said->prompt.find("<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>"),
            std::string::npos);
  // A template that shows None where there is no content is given an empty one.
  EXPECT_EQ(glm.said->prompt.find("None"), std::string::npos) << glm.said->prompt;
}

TEST(ServerToolFormats, WhatTagsCannotSayIsRefusedByName) {
  const ToolServer server("x", kQwen);
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "f", "strict": true,
    "parameters": {"type": "object", "properties": {"a>b": {"type": "string"}}}}}])");
  const Reply reply = server.chat({{"tools", tools}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["param"], "tools");
  EXPECT_NE(reply.body.find("function f: #/properties/a>b"), std::string::npos) << reply.body;
}

TEST(ServerToolFormats, IdsOfKimiAreThoseThatItsTemplateShows) {
  const std::string one =
                        "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
                        "{\"city\": \"Rome\", \"days\": 3}<|tool_call_end|>",
                    two =
                        "<|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>"
                        "{\"city\": \"Paris\", \"days\": 1}<|tool_call_end|>";
  const ToolServer server("<|tool_calls_section_begin|>" + one + two + "<|tool_calls_section_end|>",
                          kKimi);
  const Json message = message_of(server, {{"tools", kTyped}});
  ASSERT_EQ(message["tool_calls"].size(), 2u) << message;
  EXPECT_EQ(message["tool_calls"][0]["id"], "functions.get_weather:0");
  EXPECT_EQ(message["tool_calls"][1]["id"], "functions.get_weather:1");
  const Reply streamed = server.chat({{"tools", kTyped}, {"stream", true}});
  EXPECT_NE(streamed.body.find("\"functions.get_weather:1\""), std::string::npos);
  EXPECT_EQ(server.chat({{"messages", {{{"role", "user"}, {"content", "x"}}, message}}}).status,
            200);
  EXPECT_NE(server.said->prompt.find(one), std::string::npos) << server.said->prompt;
  const ToolServer silent("I will not.", kKimi);
  const Json bound = message_of(silent, {{"tools", kTyped}, {"tool_choice", "required"}});
  EXPECT_EQ(bound["tool_calls"][0]["function"]["name"], "get_weather") << bound;
}

}  // namespace
}  // namespace cyb::test
