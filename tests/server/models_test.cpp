// Several models behind one server: loaded when they are asked for, unloaded to make room or when
// their time is over, each with the bits of a server of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "server/model_wait.hpp"
#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

EngineOptions small_engine() {
  EngineOptions out;
  out.path = "curated";
  out.max_sequences = out.max_outputs = 8;
  out.chunk_tokens = 64;
  return out;
}

/// A model on a scripted backend; `before` runs in each load.
ShelfModel scripted(const std::string& name, Script script = {},
                    std::function<Result<void>()> before = {}) {
  ShelfModel out;
  out.name = name;
  out.engine = small_engine();
  out.backend = std::make_shared<ScriptedBackend>(std::move(script));
  out.open = [before, model = text_model(test_model())](
                 const std::stop_token&,
                 const ShelfModel::Progress& progress) -> Result<std::shared_ptr<const Model>> {
    progress(42, 100);
    if (before) CYB_TRY(before());
    return model;
  };
  return out;
}

Script says(std::string_view text) {
  std::vector<std::int32_t> ids = bytes_of(text);
  ids.push_back(kEnd);
  return answer_after_mark(std::move(ids));
}

/// An answer without an end, some milliseconds a token.
Script slow(int ms) {
  Script script = answer_after_mark({'x'});
  script.before_run = [ms](const StepParams&) -> Result<void> {
    std::this_thread::sleep_for(milliseconds(ms));
    return {};
  };
  return script;
}

struct ModelsServer {
  std::unique_ptr<server::Server> server;

  explicit ModelsServer(std::vector<ShelfModel> models, ShelfOptions shelf = {},
                        server::ServerOptions options = {}) {
    shelf.tell = milliseconds(30);
    server = value(server::Server::start(
        value(ModelShelf::create(std::move(models), std::move(shelf))), std::move(options)));
  }
  std::uint16_t port() const { return server->port(); }
  Reply ask_model(const std::string& model, Json body = Json::object()) const {
    body["model"] = model;
    if (!body.contains("prompt")) body["prompt"] = "Hi>";
    return post(port(), "/v1/completions", body);
  }
  std::string text_of(const std::string& model) const {
    const Reply reply = ask_model(model);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.status == 200 ? reply.json()["choices"][0]["text"].get<std::string>() : "";
  }
  std::string state(const std::string& model) const {
    return ask(port(), get_text("/v1/models/" + model)).json()["state"];
  }
  std::string states() const {
    std::string out;
    const Json list = ask(port(), get_text("/v1/models")).json();
    for (const Json& model : list["data"]) {
      out += (out.empty() ? "" : " ") + model["state"].get<std::string>();
    }
    return out;
  }
  ShelfView view(std::size_t index) const { return server->service().shelf().view(index); }
};

std::vector<ShelfModel> three() {
  std::vector<ShelfModel> out;
  for (const char* name : {"a", "b", "c"}) out.push_back(scripted(name, says(name)));
  return out;
}

/// What one scripted model takes.
std::uint64_t need_of_one() {
  std::vector<ShelfModel> models;
  models.push_back(scripted("a"));
  const auto shelf = value(ModelShelf::create(std::move(models), {}));
  CYB_EXPECT_OK(shelf->describe(0));
  return shelf->view(0).memory_bytes;
}

ShelfOptions budget(double models) {
  ShelfOptions out;
  out.memory_bytes = static_cast<std::uint64_t>(static_cast<double>(need_of_one()) * models);
  return out;
}

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
  EXPECT_NE(alone_a.complete(bodies[0]).json()["choices"], alone_b.complete(bodies[0]).json()["choices"]);
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
  for (const char* line : {"cyb_llm_model_loads_total{model=\"b\"} 2\n", "cyb_llm_model_unloads_total{model=\"b\"} 1\n",
                           "cyb_llm_answers_finished_total{model=\"a\"} 2\n",
                           "cyb_llm_answers_finished_total{model=\"b\"} 2\n",
                           "cyb_llm_model_loaded{model=\"a\"} 0\n",
                           "cyb_llm_time_to_first_token_seconds_count{model=\"c\"} 1\n"}) {
    EXPECT_NE(metrics.body.find(std::string("\n") + line), std::string::npos) << line << metrics.body;
  }
}

TEST(ServerModels, NothingIsUnloadedWhileAStreamRuns) {
  std::vector<ShelfModel> models;
  models.push_back(scripted("a", slow(5)));
  models.push_back(scripted("b", says("b")));
  const ModelsServer server(std::move(models), budget(1.5));
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
  EXPECT_NE(reply.body.find(std::to_string(small.view(0).memory_bytes)), std::string::npos) << reply.body;
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
    return ask(server.port(), get_text("/metrics")).body.find(R"(route="completions",code="499"} 1)") !=
           std::string::npos;
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

TEST(ServerModels, LoadingAndUnloadingNeedAnAdminKey) {
  const std::string normal = "0123456789abcdef", admin = "fedcba9876543210";
  const auto change = [](const ModelsServer& server, const char* what, const std::string& key) {
    const std::string head = key.empty() ? "" : "Authorization: Bearer " + key + "\r\n";
    return ask(server.port(),
               post_text(std::string("/v1/models/") + what, R"({"model":"b"})", head));
  };
  const ModelsServer open(three());
  EXPECT_EQ(change(open, "load", "").json()["state"], "loaded");
  EXPECT_EQ(open.state("b"), "loaded");
  EXPECT_EQ(change(open, "unload", "").json()["state"], "unloaded");
  EXPECT_EQ(change(open, "unload", "").status, 200);  // it is
  EXPECT_EQ(post(open.port(), "/v1/models/load", {{"model", "x"}}).code(), "model_not_found");
  EXPECT_EQ(post(open.port(), "/v1/models/load", {{"modle", "b"}}).code(), "unknown_parameter");
  EXPECT_EQ(post(open.port(), "/v1/models/load", Json::object()).status, 400);
  server::ServerOptions options;
  options.service.access.keys = value(server::read_keys(normal, "f"));
  const ModelsServer keys(three(), {}, options);
  EXPECT_EQ(change(keys, "load", "").status, 401);
  EXPECT_EQ(change(keys, "load", normal).status, 403);
  EXPECT_EQ(change(keys, "load", normal).code(), "admin_key_required");
  options.service.access.admin_keys = value(server::read_keys(admin, "f"));
  options.service.access.keys.push_back(options.service.access.admin_keys[0]);
  std::vector<ShelfModel> models = three();
  models[2].pinned = true;
  const ModelsServer both(std::move(models), {}, options);
  EXPECT_EQ(change(both, "load", normal).code(), "admin_key_required");
  EXPECT_EQ(change(both, "load", admin).json()["state"], "loaded");
  EXPECT_EQ(change(both, "unload", normal).status, 403);
  EXPECT_EQ(change(both, "unload", admin).json()["state"], "unloaded");
  const std::string head = "Authorization: Bearer " + admin + "\r\n";
  EXPECT_EQ(ask(both.port(), get_text("/v1/models", head)).status, 200);
  const Reply pinned = ask(both.port(), post_text("/v1/models/unload", R"({"model":"c"})", head));
  EXPECT_EQ(pinned.status, 409);
  EXPECT_EQ(pinned.code(), "model_pinned");
}

std::shared_ptr<const LoraAdapter> adapter() {
  auto out = std::make_shared<LoraAdapter>();
  out->path = "adapter";
  out->format = "PEFT";
  LoraPair pair;
  pair.tensor = "model.layers.0.mlp.down_proj.weight";
  pair.n_out = 32;
  pair.n_in = 64;
  pair.rank = 2;
  for (int i = 0; i < 2 * 64; ++i) pair.a.push_back(static_cast<float>(i % 7 - 3) * 0.25f);
  for (int i = 0; i < 32 * 2; ++i) pair.b.push_back(static_cast<float>(i % 5 - 2) * 0.5f);
  pair.scale = 4.0;
  out->pairs.push_back(std::move(pair));
  return out;
}

TEST(ServerModels, AnAdapterIsAModelOfItsOwn) {
  std::vector<ShelfModel> models;
  for (const char* name : {"m", "m:pirate"}) {
    models.push_back(scripted(name));
    models.back().backend = nullptr;
    models.back().engine.backend = "reference";
    models.back().engine.pack_cache = false;
  }
  models[1].parent = "m";
  models[1].adapters = [](const Model&) -> Result<std::vector<LoraUse>> {
    return std::vector<LoraUse>{{adapter(), 0.5}};
  };
  const EngineOptions plain = models[0].engine;
  ShelfOptions shelf;
  shelf.memory_bytes = 1ull << 30;
  const ModelsServer server(std::move(models), shelf);
  const auto solo = [&](std::vector<LoraUse> uses, const Json& body) {
    EngineOptions options = plain;
    options.adapters = std::move(uses);
    server::ServerOptions alone;
    alone.service.model_name = "alone";
    const auto one = value(server::Server::start(
        value(Engine::load(text_model(test_model()), options)), std::move(alone)));
    return post(one->port(), "/v1/completions", body).json()["choices"];
  };
  const Json body = {{"prompt", "tell me>"}, {"max_tokens", 8}, {"seed", 3}, {"logprobs", 3}};
  const Json base = server.ask_model("m", body).json()["choices"];
  const Json with = server.ask_model("m:pirate", body).json()["choices"];
  EXPECT_EQ(base, solo({}, body));
  EXPECT_EQ(with, solo({{adapter(), 0.5}}, body));
  EXPECT_NE(base, with);
  const Json listed = ask(server.port(), get_text("/v1/models/m:pirate")).json();
  EXPECT_EQ(listed["parent"], "m");
  EXPECT_TRUE(ask(server.port(), get_text("/v1/models/m")).json()["parent"].is_null());
  // The file's weights are counted once.
  const std::uint64_t used = server.server->service().shelf().used_bytes();
  EXPECT_LT(used, server.view(0).memory_bytes + server.view(1).memory_bytes);
  EXPECT_GT(used, server.view(0).memory_bytes);
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
