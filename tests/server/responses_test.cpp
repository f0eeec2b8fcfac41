// OpenAI's Responses API: objects, named events, items of the input.
#include "server/responses_shape.hpp"

#include <gtest/gtest.h>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

const TestServer& quick_server() {
  static const TestServer server(answer_after_mark({'o', 'k', kEnd}));
  return server;
}

Reply respond(Json body, const TestServer& server = quick_server()) {
  if (!body.contains("input")) body["input"] = "Hi";
  return post(server.port(), "/v1/responses", body);
}

/// Every event has its type as its name and the next number.
std::vector<Json> named_events(const std::string& body) {
  std::vector<Json> out;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t line = body.find('\n', at), end = body.find("\n\n", at);
    EXPECT_EQ(body.compare(at, 7, "event: "), 0);
    EXPECT_EQ(body.compare(line + 1, 6, "data: "), 0);
    if (line == std::string::npos || end == std::string::npos) break;
    out.push_back(Json::parse(body.substr(line + 7, end - line - 7)));
    EXPECT_EQ(out.back()["type"].get<std::string>(), body.substr(at + 7, line - at - 7));
    EXPECT_EQ(out.back()["sequence_number"], out.size() - 1);
    at = end + 2;
  }
  return out;
}

std::vector<std::string> types(const std::vector<Json>& events) {
  std::vector<std::string> out;
  for (const Json& event : events) out.push_back(event["type"].get<std::string>());
  return out;
}

TEST(ServerResponses, WholeAnswer) {
  const Reply reply = respond({{"model", "test"}, {"seed", 5}, {"temperature", 0.5}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = reply.json();
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("resp_"));
  EXPECT_EQ(json["object"], "response");
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["temperature"], 0.5);
  EXPECT_EQ(json["store"], false);
  EXPECT_TRUE(json["error"].is_null() && json["instructions"].is_null());
  ASSERT_EQ(json["output"].size(), 1u);
  EXPECT_EQ(json["output"][0]["type"], "message");
  EXPECT_EQ(json["output"][0]["status"], "completed");
  EXPECT_EQ(json["output"][0]["content"][0]["type"], "output_text");
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "ok");
  EXPECT_EQ(json["usage"]["input_tokens"], 9);  // "<user:Hi>"
  EXPECT_EQ(json["usage"]["output_tokens"], 2);
  EXPECT_EQ(json["cyb_llm"]["seed"], 5);
  const Json cut = respond({{"max_output_tokens", 1}}).json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
}

TEST(ServerResponses, EventsBuildTheWholeAnswer) {
  const Json ask = {{"stream", true}, {"top_logprobs", 1}};
  const Reply reply = respond(ask);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("text/event-stream"), std::string::npos);
  const auto events = named_events(reply.body);
  EXPECT_EQ(types(events),
            (std::vector<std::string>{"response.created", "response.in_progress",
                                      "response.output_item.added", "response.content_part.added",
                                      "response.output_text.delta", "response.output_text.delta",
                                      "response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events[4]["delta"].get<std::string>() + events[5]["delta"].get<std::string>(), "ok");
  EXPECT_EQ(events[6]["text"], "ok");
  EXPECT_EQ(events[4]["item_id"], events[2]["item"]["id"]);
  EXPECT_EQ(events[4]["logprobs"][0]["token"], "o");
  EXPECT_EQ(events[4]["logprobs"][0]["top_logprobs"].size(), 1u);
  const Json& last = events.back()["response"];
  EXPECT_EQ(last["id"], events[0]["response"]["id"]);
  EXPECT_EQ(last["output"][0], events[8]["item"]);
  EXPECT_EQ(last["output"][0]["content"][0]["logprobs"].size(), 2u);
  EXPECT_EQ(last["usage"]["output_tokens"], 2);
  Json whole = respond({{"top_logprobs", 1}}).json();
  EXPECT_EQ(whole["output"][0]["content"], last["output"][0]["content"]);
  EXPECT_EQ(respond({{"include", Json::array({"message.output_text.logprobs"})}})
                .json()["output"][0]["content"][0]["logprobs"]
                .size(),
            2u);
  const auto cut = named_events(respond({{"stream", true}, {"max_output_tokens", 1}}).body);
  EXPECT_EQ(cut.back()["type"], "response.incomplete");
  // Nothing but the end: still one message.
  const TestServer silent(answer_after_mark({kEnd}));
  const auto empty = named_events(respond({{"stream", true}}, silent).body);
  EXPECT_EQ(empty.back()["response"]["output"][0]["content"][0]["text"], "");
}

TEST(ServerResponses, ItemsOfTheInput) {
  const auto n_tokens = [](const Json& body) {
    const Reply reply = respond(body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["usage"]["input_tokens"].get<std::size_t>();
  };
  const Json parts = Json::array(
      {{{"type", "input_text"}, {"text", "a"}}, {{"type", "input_text"}, {"text", "b"}}});
  EXPECT_EQ(n_tokens({{"instructions", "Be"}, {"input", "Hi"}}),
            std::string("<system:Be><user:Hi>").size());
  EXPECT_EQ(n_tokens({{"input", Json::array({{{"role", "user"}, {"content", parts}}})}}),
            std::string("<user:a\nb>").size());
  // An answer's own item goes back as it came.
  const Json item = respond({}).json()["output"][0];
  EXPECT_EQ(n_tokens({{"input",
                       Json::array({{{"role", "user"}, {"content", "a"}},
                                    item,
                                    {{"type", "message"}, {"role", "user"}, {"content", "b"}}})}}),
            std::string("<user:a><assistant:ok><user:b>").size());
}

TEST(ServerResponses, RefusalsNameTheClientsField) {
  const auto refused = [](const Json& body, const std::string& code, const std::string& field) {
    const Reply reply = respond(body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.code(), code) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"].get<std::string>(), field) << reply.body;
    EXPECT_NE(reply.json()["error"]["message"].get<std::string>().find(field), std::string::npos);
  };
  const auto input = [](const Json& item) { return Json{{"input", Json::array({item})}}; };
  const std::string unsupported = "unsupported_parameter";
  refused({{"store", true}}, unsupported, "store");
  refused({{"previous_response_id", "resp_1"}}, unsupported, "previous_response_id");
  refused({{"text", {{"format", {{"type", "frobnicate"}}}}}}, "invalid_value", "text.format");
  refused({{"text", {{"other", 1}}}}, "unknown_parameter", "text.other");
  refused({{"include", Json::array({"reasoning.encrypted_content"})}}, unsupported, "include");
  refused({{"truncation", "some"}}, "invalid_value", "truncation");
  refused({{"input", Json::array()}}, "invalid_value", "input");
  refused({{"input", 7}}, "invalid_value", "input");
  refused(input({{"type", "function_call_output"}, {"call_id", "a"}}), "invalid_value",
          "input[0].output");
  refused(input({{"role", "tool"}, {"content", "a"}}), "invalid_value", "input[0].role");
  refused(input({{"role", "user"}}), "invalid_value", "input[0].content");
  refused(input({{"role", "user"}, {"content", "a"}, {"x", 1}}), "unknown_parameter", "input[0].x");
  refused(input({{"role", "user"}, {"content", Json::array({{{"type", "input_image"}}})}}),
          unsupported, "input[0].content[0].type");
  const Json overlong = respond({{"input", std::string(600, 'a')}}).json()["error"];
  EXPECT_EQ(overlong["code"], "context_length_exceeded");
  EXPECT_EQ(overlong["param"], "input");
  EXPECT_EQ(
      respond({{"input", std::string(600, 'a')}, {"truncation", "auto"}, {"max_output_tokens", 1}})
          .status,
      200);
  EXPECT_EQ(respond({{"model", "gpt"}}).code(), "model_not_found");
  EXPECT_EQ(respond({{"store", false},
                     {"tools", Json::array()},
                     {"tool_choice", "auto"},
                     {"text", {{"format", {{"type", "text"}}}}},
                     {"metadata", Json::object()}})
                .status,
            200);
}

TEST(ServerResponses, ReasoningAndCallsAreItemsOfTheirOwn) {
  const auto shape = server::responses_shape({.id = "resp_1", .model = "m"}, R"("user":null)");
  std::string body = shape->begin();
  body += shape->piece({.reasoning = "why"});
  body += shape->piece({.content = "so"});
  const server::ToolCallPiece first{0, "call_1", "f", "{\"a\""}, more{0, "", "", ":1}"},
      second{1, "call_2", "g", "{}"};
  for (const auto& call : {first, more, second}) body += shape->piece({.tool_calls = {&call, 1}});
  body += shape->finish({.tool_calls = true});
  GenerateResult result;
  const server::Answer answer{&result};
  body += shape->end({&answer, 1});
  const auto events = named_events(body);
  const Json output = events.back()["response"]["output"];
  ASSERT_EQ(output.size(), 4u) << output;
  EXPECT_EQ(output[0]["content"][0]["text"], "why");
  EXPECT_EQ(output[1]["content"][0]["text"], "so");
  EXPECT_EQ(output[2]["arguments"], "{\"a\":1}");
  EXPECT_EQ(output[2]["call_id"], "call_1");
  EXPECT_EQ(output[3]["name"], "g");
  std::size_t n_done = 0;
  for (const Json& event : events) {
    if (event["type"] == "response.output_item.done") {
      EXPECT_EQ(event["item"], output[n_done]);
      EXPECT_EQ(event["output_index"], n_done++);
    }
  }
  EXPECT_EQ(n_done, 4u);
  const auto failed = server::responses_shape({.id = "resp_1", .model = "m"}, R"("user":null)");
  body = failed->begin();
  body += failed->piece({.content = "so"});
  EXPECT_EQ(named_events(body).back()["delta"], "so");
  const std::string text = failed->error({500, "It failed.", "internal_error"});
  EXPECT_EQ(text.compare(0, 23, "event: response.failed\n"), 0) << text;
  EXPECT_NE(text.find(R"("code":"internal_error")"), std::string::npos);
}

}  // namespace
}  // namespace cyb::test
