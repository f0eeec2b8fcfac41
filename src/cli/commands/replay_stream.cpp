// All pieces of a stream together are the answer that is not streamed (docs/http-api.md). The text
// comes from a file: nothing in it is taken for granted.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "cli/commands/replay_saved.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMostChoices = 16, kMostCalls = 1024;

struct Choice {
  std::string content, reasoning;
  std::vector<Json> calls;
  Json logprobs, finish;  // null until there are some
};

Error no_stream(std::string_view what) {
  return {ErrorKind::kInvalidInput, "R01", fmt::format("`stream`: {}", what)};
}

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

void add_text(const Json& object, const char* name, std::string& out) {
  const Json* text = member(object, name);
  if (text != nullptr && text->is_string()) out += text->get_ref<const std::string&>();
}

std::optional<std::uint64_t> index_of(const Json& object, std::uint64_t most) {
  const Json* index = member(object, "index");
  if (index == nullptr || !index->is_number_unsigned()) return std::nullopt;
  const auto at = index->get<std::uint64_t>();
  return at < most ? std::optional(at) : std::nullopt;
}

class Joiner {
 public:
  explicit Joiner(bool chat) : chat_(chat) {}

  Result<void> add(const Json& chunk) {
    if (!chunk.is_object()) return fail(no_stream("an event is no JSON object"));
    if (member(chunk, "error") != nullptr) return fail(no_stream("it ended with an error"));
    for (const char* name : {"id", "created", "model", "system_fingerprint", "usage", "cyb_llm"}) {
      if (const Json* value = member(chunk, name)) head_[name] = *value;
    }
    const Json* choices = member(chunk, "choices");
    if (choices == nullptr || !choices->is_array()) return {};
    for (const Json& choice : *choices) CYB_TRY(add_choice(choice));
    return {};
  }

  Json whole() {
    Json choices = Json::array();
    for (auto& [index, choice] : choices_) choices.push_back(choice_json(index, choice));
    head_["object"] = chat_ ? "chat.completion" : "text_completion";
    head_["choices"] = std::move(choices);
    return std::move(head_);
  }

 private:
  Result<void> add_choice(const Json& part) {
    const auto index = index_of(part, kMostChoices);
    if (!index) return fail(no_stream("a choice has no `index` from 0 to 15"));
    Choice& choice = choices_[*index];
    if (const Json* finish = member(part, "finish_reason")) choice.finish = *finish;
    if (const Json* logprobs = member(part, "logprobs")) add_logprobs(*logprobs, choice.logprobs);
    if (!chat_) add_text(part, "text", choice.content);
    const Json* delta = member(part, "delta");
    if (delta == nullptr) return {};
    add_text(*delta, "content", choice.content);
    add_text(*delta, "reasoning_content", choice.reasoning);
    const Json* calls = member(*delta, "tool_calls");
    if (calls == nullptr || !calls->is_array()) return {};
    for (const Json& call : *calls) CYB_TRY(add_call(call, choice.calls));
    return {};
  }

  /// Lists grow, all else is what it was first.
  static void add_logprobs(const Json& part, Json& out) {
    if (!part.is_object()) return;
    if (!out.is_object()) {
      out = part;
      return;
    }
    for (const auto& [name, value] : part.items()) {
      if (!value.is_array() || !out.contains(name) || !out[name].is_array()) continue;
      for (const Json& item : value) out[name].push_back(item);
    }
  }

  static Result<void> add_call(const Json& part, std::vector<Json>& calls) {
    const auto index = index_of(part, kMostCalls);
    if (!index || *index > calls.size()) return fail(no_stream("a tool call has no `index`"));
    const Json* function = member(part, "function");
    std::string name, arguments;
    if (function != nullptr) {
      add_text(*function, "name", name);
      add_text(*function, "arguments", arguments);
    }
    if (*index == calls.size()) {
      std::string id;
      add_text(part, "id", id);
      calls.push_back({{"id", id},
                       {"type", "function"},
                       {"function", {{"name", name}, {"arguments", arguments}}}});
    } else {
      calls[*index]["function"]["arguments"].get_ref<std::string&>() += arguments;
    }
    return {};
  }

  Json choice_json(std::uint64_t index, Choice& choice) const {
    Json out = {{"index", index}, {"logprobs", choice.logprobs}, {"finish_reason", choice.finish}};
    if (!chat_) {
      out["text"] = choice.content;
      return out;
    }
    Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
    if (choice.content.empty() && !choice.calls.empty()) message["content"] = nullptr;
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    if (!choice.calls.empty()) message["tool_calls"] = choice.calls;
    out["message"] = std::move(message);
    return out;
  }

  bool chat_;
  Json head_ = Json::object();
  std::map<std::uint64_t, Choice> choices_;
};

}  // namespace

Result<Json> joined_stream(std::string_view events, bool chat) {
  Joiner joiner(chat);
  bool over = false;
  while (!events.empty() && !over) {
    const std::size_t end = std::min(events.find('\n'), events.size());
    std::string_view line = events.substr(0, end);
    events.remove_prefix(std::min(end + 1, events.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;  // a comment, or between events
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    over = line == "[DONE]";
    if (!over) CYB_TRY(joiner.add(parse_flat_json(line)));
  }
  if (!over) return fail(no_stream("it has no [DONE] at its end"));
  return joiner.whole();
}

}  // namespace cyb::cli
