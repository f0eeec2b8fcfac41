// Messages to token ids: the model's own template (or a preset) rendered to segments, so that what
// people write is never read as control tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/config.hpp"
#include "text/template/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace cyb {

class Engine;

/// A plain message; callers with tool calls and the like build ChatInput::messages themselves.
struct ChatMessage {
  std::string role, content;
};

/// The chat part of a model, ready to render. Immutable.
class ChatTemplate {
 public:
  /// `chat`: the chat part. Errors: F31, InvalidConfig{"chat.format"}, Template with line and
  /// column.
  static Result<std::unique_ptr<ChatTemplate>> create(const ConfigTable& chat,
                                                      const Tokenizer& tokenizer);
  /// "chatml", "llama3", "gemma" or "plain" (spec model-format 7.7). Errors:
  /// InvalidConfig{"chat.format"}.
  static Result<std::unique_ptr<ChatTemplate>> preset(std::string_view name,
                                                      const Tokenizer& tokenizer);

  /// bos_token, eos_token, the default system message and (where it is all zero) the clock are
  /// filled in. Errors: Template.
  Result<std::vector<OwnedSegment>> render(ChatInput input) const;
  /// A template alone, with `input` as it is but for the clock. Errors: Template.
  static Result<std::vector<OwnedSegment>> render(const Template& compiled, ChatInput input);
  /// Rendered and encoded, with BOS exactly once where the model wants one. Errors: Template,
  /// Tokenizer, InvalidInput.
  Result<std::vector<std::int32_t>> encode(ChatInput input, const Tokenizer& tokenizer) const;

  /// Extra stop strings of the model or preset ("<|im_end|>").
  const std::vector<std::string>& stop_strings() const noexcept { return stops_; }
  const std::vector<std::string>& literals() const noexcept { return template_.literals(); }
  /// The template's own text.
  const std::string& source() const noexcept { return source_; }

 private:
  ChatTemplate(Template compiled, std::string_view source)
      : template_(std::move(compiled)), source_(source) {}
  Template template_;
  std::string source_;
  std::string bos_token_, eos_token_;  // of the vocabulary; what the template sees
  std::string bos_;                    // put in front, unless the template wrote it
  std::string system_default_;
  std::vector<std::string> stops_;
};

/// The error of a model that has none.
Error no_chat_template();

ChatInput chat_input(std::span<const ChatMessage> messages);

/// Ids of a conversation by the engine's template, generation prompt included. Errors:
/// `no_chat_template`, as ChatTemplate::encode.
Result<std::vector<std::int32_t>> encode_chat(const Engine& engine,
                                              std::span<const ChatMessage> messages);
Result<std::vector<std::int32_t>> encode_chat(const Engine& engine, ChatInput input);

/// Plain completion: control tokens in the text are read as such, BOS exactly once where the model
/// wants one, no EOS. Errors: InvalidInput "empty prompt" where nothing is left to run, Tokenizer.
Result<std::vector<std::int32_t>> encode_raw(const Tokenizer& tokenizer, std::string_view text);

}  // namespace cyb
