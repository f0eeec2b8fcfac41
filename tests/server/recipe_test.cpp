// The recipe in every answer and the hash of its request: docs/http-api.md defines both.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/hash.hpp"
#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

Script hello() {
  std::vector<std::int32_t> ids = bytes_of("Hello");
  ids.push_back(kEnd);
  return answer_after_mark(std::move(ids));
}

Json recipe_of(const Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json()["cyb_llm"];
}

std::string hash_of(const Reply& reply) {
  const std::string hash = recipe_of(reply)["request_hash"];
  EXPECT_TRUE(hash.starts_with("blake3:") && parse_digest(hash)) << hash;
  return hash;
}

std::string digest_of(const std::vector<std::int32_t>& ids) {
  std::string bytes(ids.size() * sizeof(std::int32_t), '\0');
  std::memcpy(bytes.data(), ids.data(), bytes.size());
  return digest_text(blake3(bytes));
}

TEST(ServerRecipe, TheHashIsOfTheTextThatTheDocumentDefines) {
  const TestServer server(hello());
  const Json recipe = recipe_of(server.chat({{"seed", 5},
                                             {"temperature", 0.8},
                                             {"top_p", 0.95},
                                             {"presence_penalty", 0.5},
                                             {"logit_bias", {{"70", 1.5}, {"9", -2}}},
                                             {"stop", "a\"b"}}));
  const std::string sampler =
      R"([{"name":"logit_bias","bias":[[9,-2],[70,1.5]]},)"
      R"({"name":"penalties","repetition_penalty":1,"presence_penalty":0.5,"frequency_penalty":0,"last_n":0},)"
      R"({"name":"temperature","temperature":0.8},{"name":"top_p","top_p":0.95}])";
  const std::string text =
      "cyb-llm request 1\nmodel " + server.engine->model_id() + "\nnumerics " +
      server.engine->numerics() + "\ntemplate " + digest_text(blake3(kTestTemplate)) +
      "\nprompt 9 " + digest_of(bytes_of("<user:Hi>")) +
      "\nseed 5\nanswers 1\nlimit 503\noverflow error\nend heeded\nsampler " + sampler +
      "\nstop [\"a\\\"b\"]\nconstraint none\n"
      "reading none [] \"\" \"\" outside []\n";
  EXPECT_EQ(recipe["request_hash"], digest_text(blake3(text))) << text;
  EXPECT_EQ(recipe["sampler"], Json::parse(sampler));
  EXPECT_EQ(recipe["template"], digest_text(blake3(kTestTemplate)));
  EXPECT_EQ(recipe["numerics"], server.engine->numerics());
  EXPECT_EQ(recipe["context_tokens"], 512);
  EXPECT_EQ(recipe["kv"], dtype_name(server.engine->kv_dtype()));
  EXPECT_EQ(recipe["seed"], 5);
}

TEST(ServerRecipe, DefaultsAndTheOrderOfFieldsAreNoOtherRequest) {
  const TestServer server(hello());
  const std::string hash = hash_of(server.chat({{"seed", 5}}));
  const auto spelled = [&](const std::string& members) {
    return hash_of(ask(server.port(), post_text("/v1/chat/completions", "{" + members + "}")));
  };
  EXPECT_EQ(spelled(R"("seed": 5, "messages": [{"content": "Hi", "role": "user"}])"), hash);
  EXPECT_EQ(spelled(R"("messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
      "seed": 5.0, "n": 1, "max_tokens": 503, "temperature": 0, "top_p": 1, "top_k": 0, "min_p": 0.0,
      "stop": [], "logit_bias": {}, "presence_penalty": -0.0, "repetition_penalty": 1, "tools": [],
      "overflow": "error", "ignore_eos": false, "response_format": {"type": "text"}, "user": null)"),
            hash);
  // What is shown of an answer is no part of its bits.
  EXPECT_EQ(hash_of(server.chat(
                {{"seed", 5}, {"logprobs", true}, {"top_logprobs", 4}, {"user", "somebody"}})),
            hash);
  // More room than there is.
  EXPECT_EQ(hash_of(server.chat({{"seed", 5}, {"max_tokens", 100000}})), hash);
  const auto events = server.chat({{"seed", 5}, {"stream", true}}).events();
  EXPECT_EQ(Json::parse(events[events.size() - 2])["cyb_llm"]["request_hash"], hash);
}

TEST(ServerRecipe, WhatCanChangeTheBitsChangesTheHash) {
  const TestServer server(hello());
  std::set<std::string> seen = {hash_of(server.chat({{"seed", 5}}))};
  const Json more[] = {
      {{"seed", 6}},
      {{"seed", 5}, {"n", 2}},
      {{"seed", 5}, {"max_tokens", 3}},
      {{"seed", 5}, {"stop", "x"}},
      {{"seed", 5}, {"stop", {"x", "y"}}},
      {{"seed", 5}, {"temperature", 0.5}},
      {{"seed", 5}, {"temperature", 0.5}, {"top_k", 7}},
      {{"seed", 5}, {"temperature", 0.5}, {"min_p", 0.1}},
      {{"seed", 5}, {"temperature", 0.5}, {"typical_p", 0.9}},
      {{"seed", 5}, {"repetition_penalty", 1.1}},
      {{"seed", 5}, {"frequency_penalty", 0.1}},
      {{"seed", 5}, {"logit_bias", {{"72", 1}}}},
      {{"seed", 5}, {"logit_bias", {{"72", 2}}}},
      {{"seed", 5}, {"overflow", "truncate"}},
      {{"seed", 5}, {"overflow", "shift"}, {"max_tokens", 4}},
      {{"seed", 5}, {"ignore_eos", true}, {"max_tokens", 503}},
      {{"seed", 5}, {"regex", "Hello"}},
      {{"seed", 5}, {"regex", "Hell[o]"}},
      {{"seed", 5}, {"grammar", "root ::= \"Hello\""}},
      {{"seed", 5}, {"messages", {{{"role", "user"}, {"content", "Ho"}}}}},
      {{"seed", 5}, {"messages", {{{"role", "system"}, {"content", "Hi"}}}}},
  };
  for (const Json& request : more) {
    EXPECT_TRUE(seen.insert(hash_of(server.chat(request))).second) << request;
  }
  // A text has no template; another model is another request.
  EXPECT_TRUE(seen.insert(hash_of(server.complete({{"seed", 5}, {"prompt", "<user:Hi>"}}))).second);
  const TestServer other(hello(), test_model(true, 256));
  EXPECT_TRUE(seen.insert(hash_of(other.chat({{"seed", 5}, {"max_tokens", 3}}))).second);
}

TEST(ServerRecipe, ASeedThatWasDrawnGivesTheSameHashAgain) {
  const TestServer server(hello());
  const Json first = recipe_of(server.chat(Json::object())),
             second = recipe_of(server.chat(Json::object()));
  EXPECT_NE(first["seed"], second["seed"]);
  EXPECT_NE(first["request_hash"], second["request_hash"]);
  EXPECT_EQ(recipe_of(server.chat({{"seed", first["seed"]}})), first);
}

TEST(ServerRecipe, OtherApisNameTheSameRequest) {
  const TestServer server(hello());
  const std::string hash = hash_of(server.chat({{"seed", 5}, {"max_tokens", 20}}));
  EXPECT_EQ(hash_of(post(server.port(), "/v1/responses",
                         {{"input", "Hi"}, {"seed", 5}, {"max_output_tokens", 20}})),
            hash);
  EXPECT_EQ(hash_of(post(server.port(), "/api/chat",
                         {{"model", "test"},
                          {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                          {"stream", false},
                          {"options", {{"seed", 5}, {"num_predict", 20}}}})),
            hash);
}

TEST(ServerRecipe, NoTextOfTheRequestIsInTheRecipeNorTheHashInTheLog) {
  std::mutex mutex;
  std::string log;
  server::ServerOptions options;
  options.service.log = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    log += line;
  };
  std::string hash, recipe;
  {
    const TestServer server(hello(), test_model(), std::move(options));
    const Json made = recipe_of(server.chat(
        {{"messages", {{{"role", "user"}, {"content", "my secret"}}}}, {"stop", "hidden"}}));
    hash = made["request_hash"];
    recipe = made.dump();
  }
  EXPECT_EQ(recipe.find("secret"), std::string::npos) << recipe;
  EXPECT_EQ(recipe.find("hidden"), std::string::npos) << recipe;
  EXPECT_FALSE(log.empty());
  EXPECT_EQ(log.find(hash.substr(7, 16)), std::string::npos) << log;
  EXPECT_EQ(log.find("secret"), std::string::npos) << log;
}

}  // namespace
}  // namespace cyb::test
