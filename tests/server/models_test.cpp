// Several models behind one server: loaded when they are asked for, unloaded to make room or when
// their time is over, each with the bits of a server of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "server/model_wait.hpp"
#include "server/models_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

Script other_hash() {
  Script script;
  script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::uint64_t h = 99;
    for (const std::int32_t id : history) h = h * 6364136223846793005ull + std::uint64_t(id) + 1;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      logits[i] = static_cast<float>(((h + i) * 0x9E3779B97F4A7C15ull) >> 40) * 0x1p-22f;
    }
  };
  return script;
}

TEST(ServerModels, AnswersAtOnceHaveTheBitsOfServersOfTheirOwn) {
  std::vector<ShelfModel> models;
  models.push_back(scripted("a"));
  models.push_back(scripted("b", other_hash()));
  const ModelsServer both(std::move(models));
  const TestServer alone_a, alone_b(other_hash());
  std::vector<Json> bodies, solo;
  for (std::size_t i = 0; i < 8; ++i) {
    bodies.push_back({{"prompt", std::string(3 + i * 5, static_cast<char>('a' + i)) + ">"},
                      {"max_tokens", 12 + i},
                      {"seed", 7 + i},
                      {"temperature", 1.0},
                      {"logprobs", 2}});
    solo.push_back((i % 2 == 0 ? alone_a : alone_b).complete(bodies[i]).json()["choices"]);
    ASSERT_TRUE(solo[i].is_array());
  }
  EXPECT_NE(alone_a.complete(bodies[0]).json()["choices"],
            alone_b.complete(bodies[0]).json()["choices"]);
  std::vector<Json> together(bodies.size());
  {
    std::vector<std::jthread> clients;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      clients.emplace_back([&, i] {
        together[i] = both.ask_model(i % 2 == 0 ? "a" : "b", bodies[i]).json()["choices"];
      });
    }
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(together[i], solo[i]) << i;
  const Json first = post(both.port(), "/v1/completions", bodies[0]).json();
  EXPECT_EQ(first["model"], "a");  // the first where none is named
  const Reply unknown = both.ask_model("d");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.code(), "model_not_found");
}

TEST(ServerModels, TheLeastRecentlyUsedMakesRoom) {
  const ModelsServer server(three(), budget(2.5));
  EXPECT_EQ(server.states(), "unloaded unloaded unloaded");
  EXPECT_EQ(server.text_of("a"), "a");
  EXPECT_EQ(server.text_of("b"), "b");
  EXPECT_EQ(server.text_of("a"), "a");
  EXPECT_EQ(server.states(), "loaded loaded unloaded");
  EXPECT_EQ(server.text_of("c"), "c");
  EXPECT_EQ(server.states(), "loaded unloaded loaded");
  EXPECT_EQ(server.text_of("b"), "b");
  EXPECT_EQ(server.states(), "unloaded loaded loaded");
  EXPECT_LE(server.server->service().shelf().used_bytes(),
            server.server->service().shelf().options().memory_bytes);
  const Reply metrics = ask(server.port(), get_text("/metrics"));
  for (const char* line :
       {"cyb_llm_model_loads_total{model=\"b\"} 2\n",
        "cyb_llm_model_unloads_total{model=\"b\"} 1\n",
        "cyb_llm_answers_finished_total{model=\"a\"} 2\n",
        "cyb_llm_answers_finished_total{model=\"b\"} 2\n", "cyb_llm_model_loaded{model=\"a\"} 0\n",
        "cyb_llm_time_to_first_token_seconds_count{model=\"c\"} 1\n"}) {
    EXPECT_NE(metrics.body.find(std::string("\n") + line), std::string::npos)
        << line << metrics.body;
  }
}

TEST(ServerModels, NothingIsUnloadedWhileAStreamRuns) {
  std::vector<ShelfModel> models;
  models.push_back(scripted("a", slow(5)));
  models.push_back(scripted("b", says("b")));
  const ModelsServer server(std::move(models), budget(1.5));
  EXPECT_EQ(server.ask_model("a", {{"max_tokens", 1}}).status, 200);
  Client client(server.port());
  client.send(post_text("/v1/completions",
                        R"({"model":"a","prompt":"a>","stream":true,"max_tokens":200})"));
  ASSERT_TRUE(client.wait_for("data: "));
  const Reply short_of = server.ask_model("b");
  EXPECT_EQ(short_of.status, 503) << short_of.body;
  EXPECT_EQ(short_of.code(), "out_of_memory");
  EXPECT_NE(short_of.head.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(server.state("a"), "loaded");
  EXPECT_EQ(stream_texts(client.reply())[0], std::string(200, 'x'));
  EXPECT_EQ(server.text_of("b"), "b");
  EXPECT_EQ(server.states(), "unloaded loaded");
}

TEST(ServerModels, WhatNeverFitsIsSaidWithBothNumbers) {
  const ModelsServer small(three(), budget(0.5));
  const Reply reply = small.ask_model("a");
  EXPECT_EQ(reply.status, 507) << reply.body;
  EXPECT_EQ(reply.code(), "model_too_large");
  EXPECT_NE(reply.body.find(std::to_string(small.view(0).memory_bytes)), std::string::npos)
      << reply.body;
  const std::uint64_t most = small.server->service().shelf().options().memory_bytes;
  EXPECT_NE(reply.body.find(std::to_string(most)), std::string::npos) << reply.body;
  std::vector<ShelfModel> pinned = three();
  pinned[0].pinned = true;
  const ModelsServer server(std::move(pinned), budget(1.5));
  EXPECT_EQ(server.text_of("a"), "a");
  EXPECT_EQ(server.ask_model("b").status, 507);
  EXPECT_EQ(server.state("a"), "loaded");
}

TEST(ServerModels, KeepAliveIsKept) {
  const ModelsServer server(three());
  const auto generate = [&](Json body) {
    body["stream"] = false;
    return post(server.port(), "/api/generate", body);
  };
  const auto unloaded = [&](const char* model) {
    return soon([&] { return server.state(model) == "unloaded"; });
  };
  EXPECT_EQ(generate({{"model", "a"}, {"prompt", "Hi"}}).status, 200);
  EXPECT_EQ(generate({{"model", "b"}, {"prompt", "Hi"}, {"keep_alive", 0}}).status, 200);
  EXPECT_TRUE(unloaded("b"));
  EXPECT_EQ(generate({{"model", "b"}, {"prompt", "Hi"}, {"keep_alive", "300ms"}}).status, 200);
  EXPECT_EQ(server.state("b"), "loaded");
  EXPECT_TRUE(unloaded("b"));
  EXPECT_EQ(server.state("a"), "loaded");  // it stays without one
  const Json loaded = generate({{"model", "c"}, {"keep_alive", "1h"}}).json();
  EXPECT_EQ(loaded["done_reason"], "load");
  EXPECT_EQ(server.state("c"), "loaded");
  const Json running = ask(server.port(), get_text("/api/ps")).json()["models"];
  ASSERT_EQ(running.size(), 2u);
  EXPECT_EQ(running[0]["expires_at"], "2318-01-01T00:00:00Z");
  EXPECT_TRUE(running[1]["expires_at"].get<std::string>().starts_with("20")) << running;
  EXPECT_EQ(ask(server.port(), get_text("/api/tags")).json()["models"].size(), 3u);
  EXPECT_EQ(generate({{"model", "c"}, {"keep_alive", 0}}).json()["done_reason"], "unload");
  EXPECT_EQ(server.state("c"), "unloaded");
  ShelfOptions options;
  options.keep_alive = milliseconds(0);
  const ModelsServer brief(three(), options);
  EXPECT_EQ(brief.text_of("a"), "a");
  EXPECT_TRUE(soon([&] { return brief.state("a") == "unloaded"; }));
}

TEST(ServerModels, KeepAliveTimes) {
  using server::parse_keep_alive;
  EXPECT_EQ(parse_keep_alive("5m"), milliseconds(300000));
  EXPECT_EQ(parse_keep_alive("1h30m"), milliseconds(5400000));
  EXPECT_EQ(parse_keep_alive("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_keep_alive("20"), milliseconds(20000));
  EXPECT_EQ(parse_keep_alive("0"), milliseconds(0));
  for (const char* text : {"-1", "-1m", "999999999999999999h"}) {
    EXPECT_LT(value(Result<KeepAlive>(*parse_keep_alive(text))).count(), 0) << text;
  }
  for (const char* text : {"", "-", "m", "5x", "5 m", "--1", "1e3", "nan", "inf", "5m-1s"}) {
    EXPECT_FALSE(parse_keep_alive(text).has_value()) << text;
  }
}

TEST(ServerModels, FirstRequestsAtOnceLoadOnce) {
  std::promise<void> open;
  const std::shared_future<void> opened = open.get_future().share();
  std::atomic<int> n_loads = 0;
  std::vector<ShelfModel> models;
  models.push_back(scripted("a", says("a")));
  models.push_back(scripted("b", says("b"), [&, opened]() -> Result<void> {
    ++n_loads;
    opened.wait();
    return {};
  }));
  const ModelsServer server(std::move(models));
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 6; ++i) {
    answers.push_back(std::async(std::launch::async, [&] { return server.text_of("b"); }));
  }
  ASSERT_TRUE(soon([&] { return n_loads == 1; }));
  EXPECT_EQ(server.state("b"), "loading");
  {
    Client gone(server.port());
    gone.send(post_text("/v1/completions", R"({"model":"b","prompt":"a>"})"));
    ::usleep(50000);
  }
  EXPECT_TRUE(soon([&] {  // it waits no longer: 499 in the counters, before the load is over
    return ask(server.port(), get_text("/metrics"))
               .body.find(R"(route="completions",code="499"} 1)") != std::string::npos;
  }));
  open.set_value();
  for (auto& answer : answers) EXPECT_EQ(answer.get(), "b");
  EXPECT_EQ(n_loads, 1);
  EXPECT_EQ(server.view(1).loads, 1u);
  EXPECT_EQ(server.view(1).stats.submitted, 6u);
}

TEST(ServerModels, AFailedLoadIsToldAndTriedAgain) {
  std::atomic<int> n = 0;
  std::vector<ShelfModel> models;
  models.push_back(scripted("a", says("a"), [&]() -> Result<void> {
    return ++n > 1 ? Result<void>() : fail(io_error("/secret/path", "open", "gone"));
  }));
  const ModelsServer server(std::move(models));
  const Reply reply = server.ask_model("a");
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.code(), "model_load_failed");
  EXPECT_EQ(reply.body.find("secret"), std::string::npos);
  EXPECT_EQ(server.state("a"), "unloaded");
  EXPECT_EQ(server.text_of("a"), "a");
  EXPECT_EQ(server.view(0).failed_loads, 1u);
}

TEST(ServerModels, AStreamThatWaitsHasComments) {
  std::atomic<int> n = 0;
  std::vector<ShelfModel> models;
  models.push_back(scripted("a", says("hello"), [&]() -> Result<void> {
    ::usleep(400000);
    return ++n > 1 ? Result<void>() : fail(io_error("x", "open", "gone"));
  }));
  const ModelsServer server(std::move(models));
  const Reply failed = server.ask_model("a", {{"stream", true}});
  EXPECT_EQ(failed.status, 200);
  EXPECT_TRUE(failed.body.starts_with(": loading a 42 %\n\n")) << failed.body;
  EXPECT_NE(failed.body.find("data: {\"error\":{"), std::string::npos) << failed.body;
  EXPECT_EQ(failed.body.find("[DONE]"), std::string::npos);
  Reply reply = server.ask_model("a", {{"stream", true}});
  std::size_t n_comments = 0;
  while (reply.body.starts_with(": loading a ")) {
    reply.body.erase(0, reply.body.find("\n\n") + 2);
    ++n_comments;
  }
  EXPECT_GE(n_comments, 2u);
  EXPECT_EQ(stream_texts(reply)[0], "hello");
}

TEST(ServerModels, DrainEndsThoseThatWait) {
  std::promise<void> open;
  const std::shared_future<void> opened = open.get_future().share();
  std::vector<ShelfModel> models;
  models.push_back(scripted("a", says("a"), [opened]() -> Result<void> {
    opened.wait();
    return {};
  }));
  ModelsServer server(std::move(models));
  auto waiting = std::async(std::launch::async, [&] { return server.ask_model("a"); });
  ASSERT_TRUE(soon([&] { return server.view(0).state == ShelfState::kLoading; }));
  EXPECT_TRUE(server.server->drain());
  EXPECT_EQ(waiting.get().code(), "shutting_down");
  open.set_value();
}

}  // namespace
}  // namespace cyb::test
