// A server of several models on scripted backends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/scripted_server.hpp"

namespace cyb::test {

inline EngineOptions small_engine() {
  EngineOptions out;
  out.path = "curated";
  out.max_sequences = out.max_outputs = 8;
  out.chunk_tokens = 64;
  return out;
}

/// A model on a scripted backend; `before` runs in each load.
inline ShelfModel scripted(const std::string& name, Script script = {},
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

inline Script says(std::string_view text) {
  std::vector<std::int32_t> ids = bytes_of(text);
  ids.push_back(kEnd);
  return answer_after_mark(std::move(ids));
}

/// An answer without an end, some milliseconds a token.
inline Script slow(int ms) {
  Script script = answer_after_mark({'x'});
  script.before_run = [ms](const StepParams&) -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return {};
  };
  return script;
}

struct ModelsServer {
  std::unique_ptr<server::Server> server;

  explicit ModelsServer(std::vector<ShelfModel> models, ShelfOptions shelf = {},
                        server::ServerOptions options = {}) {
    shelf.tell = std::chrono::milliseconds(30);
    server = value(server::Server::start(
        value(ModelShelf::create(std::move(models), std::move(shelf))), std::move(options)));
  }
  std::uint16_t port() const { return server->port(); }
  Reply ask_model(const std::string& model, nlohmann::json body = nlohmann::json::object()) const {
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
    const nlohmann::json list = ask(port(), get_text("/v1/models")).json();
    for (const nlohmann::json& model : list["data"]) {
      out += (out.empty() ? "" : " ") + model["state"].get<std::string>();
    }
    return out;
  }
  ShelfView view(std::size_t index) const { return server->service().shelf().view(index); }
};

inline std::vector<ShelfModel> three() {
  std::vector<ShelfModel> out;
  for (const char* name : {"a", "b", "c"}) out.push_back(scripted(name, says(name)));
  return out;
}

/// What one scripted model takes.
inline std::uint64_t need_of_one() {
  std::vector<ShelfModel> models;
  models.push_back(scripted("a"));
  const auto shelf = value(ModelShelf::create(std::move(models), {}));
  CYB_EXPECT_OK(shelf->describe(0));
  return shelf->view(0).memory_bytes;
}

inline ShelfOptions budget(double models) {
  ShelfOptions out;
  out.memory_bytes = static_cast<std::uint64_t>(static_cast<double>(need_of_one()) * models);
  return out;
}

}  // namespace cyb::test
