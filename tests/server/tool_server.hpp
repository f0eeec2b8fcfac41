// A server whose model says what a test wants after the mark at the end of its prompt, as far as a
// grammar lets it.
#pragma once

#include <memory>
#include <string>

#include "server/scripted_server.hpp"

namespace cyb::test {

inline constexpr std::int32_t kMark = 256;
inline constexpr const char* kHermes =
    "{% if tools %}<tools:{{ tools | tojson }}>{% endif %}{% for m in messages %}"
    "<{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}"
    "<tool_call>{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}>"
    "{% endfor %}<|mark|>";

struct Said {
  std::string prompt;  // of the latest run
  std::string answer;
};

inline Script say(const std::shared_ptr<Said>& said) {
  Script script;
  script.row = [said](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    std::size_t mark = history.size();
    while (mark > 0 && history[mark - 1] != kMark) --mark;
    said->prompt.clear();
    for (std::size_t i = 0; i + 1 < mark; ++i) said->prompt += static_cast<char>(history[i]);
    const std::size_t at = history.size() - mark;
    const std::int32_t next =
        at < said->answer.size() ? static_cast<unsigned char>(said->answer[at]) : kEnd;
    logits[static_cast<std::size_t>(next)] = 20.0f;
  };
  return script;
}

struct ToolServer {
  std::shared_ptr<Said> said = std::make_shared<Said>();
  TestServer server;
  explicit ToolServer(const std::string& answer, const std::string& chat_template = kHermes)
      : server(say(said), model(chat_template)) {
    said->answer = answer;
  }
  static TextModelOptions model(const std::string& chat_template) {
    TextModelOptions options = test_model(false, 4096);
    options.chat.set("template", chat_template);
    return options;
  }
  Reply chat(nlohmann::json body) const {
    body["temperature"] = 0;
    return server.chat(std::move(body));
  }
  Reply post_to(const char* path, nlohmann::json body) const {
    return post(server.port(), path, body);
  }
};

inline const nlohmann::json kTools = nlohmann::json::parse(R"([
  {"type": "function", "function": {"name": "get_weather", "description": "now",
   "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Paris"], "type": "string"}},
                  "required": ["city"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "stop_it"}}])");

inline const std::string kCall =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>";

}  // namespace cyb::test
