// Tool calls through the Responses API and through Ollama's: what they ask for and what they answer
// is what a chat does.
#include <gtest/gtest.h>

#include <utility>

#include "server/tool_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

const Json kFlat = Json::parse(R"([
  {"type": "function", "name": "get_weather", "description": "now", "strict": null,
   "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Paris"], "type": "string"}},
                  "required": ["city"], "additionalProperties": false}},
  {"type": "function", "name": "stop_it"}])");

/// A conversation of chat with two calls and their results.
const Json kMessages = Json::parse(R"([
  {"role": "user", "content": "Weather?"},
  {"role": "assistant", "content": "I look.", "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Rome\"}"}},
    {"id": "call_2", "type": "function", "function": {"name": "stop_it", "arguments": "{}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
  {"role": "tool", "tool_call_id": "call_2", "content": "done"}])");

/// Shows everything of messages and tools but the order of members.
constexpr const char* kAll =
    "{# <tool_call> \"arguments\" </think> #}"
    "{% for t in tools or [] %}<{{ t.type }} {{ t.function | tojson }}>{% endfor %}"
    "{% for m in messages %}<{{ m.role }}:{{ m.content }}/{{ m.content is none }}/"
    "{{ m.reasoning_content }}/{{ m.name }}/{{ m.tool_call_id }}{% for c in m.tool_calls or [] %}"
    " {{ c.id }} {{ c.type }} {{ c.function.name }} {{ c.function.arguments | tojson }}"
    "{% endfor %}>{% endfor %}<|mark|>";

Json respond(const ToolServer& server, Json body) {
  if (!body.contains("input")) body["input"] = "Hi";
  body["temperature"] = 0;
  const Reply reply = server.post_to("/v1/responses", body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.status == 200 && !body.contains("stream") ? reply.json() : Json(reply.body);
}

/// The data of a stream's events.
std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> out;
  for (std::size_t at = 0; (at = body.find("\ndata: ", at)) != std::string::npos; ++at) {
    const std::size_t from = at + 7;
    out.push_back(Json::parse(body.substr(from, body.find('\n', from) - from)));
    EXPECT_EQ(out.back()["sequence_number"], out.size() - 1);
  }
  return out;
}

/// The prompts of a chat and of another route's request are the same.
void expect_same_prompt(const ToolServer& server, const Json& chat, const char* path,
                        const Json& other) {
  const Reply first = server.chat(chat);
  ASSERT_EQ(first.status, 200) << first.body;
  const std::string prompt = std::exchange(server.said->prompt, "");
  const Reply second = server.post_to(path, other);
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(server.said->prompt, prompt);
}

TEST(ServerResponsesTools, CallsAreItems) {
  const ToolServer server("Let me look.\n" + kCall + "\n" + kCall + "\n");
  const Json whole = respond(server, {{"tools", kFlat}});
  EXPECT_EQ(whole["status"], "completed");
  ASSERT_EQ(whole["output"].size(), 3u) << whole;
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "Let me look.");
  const Json& call = whole["output"][2];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "get_weather");
  EXPECT_EQ(call["arguments"], R"({"city": "Paris"})");
  EXPECT_EQ(call["status"], "completed");
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("fc_"));
  EXPECT_TRUE(call["call_id"].get<std::string>().starts_with("call_"));
  EXPECT_NE(call["call_id"], whole["output"][1]["call_id"]);
  // The response says what was asked for.
  EXPECT_EQ(whole["tools"][0]["name"], "get_weather");
  EXPECT_EQ(whole["tools"][0]["strict"], false);
  EXPECT_TRUE(whole["tools"][1]["parameters"].is_null());
  EXPECT_EQ(whole["tool_choice"], "auto");
  EXPECT_EQ(whole["parallel_tool_calls"], true);
  const Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"tools", kTools}};
  expect_same_prompt(ToolServer("ok", kAll), body, "/v1/responses",
                     {{"input", "Hi"}, {"tools", kFlat}});
}

TEST(ServerResponsesTools, EventsComeInTheOrderOfTheApi) {
  const ToolServer server(kCall + "\n" + kCall);
  const Json whole = respond(server, {{"tools", kFlat}, {"top_logprobs", 1}});
  ASSERT_EQ(whole["output"].size(), 2u) << whole;
  const auto events =
      events_of(respond(server, {{"tools", kFlat}, {"stream", true}, {"top_logprobs", 1}})
                    .get<std::string>());
  std::vector<std::string> order;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (order.empty() || order.back() != type) order.push_back(type);
  }
  const std::vector<std::string> one = {
      "response.output_item.added", "response.function_call_arguments.delta",
      "response.function_call_arguments.done", "response.output_item.done"};
  std::vector<std::string> expected = {"response.created", "response.in_progress"};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), one.begin(), one.end());
  expected.emplace_back("response.completed");
  EXPECT_EQ(order, expected);
  std::string arguments;
  for (const Json& event : events) {
    if (event["type"] == "response.output_item.added") {
      EXPECT_EQ(event["item"]["arguments"], "");
      EXPECT_EQ(event["item"]["status"], "in_progress");
      arguments.clear();
    }
    if (event["type"] == one[1]) arguments += event["delta"].get<std::string>();
    if (event["type"] == one[2]) {
      EXPECT_EQ(event["arguments"], arguments);
      EXPECT_EQ(event["name"], "get_weather");
    }
  }
  Json streamed = events.back()["response"]["output"];
  ASSERT_EQ(streamed.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(streamed[i]["arguments"], whole["output"][i]["arguments"]);
  }
  // Cut off: the item says so.
  const Json cut = respond(server, {{"tools", kFlat}, {"max_output_tokens", 60}});
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
  EXPECT_EQ(cut["output"][0]["arguments"], R"({"city": "P)");
}

TEST(ServerResponsesTools, ItemsAreTheMessagesOfAChat) {
  const ToolServer server("<think>\nHm.\n</think>\n\nSo.\n" + kCall, kAll);
  const Json first = respond(server, {{"tools", kFlat}});
  ASSERT_EQ(first["output"].size(), 3u) << first;
  EXPECT_EQ(first["output"][0]["type"], "reasoning");
  EXPECT_EQ(first["output"][0]["content"][0]["text"], "Hm.");
  // Everything that was answered goes back.
  Json input = Json::array({{{"role", "user"}, {"content", "Hi"}}});
  for (const Json& item : first["output"]) input.push_back(item);
  const std::string id = first["output"][2]["call_id"];
  input.push_back({{"type", "function_call_output"},
                   {"call_id", id},
                   {"output", Json::array({{{"type", "input_text"}, {"text", "rain"}}})}});
  const Json messages = {
      {{"role", "user"}, {"content", "Hi"}},
      {{"role", "assistant"},
       {"reasoning_content", "Hm."},
       {"content", "So."},
       {"tool_calls",
        {{{"id", id},
          {"type", "function"},
          {"function", {{"name", "get_weather"}, {"arguments", R"({"city": "Paris"})"}}}}}}},
      {{"role", "tool"}, {"content", "rain"}, {"tool_call_id", id}}};
  expect_same_prompt(server, {{"messages", messages}, {"tools", kTools}}, "/v1/responses",
                     {{"input", input}, {"tools", kFlat}});
  // Calls without a message, several of them; reasoning that nothing follows.
  const Json calls = Json::parse(R"([{"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": "I look."},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{\"city\":\"Rome\"}"},
    {"type": "function_call", "call_id": "call_2", "name": "stop_it", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    {"type": "function_call_output", "call_id": "call_2", "output": "done"}])");
  expect_same_prompt(server, {{"messages", kMessages}}, "/v1/responses", {{"input", calls}});
  const Json alone = {{{"role", "assistant"}, {"reasoning_content", "Hm."}, {"content", ""}},
                      {{"role", "user"}, {"content", "Hi"}}};
  expect_same_prompt(server, {{"messages", alone}}, "/v1/responses",
                     {{"input", Json::array({first["output"][0], input[0]})}});
}

TEST(ServerResponsesTools, ChoicesBindAsInAChat) {
  const ToolServer server("I will not.");
  const Json named = {{"type", "function"}, {"name", "stop_it"}};
  const auto allowed = [&](const char* mode) {
    return Json{{"type", "allowed_tools"}, {"mode", mode}, {"tools", Json::array({named})}};
  };
  for (const Json& choice : {named, allowed("required")}) {
    const Json out = respond(server, {{"tools", kFlat}, {"tool_choice", choice}});
    EXPECT_EQ(out["output"][0]["name"], "stop_it") << out;
    EXPECT_EQ(out["tool_choice"], choice);
  }
  EXPECT_EQ(respond(server, {{"tools", kFlat}, {"tool_choice", "required"}})["output"][0]["type"],
            "function_call");
  for (const Json& choice : {Json("auto"), Json("none"), allowed("auto")}) {
    EXPECT_EQ(respond(server, {{"tools", kFlat}, {"tool_choice", choice}})["output"][0]["type"],
              "message");
  }
  // A call of what is not allowed is content; the template sees all tools.
  const ToolServer other(kCall);
  EXPECT_EQ(
      respond(other, {{"tools", kFlat}, {"tool_choice", allowed("auto")}})["output"][0]["type"],
      "message");
  EXPECT_NE(other.said->prompt.find("get_weather"), std::string::npos);
  Json chat = {{"tools", kTools},
               {"tool_choice",
                {{"type", "allowed_tools"},
                 {"allowed_tools",
                  {{"mode", "required"},
                   {"tools", {{{"type", "function"}, {"function", {{"name", "stop_it"}}}}}}}}}}};
  EXPECT_EQ(server.chat(chat).json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
            "stop_it");
  const Json strict = {{"type", "json_schema"},
                       {"name", "n"},
                       {"schema", Json::parse(R"({"type": "object", "required": ["a"],
                         "properties": {"a": {"enum": [1, 2]}}, "additionalProperties": false})")}};
  const Json bound = respond(server, {{"text", {{"format", strict}}}});
  EXPECT_TRUE(
      Json::parse(bound["output"][0]["content"][0]["text"].get<std::string>()).contains("a"))
      << bound;
  EXPECT_EQ(bound["text"]["format"]["name"], "n");
  const Json object = respond(ToolServer("{\"a\": [1, 2]} and more"),
                              {{"text", {{"format", {{"type", "json_object"}}}}}});
  EXPECT_EQ(object["output"][0]["content"][0]["text"], "{\"a\": [1, 2]}");
}

TEST(ServerResponsesTools, RefusalsNameTheClientsField) {
  const ToolServer server("x");
  const auto refused = [&](Json body, const std::string& field, const std::string& part = "") {
    if (!body.contains("input")) body["input"] = "Hi";
    const Reply reply = server.post_to("/v1/responses", body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"].get<std::string>(), field) << reply.body;
    const std::string message = reply.json()["error"]["message"];
    EXPECT_NE(message.find("'" + field + "'"), std::string::npos) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const auto tool = [](const char* text) { return Json{{"tools", {Json::parse(text)}}}; };
  refused(tool(R"({"type": "web_search"})"), "tools[0].type", "web_search");
  refused(tool(R"({"type": "file_search", "vector_store_ids": ["a"]})"), "tools[0].type",
          "file_search");
  refused(tool(R"({"name": "f"})"), "tools[0].type");
  refused(tool(R"({"type": "function"})"), "tools[0].name");
  refused(tool(R"({"type": "function", "name": "a b"})"), "tools[0].name");
  refused(tool(R"({"type": "function", "name": "f", "function": {}})"), "tools[0].function");
  refused(tool(R"({"type": "function", "name": "f", "parameters": {"type": "array"}})"),
          "tools[0].parameters");
  refused({{"tools", {7}}}, "tools[0]");
  refused({{"tools", {kFlat[0], kFlat[0]}}}, "tools[1].name");
  const auto choice = [](const Json& value) {
    return Json{{"tools", kFlat}, {"tool_choice", value}};
  };
  refused(choice({{"type", "web_search_preview"}}), "tool_choice", "web_search_preview");
  refused(choice({{"type", "function"}, {"name", "g"}}), "tool_choice");
  refused(choice("maybe"), "tool_choice");
  refused(choice(7), "tool_choice");
  refused(choice({{"type", "allowed_tools"}, {"mode", "some"}, {"tools", {kFlat[1]}}}),
          "tool_choice.mode");
  refused(choice({{"type", "allowed_tools"}, {"mode", "auto"}, {"tools", {{{"type", "mcp"}}}}}),
          "tool_choice.tools[0]", "mcp");
  refused({{"tool_choice", "required"}}, "tool_choice");
  refused({{"max_tool_calls", 3}}, "max_tool_calls");
  const auto item = [](const char* text) { return Json{{"input", {Json::parse(text)}}}; };
  refused(item(R"({"type": "item_reference", "id": "a"})"), "input[0].type", "item_reference");
  refused(item(R"({"type": "function_call", "call_id": "a", "name": "f"})"), "input[0].arguments");
  refused(item(R"({"type": "function_call", "call_id": "a", "name": "f", "arguments": "[1]"})"),
          "input[0].arguments");
  refused(item(R"({"type": "function_call", "call_id": "a", "name": "f g", "arguments": "{}"})"),
          "input[0].name");
  refused(item(R"({"type": "function_call_output", "output": "a"})"), "input[0].call_id");
  refused(
      item(
          R"({"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image"}]})"),
      "input[0].output[0].type");
  refused(item(R"({"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]})"),
          "input[0].summary");
  refused(item(R"({"type": "reasoning", "encrypted_content": "a"})"), "input[0].encrypted_content");
  refused({{"text", {{"format", {{"type", "json_schema"}, {"name", "a"}, {"schema", 7}}}}}},
          "text.format.schema");
}

TEST(ServerOllamaTools, CallsAreObjectsWholeInALine) {
  const ToolServer server("Let me look.\n" + kCall + "\n" + kCall);
  const Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                     {"tools", kTools},
                     {"options", {{"temperature", 0}}}};
  Json once = body;
  once["stream"] = false;
  const Reply reply = server.post_to("/api/chat", once);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json message = reply.json()["message"];
  EXPECT_EQ(message["content"], "Let me look.");
  const Json call = {{"function", {{"name", "get_weather"}, {"arguments", {{"city", "Paris"}}}}}};
  EXPECT_EQ(message["tool_calls"], Json::array({call, call}));
  EXPECT_EQ(reply.json()["done_reason"], "stop");
  std::string content;
  Json calls = Json::array();
  const std::string lines = server.post_to("/api/chat", body).body;
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    const Json line = Json::parse(lines.substr(at, lines.find('\n', at) - at));
    content += line["message"]["content"].get<std::string>();
    for (const Json& one : line["message"].value("tool_calls", Json::array())) {
      EXPECT_FALSE(line["done"].get<bool>());
      calls.push_back(one);
    }
  }
  EXPECT_EQ(content, "Let me look.");
  EXPECT_EQ(calls, message["tool_calls"]);
  Json chat = body;
  chat.erase("options");
  expect_same_prompt(ToolServer("ok", kAll), chat, "/api/chat", body);
}

TEST(ServerOllamaTools, ConversationsAreThoseOfAChat) {
  const ToolServer server("Rain.", kAll);
  const Json call = {{"function", {{"name", "get_weather"}, {"arguments", {{"city", "Rome"}}}}}},
             stop = {{"function", {{"name", "stop_it"}, {"arguments", Json::object()}}}};
  const Json ask = {{"role", "user"}, {"content", "Weather?"}};
  const auto chat_of = [&](const Json& content, const Json& results) {
    Json out = kMessages;
    out[1]["content"] = content;
    out[1]["tool_calls"][0]["id"] = "call00001";
    out[1]["tool_calls"][1]["id"] = "call00002";
    out.erase(3);
    out.erase(2);
    for (const Json& result : results) out.push_back(result);
    return Json{{"messages", out}};
  };
  const auto result = [](const char* id, const char* name, const char* content) {
    Json out = {{"role", "tool"}, {"tool_call_id", id}, {"content", content}};
    if (*name != 0) out["name"] = name;
    return out;
  };
  const auto ollama_of = [&](const Json& assistant, const Json& results) {
    Json out = Json::array({ask, assistant});
    for (const Json& one : results) out.push_back(one);
    return Json{{"messages", out}, {"stream", false}};
  };
  const auto tool = [](const char* name, const char* content) {
    return Json{{"role", "tool"}, {"tool_name", name}, {"content", content}};
  };
  const Json calls = Json::array({call, stop});
  // Results belong to calls by the name of the function; without one, in their order.
  const Json said = {{"role", "assistant"}, {"content", "I look."}, {"tool_calls", calls}};
  expect_same_prompt(
      server,
      chat_of("I look.",
              {result("call00002", "stop_it", "done"), result("call00001", "get_weather", "rain")}),
      "/api/chat", ollama_of(said, {tool("stop_it", "done"), tool("get_weather", "rain")}));
  const Json silent = {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}};
  const Json bare = {{"role", "assistant"}, {"tool_calls", calls}};
  for (const Json& assistant : {silent, bare}) {
    expect_same_prompt(
        server,
        chat_of(nullptr, {result("call00001", "", "rain"), result("call00002", "", "done")}),
        "/api/chat",
        ollama_of(assistant, {Json{{"role", "tool"}, {"content", "rain"}},
                              Json{{"role", "tool"}, {"content", "done"}}}));
  }
  // A result of no call.
  EXPECT_EQ(server.post_to("/api/chat", ollama_of(ask, Json::array({tool("other", "x")}))).status,
            200);
  const auto refused = [&](const Json& message, const std::string& field) {
    const Reply reply = server.post_to("/api/chat", {{"messages", {message}}});
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["param"].get<std::string>(), field) << reply.body;
  };
  const auto with_call = [](const char* text) {
    return Json{{"role", "assistant"}, {"tool_calls", {Json::parse(text)}}};
  };
  refused(with_call(R"({"function": {"name": "f", "arguments": "{}"}})"),
          "messages[0].tool_calls[0].function.arguments");
  refused(with_call(R"({"function": {"name": "f g"}})"), "messages[0].tool_calls[0].function.name");
  refused(with_call(R"({"name": "f"})"), "messages[0].tool_calls[0].name");
  refused(with_call("7"), "messages[0].tool_calls[0]");
  refused({{"role", "user"}, {"content", ""}, {"tool_calls", {call}}}, "messages[0].tool_calls");
  refused({{"role", "user"}, {"content", "a"}, {"tool_name", "f"}}, "messages[0].tool_name");
  refused({{"role", "tool"}, {"tool_name", "f"}}, "messages[0].content");
  const Reply shown = server.post_to("/api/show", Json::object());
  EXPECT_EQ(shown.json()["capabilities"], (Json{"completion", "tools", "thinking"}));
}

TEST(ServerApplyTemplate, TakesToolsAndCallsAsAChatDoes) {
  const ToolServer server("x", kAll);
  const Json body = {{"messages", kMessages}, {"tools", kTools}};
  ASSERT_EQ(server.chat(body).status, 200);
  const Reply reply = server.post_to("/apply-template", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["prompt"].get<std::string>(), server.said->prompt + "<|mark|>");
  EXPECT_NE(server.said->prompt.find("stop_it"), std::string::npos);
  const Reply refused =
      server.post_to("/apply-template", {{"messages", kMessages}, {"tools", {7}}});
  EXPECT_EQ(refused.json()["error"]["param"], "tools[0]");
  // A model whose template knows no tools is told of them there too.
  const ToolServer plain(
      "x", "{% for m in messages %}<{{ m.role }}:{{ m.content }}>{% endfor %}<|mark|>");
  EXPECT_NE(plain.post_to("/apply-template", body).body.find("You can call functions."),
            std::string::npos);
}

}  // namespace
}  // namespace cyb::test
