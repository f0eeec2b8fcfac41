// A server whose model says what a test wants: the prompt is ordinary text that ends with '>', the
// answer follows it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/client.hpp"
#include "server/server.hpp"
#include "support/engine_support.hpp"

namespace cyb::test {

inline constexpr const char* kTestTemplate =
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('System must come first!') }}{% endif %}"
    "<{{ m.role }}:{{ m.content }}>{% endfor %}";
inline constexpr std::int32_t kEnd = 257;

/// Ids 256: a control token, 257: the end, 258..261: DEF, GH, IJ, KLM.
inline TextModelOptions test_model(bool chat = true, std::int64_t max_positions = 512) {
  TextModelOptions options;
  options.tokens = {{"<|mark|>", TokenType::kControl},
                    {"<|end|>", TokenType::kControl},
                    {"DEF"},
                    {"GH"},
                    {"IJ"},
                    {"KLM"}};
  options.eos = {kEnd};
  options.max_positions = max_positions;
  if (chat) options.chat.set("template", kTestTemplate);
  return options;
}

/// `answer` after the last '>' of what came before; its last id for ever.
inline Script answer_after_mark(std::vector<std::int32_t> answer) {
  Script script;
  script.row = [answer = std::move(answer)](std::span<const std::int32_t> history,
                                            std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    std::size_t at = 0;
    while (at < history.size() && history[history.size() - 1 - at] != '>') ++at;
    logits[static_cast<std::size_t>(answer[std::min(at, answer.size() - 1)])] = 20.0f;
  };
  return script;
}

inline std::vector<std::int32_t> bytes_of(std::string_view text) {
  std::vector<std::int32_t> out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

/// Each run takes `ms` more.
inline Script slow(Script script, int ms) {
  script.before_run = [ms](const StepParams&) -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return {};
  };
  return script;
}

struct TestServer {
  std::shared_ptr<ScriptedBackend> backend;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<server::Server> server;

  /// `n_contexts`: KV pages for so many full contexts.
  explicit TestServer(Script script = {}, const TextModelOptions& model = test_model(),
                      server::ServerOptions options = {}, std::uint32_t n_contexts = 8) {
    backend = std::make_shared<ScriptedBackend>(std::move(script));
    EngineOptions engine_options;
    engine_options.max_sequences = n_contexts;
    engine_options.max_outputs = 8;
    engine_options.chunk_tokens = 64;
    engine = scripted_engine(text_model(model), backend, engine_options);
    if (options.service.model_name.empty()) options.service.model_name = "test";
    server = value(server::Server::start(engine, std::move(options)));
  }
  std::uint16_t port() const { return server->port(); }
  SchedulerStats stats() const { return server->service().shelf().view(0).stats; }
  Reply chat(nlohmann::json body) const {
    if (!body.contains("messages")) body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
    return post(port(), "/v1/chat/completions", body);
  }
  Reply complete(nlohmann::json body) const {
    if (!body.contains("prompt")) body["prompt"] = "Hi>";
    return post(port(), "/v1/completions", body);
  }
};

/// The texts of a stream by choice; every event is checked for its shape.
inline std::vector<std::string> stream_texts(const Reply& reply, std::size_t n = 1) {
  std::vector<std::string> out(n);
  const auto events = reply.events();
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(events.empty() ? "" : events.back(), "[DONE]");
  for (const std::string& text : events) {
    if (text == "[DONE]") continue;
    const auto chunk = nlohmann::json::parse(text);  // not valid UTF-8 would throw
    for (const auto& choice : chunk.at("choices")) {
      const bool chat = choice.contains("delta");
      const auto& from = chat ? choice["delta"] : choice;
      const char* key = chat ? "content" : "text";
      if (from.contains(key)) out.at(choice["index"]) += from[key].get<std::string>();
    }
  }
  return out;
}

}  // namespace cyb::test
