// An engine without arithmetic behind the targets of the server: byte tokens, a template that shows
// tools and reasoning.
#pragma once

#include <memory>

#include "runtime/engine.hpp"
#include "support/scripted_backend.hpp"
#include "support/tiny_models.hpp"

namespace cyb::fuzz {

inline const Engine& server_engine() {
  static const std::shared_ptr<Engine> engine = [] {
    test::TextModelOptions model;
    model.tokens = {{"<|mark|>", TokenType::kControl}, {"<|end|>", TokenType::kControl}};
    model.eos = {257};
    model.max_positions = 4096;
    model.chat.set("template",
                   "{% if tools %}<tool_call>{{ tools | tojson }}</tool_call>{% endif %}"
                   "{% for m in messages %}<{{ m.role }}:{{ m.content }}"
                   "{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}>{% endfor %}");
    EngineOptions options;
    options.path = "curated";
    return *Engine::load(test::text_model(model), std::make_shared<test::ScriptedBackend>(),
                         options);
  }();
  return *engine;
}

}  // namespace cyb::fuzz
