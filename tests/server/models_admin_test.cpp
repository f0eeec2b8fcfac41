// Who may load and unload models; adapters as models of their own.
#include <gtest/gtest.h>

#include "server/models_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

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

}  // namespace
}  // namespace cyb::test
