// Ollama's API: objects and lines, options, names, errors in its shape.
#include "server/ollama_shape.hpp"

#include <gtest/gtest.h>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

const TestServer& quick_server() {
  static const TestServer server(answer_after_mark({'o', 'k', kEnd}));
  return server;
}

Reply chat(Json body) {
  if (!body.contains("messages")) body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
  return post(quick_server().port(), "/api/chat", body);
}

Reply generate(Json body) {
  if (!body.contains("prompt")) body["prompt"] = "Hi";
  return post(quick_server().port(), "/api/generate", body);
}

std::vector<Json> lines(const Reply& reply) {
  std::vector<Json> out;
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("application/x-ndjson"), std::string::npos) << reply.head;
  for (std::size_t at = 0; at < reply.body.size();) {
    const std::size_t end = reply.body.find('\n', at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "the last line does not end";
      break;
    }
    out.push_back(Json::parse(reply.body.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

void expect_last(const Json& last, std::size_t n_prompt) {
  EXPECT_EQ(last["model"], "test");
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], "stop");
  EXPECT_EQ(last["prompt_eval_count"], n_prompt) << last;
  EXPECT_EQ(last["eval_count"], 2);
  EXPECT_EQ(last["created_at"].get<std::string>().size(),
            std::string("2025-01-31T12:00:00Z").size());
  for (const char* name : {"total_duration", "prompt_eval_duration", "eval_duration"}) {
    EXPECT_TRUE(last[name].is_number_integer()) << last;
  }
  EXPECT_GT(last["total_duration"], 0);
}

TEST(ServerOllama, AnswersWholeAndInLines) {
  const Json whole = chat({{"model", "test:latest"}, {"stream", false}}).json();
  EXPECT_EQ(whole["message"]["role"], "assistant");
  EXPECT_EQ(whole["message"]["content"], "ok");
  expect_last(whole, 9);
  std::string text;
  const auto streamed = lines(chat({}));  // the default
  for (const Json& line : streamed) {
    text += line["message"]["content"].get<std::string>();
    EXPECT_EQ(line["done"], &line == &streamed.back());
  }
  EXPECT_EQ(text, "ok");
  expect_last(streamed.back(), 9);
  text.clear();
  const auto pieces = lines(generate({{"options", {{"temperature", 0}}}}));
  for (const Json& line : pieces) text += line["response"].get<std::string>();
  EXPECT_EQ(text, "ok");
  expect_last(pieces.back(), 9);
  expect_last(generate({{"stream", false}, {"prompt", "a>"}, {"raw", true}}).json(), 2);
  expect_last(generate({{"stream", false}, {"system", "Be"}}).json(),
              std::string("<system:Be><user:Hi>").size());
  const Json probed = generate({{"stream", false}, {"logprobs", true}, {"top_logprobs", 2}}).json();
  ASSERT_EQ(probed["logprobs"].size(), 2u) << probed;
  EXPECT_EQ(probed["logprobs"][0]["token"], "o");
  EXPECT_EQ(probed["logprobs"][0]["top_logprobs"].size(), 2u);
}

TEST(ServerOllama, OptionsAreThoseOfTheApi) {
  const Json cut = chat({{"stream", false}, {"options", {{"num_predict", 1}}}}).json();
  EXPECT_EQ(cut["done_reason"], "length");
  EXPECT_EQ(cut["message"]["content"], "o");
  const Json options = {{"temperature", 0.5},
                        {"top_k", 5},
                        {"top_p", 0.9},
                        {"min_p", 0.1},
                        {"typical_p", 0.9},
                        {"repeat_penalty", 1.1},
                        {"presence_penalty", 0},
                        {"frequency_penalty", 0},
                        {"seed", 42},
                        {"num_predict", -2},
                        {"num_ctx", 512},
                        {"stop", Json::array({"k"})},
                        {"mirostat", 0}};
  const Json json = chat({{"stream", false}, {"options", options}}).json();
  EXPECT_EQ(json["message"]["content"], "o") << json;
  EXPECT_EQ(json["cyb_llm"]["seed"], 42);
  EXPECT_NE(chat({{"stream", false}, {"options", {{"seed", -1}}}}).json()["cyb_llm"]["seed"],
            chat({{"stream", false}, {"options", {{"seed", -1}}}}).json()["cyb_llm"]["seed"]);
}

TEST(ServerOllama, RefusalsHaveItsShapeAndTheClientsNames) {
  const auto refused = [](const Reply& reply, const std::string& code, const std::string& field) {
    EXPECT_EQ(reply.status, 400) << reply.body;
    const Json json = reply.json();
    EXPECT_EQ(json["code"], code) << json;
    EXPECT_EQ(json["param"].get<std::string>(), field) << json;
    EXPECT_NE(json["error"].get<std::string>().find(field), std::string::npos) << json;
  };
  const auto option = [](const char* name, const Json& value) {
    return chat({{"options", {{name, value}}}});
  };
  refused(option("num_ctx", 513), "invalid_value", "options.num_ctx");
  refused(option("num_predict", 0), "invalid_value", "options.num_predict");
  refused(option("num_gpu", 1), "unsupported_parameter", "options.num_gpu");
  refused(option("frobnicate", 1), "unknown_parameter", "options.frobnicate");
  refused(option("typical_p", 0), "invalid_value", "options.typical_p");
  refused(option("repeat_penalty", 0), "invalid_value", "options.repeat_penalty");
  refused(option("stop", Json::array({""})), "invalid_value", "options.stop");
  refused(chat({{"top_logprobs", 1}}), "invalid_value", "top_logprobs");
  refused(generate({{"raw", true}, {"top_logprobs", 1}}), "invalid_value", "top_logprobs");
  refused(generate({{"raw", true}, {"system", "a"}}), "invalid_value", "system");
  refused(generate({{"template", "a"}}), "unsupported_parameter", "template");
  refused(generate({{"images", Json::array({"aGk="})}}), "unsupported_parameter", "images");
  refused(chat({{"keep_alive", "soon"}}), "invalid_value", "keep_alive");
  refused(chat({{"format", "xml"}}), "invalid_value", "format");
  refused(chat({{"think", "high"}}), "invalid_type", "think");
  refused(chat({{"messages", Json::array({Json{{"role", "user"}}})}}), "invalid_value",
          "messages[0].content");
  refused(generate({{"prompt", std::string(600, 'a')}}), "context_length_exceeded", "prompt");
  EXPECT_EQ(chat({{"model", "other"}}).status, 404);
  EXPECT_EQ(chat({{"model", "other"}}).json()["code"], "model_not_found");
  const std::uint16_t port = quick_server().port();
  EXPECT_EQ(ask(port, get_text("/api/nothing")).json()["code"], "not_found");
  EXPECT_TRUE(ask(port, get_text("/api/nothing")).json()["error"].is_string());
  EXPECT_EQ(ask(port, post_text("/api/chat", "{")).json()["code"], "invalid_json");
}

TEST(ServerOllama, WhatTheServerHas) {
  const TestServer& server = quick_server();
  const Json tags = ask(server.port(), get_text("/api/tags")).json();
  ASSERT_EQ(tags["models"].size(), 1u);
  EXPECT_EQ(tags["models"][0]["name"], "test");
  EXPECT_EQ(tags["models"][0]["digest"], server.engine->model_id());
  EXPECT_TRUE(tags["models"][0]["details"]["family"].is_string());
  const Json running = ask(server.port(), get_text("/api/ps")).json();
  EXPECT_EQ(running["models"][0]["context_length"], 512);
  const Json shown = post(server.port(), "/api/show", {{"model", "test:latest"}}).json();
  EXPECT_EQ(shown["template"], kTestTemplate);
  EXPECT_EQ(shown["capabilities"], Json::array({"completion", "tools"}));
  EXPECT_EQ(post(server.port(), "/api/show", {{"model", "other"}}).status, 404);
  EXPECT_EQ(post(server.port(), "/api/show", {{"x", 1}}).json()["code"], "unknown_parameter");
  EXPECT_TRUE(ask(server.port(), get_text("/api/version")).json()["version"].is_string());
  for (const char* path : {"/api/embed", "/api/embeddings"}) {
    const Reply reply = post(server.port(), path, {{"model", "test"}, {"input", "a"}});
    EXPECT_EQ(reply.status, 501);
    EXPECT_EQ(reply.json()["code"], "embeddings_not_built");
  }
  EXPECT_EQ(generate({{"prompt", ""}}).json()["done_reason"], "load");
  EXPECT_EQ(chat({{"messages", Json::array()}}).json()["done_reason"], "load");
  EXPECT_EQ(generate({{"prompt", ""}, {"model", "other"}}).status, 404);
}

TEST(ServerOllama, ThinkingAndCalls) {
  const auto shape = server::ollama_shape({.model = "m"}, true);
  const server::ToolCallPiece first{0, "call_1", "f", "{\"a\""}, more{0, "", "", ":1}"},
      second{1, "call_2", "g", ""};
  EXPECT_EQ(Json::parse(shape->piece({.reasoning = "why"}))["message"]["thinking"], "why");
  for (const auto& call : {first, more, second}) {
    EXPECT_EQ(shape->piece({.tool_calls = {&call, 1}}), "");
  }
  const Json calls = Json::parse(shape->finish({.tool_calls = true}))["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["function"], (Json{{"name", "f"}, {"arguments", {{"a", 1}}}}));
  EXPECT_EQ(calls[1]["function"]["arguments"], Json::object());
  EXPECT_EQ(Json::parse(shape->error({500, "It failed.", "internal_error"}))["error"],
            "It failed.");
}

}  // namespace
}  // namespace cyb::test
