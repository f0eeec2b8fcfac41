// The presets are templates too: one renderer, one rule of trust.
#include "runtime/chat.hpp"

#include <ctime>
#include <utility>

#include "runtime/engine.hpp"

namespace cyb {
namespace {

struct Preset {
  std::string_view name, source, bos, stop;
};

constexpr Preset kPresets[] = {
    {"chatml",
     "{% for m in messages %}{{ '<|im_start|>' }}{{ m['role'] }}{{ '\\n' }}{{ m['content'] }}"
     "{{ '<|im_end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
     "", "<|im_end|>"},
    {"llama3",
     "{% for m in messages %}{{ '<|start_header_id|>' }}{{ m['role'] }}"
     "{{ '<|end_header_id|>\\n\\n' }}{{ m['content'] | trim }}{{ '<|eot_id|>' }}{% endfor %}"
     "{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
     "<|begin_of_text|>", "<|eot_id|>"},
    {"gemma",
     "{% set system = '' %}{% set turns = messages %}"
     "{% if messages and messages[0]['role'] == 'system' %}"
     "{% set system = messages[0]['content'] | trim %}{% set turns = messages[1:] %}{% endif %}"
     "{% for m in turns %}{{ '<start_of_turn>' }}"
     "{{ 'model' if m['role'] == 'assistant' else m['role'] }}{{ '\\n' }}"
     "{% if loop.first and system %}{{ system }}{{ '\\n\\n' }}{% endif %}"
     "{{ m['content'] | trim }}{{ '<end_of_turn>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
     "<bos>", "<end_of_turn>"},
    {"plain", "{% for m in messages %}{{ m['content'] }}{% endfor %}", "", ""},
};

const Preset* find_preset(std::string_view name) noexcept {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

Error unknown_format(std::string_view name) {
  return invalid_config("chat.format", "\"" + std::string(name) +
                                           "\" is none of chatml, llama3, gemma, plain, custom");
}

/// Text of a special id; empty where there is none.
std::string token_text(const Tokenizer& tokenizer, std::optional<std::int32_t> id) {
  if (!id || !tokenizer.vocabulary().contains(*id)) return {};
  return std::string(tokenizer.vocabulary().text(*id));
}

/// The first id is BOS if the model wants one; templates that write it themselves are left alone.
void ensure_bos(const Tokenizer& tokenizer, std::vector<std::int32_t>& ids) {
  const TokenizerConfig& config = tokenizer.config();
  if (!config.add_bos_token || !config.bos_token_id) return;
  if (!ids.empty() && ids.front() == *config.bos_token_id) return;
  ids.insert(ids.begin(), *config.bos_token_id);
}

bool starts_with(const std::vector<OwnedSegment>& segments, std::string_view text) {
  return !segments.empty() && segments.front().control && segments.front().text.starts_with(text);
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::create(const ConfigTable& chat,
                                                           const Tokenizer& tokenizer) {
  CYB_ASSIGN(const std::string source, chat.string_or("template", ""));
  CYB_ASSIGN(const std::string format, chat.string_or("format", source.empty() ? "" : "custom"));
  std::unique_ptr<ChatTemplate> out;
  if (format == "custom") {
    CYB_ASSIGN(Template compiled, Template::compile(source));
    out.reset(new ChatTemplate(std::move(compiled), source));
    out->bos_token_ = token_text(tokenizer, tokenizer.config().bos_token_id);
    const std::vector<std::int32_t>& eos = tokenizer.config().eos_token_ids;
    if (!eos.empty()) out->eos_token_ = token_text(tokenizer, eos.front());
  } else {
    CYB_ASSIGN(out, preset(format, tokenizer));
  }
  CYB_ASSIGN(out->bos_, chat.string_or("bos", out->bos_));
  CYB_ASSIGN(out->system_default_, chat.string_or("system_default", ""));
  CYB_ASSIGN(const std::vector<std::string> stops, chat.strings_or_empty("eos_sequences"));
  out->stops_.insert(out->stops_.end(), stops.begin(), stops.end());
  return out;
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::preset(std::string_view name,
                                                           const Tokenizer& tokenizer) {
  const Preset* found = find_preset(name);
  if (found == nullptr) return fail(unknown_format(name));
  CYB_ASSIGN(Template compiled, Template::compile(found->source));
  std::unique_ptr<ChatTemplate> out(new ChatTemplate(std::move(compiled), found->source));
  out->bos_token_ = token_text(tokenizer, tokenizer.config().bos_token_id);
  out->bos_ = found->bos;
  if (!found->stop.empty()) out->stops_.emplace_back(found->stop);
  return out;
}

Error no_chat_template() {
  return Error(ErrorKind::kTemplate, "no_chat_template",
               "no_chat_template: this model has no chat template; it takes plain prompts, or "
               "import a source that has one (a folder with tokenizer_config.json)");
}

Result<std::vector<OwnedSegment>> ChatTemplate::render(const Template& compiled, ChatInput input) {
  if (input.now.tm_mday == 0) {
    const std::time_t now = std::time(nullptr);
    ::localtime_r(&now, &input.now);
  }
  return compiled.render(input);
}

Result<std::vector<OwnedSegment>> ChatTemplate::render(ChatInput input) const {
  input.bos_token = bos_token_;
  input.eos_token = eos_token_;
  if (!system_default_.empty()) {
    bool has_system = false;
    for (const ChatValue& message : input.messages) {
      for (const auto& [key, value] : message.members) {
        has_system |= key == "role" && value.text == "system";
      }
    }
    if (!has_system) {
      const ChatMessage system{"system", system_default_};
      const ChatInput first = chat_input({&system, 1});
      input.messages.insert(input.messages.begin(), first.messages.front());
    }
  }
  CYB_ASSIGN(std::vector<OwnedSegment> segments, render(template_, std::move(input)));
  if (!bos_.empty() && !starts_with(segments, bos_)) {
    if (!segments.empty() && segments.front().control) {
      segments.front().text.insert(0, bos_);
    } else {
      segments.insert(segments.begin(), OwnedSegment{bos_, true});
    }
  }
  return segments;
}

Result<std::vector<std::int32_t>> ChatTemplate::encode(ChatInput input,
                                                       const Tokenizer& tokenizer) const {
  CYB_ASSIGN(const std::vector<OwnedSegment> segments, render(std::move(input)));
  std::vector<TextSegment> views;
  views.reserve(segments.size());
  for (const OwnedSegment& segment : segments) views.push_back({segment.text, segment.control});
  CYB_ASSIGN(std::vector<std::int32_t> ids,
             tokenizer.encode_segments(views, {.add_special = false}));
  ensure_bos(tokenizer, ids);
  if (ids.empty()) return fail(invalid_input("empty prompt"));
  return ids;
}

ChatInput chat_input(std::span<const ChatMessage> messages) {
  ChatInput input;
  input.messages.reserve(messages.size());
  for (const ChatMessage& message : messages) {
    input.messages.push_back(
        ChatValue::object({{"role", ChatValue::of(std::string_view(message.role))},
                           {"content", ChatValue::of(std::string_view(message.content))}}));
  }
  return input;
}

Result<std::vector<std::int32_t>> encode_chat(const Engine& engine, ChatInput input) {
  CYB_ASSIGN(const Tokenizer* tokenizer, engine.need_tokenizer());
  if (engine.chat_template() == nullptr) return fail(engine.chat_error());
  if (input.messages.empty()) return fail(invalid_input("no messages"));
  return engine.chat_template()->encode(std::move(input), *tokenizer);
}

Result<std::vector<std::int32_t>> encode_chat(const Engine& engine,
                                              std::span<const ChatMessage> messages) {
  return encode_chat(engine, chat_input(messages));
}

Result<std::vector<std::int32_t>> encode_raw(const Tokenizer& tokenizer, std::string_view text) {
  CYB_ASSIGN(std::vector<std::int32_t> ids,
             tokenizer.encode(text, {.parse_special = true, .add_special = false}));
  ensure_bos(tokenizer, ids);
  if (ids.empty()) return fail(invalid_input("empty prompt"));
  return ids;
}

}  // namespace cyb
