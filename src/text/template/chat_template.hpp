// Chat templates: a sandboxed Jinja engine of our own, byte-equal to jinja2 in the set-up that
// transformers uses. Strings remember which bytes the template wrote and which came from messages,
// so that content can never become a control token. Parsing and rendering are bounded by the limits
// of base/limits.hpp.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace cyb {

/// JSON-like input of a template; objects keep the order of their members.
struct ChatValue {
  enum class Kind : std::uint8_t { kNull, kBool, kInt, kFloat, kString, kList, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0.0;
  std::string text;
  std::vector<ChatValue> items;
  std::vector<std::pair<std::string, ChatValue>> members;

  // Copies and destruction walk the value: they are made in one place.
  ChatValue() = default;
  ChatValue(const ChatValue& other);
  ChatValue(ChatValue&& other) noexcept;
  ChatValue& operator=(const ChatValue& other);
  ChatValue& operator=(ChatValue&& other) noexcept;
  ~ChatValue();

  static ChatValue null() { return {}; }
  static ChatValue of(bool value);
  static ChatValue of(std::int64_t value);
  static ChatValue of(double value);
  static ChatValue of(std::string_view value);
  static ChatValue of(const char* value) { return of(std::string_view(value)); }
  static ChatValue list(std::vector<ChatValue> items = {});
  static ChatValue object(std::vector<std::pair<std::string, ChatValue>> members = {});
};

/// Everything that a template may see.
struct ChatInput {
  std::vector<ChatValue>
      messages;     // objects: role, content, and whatever else the caller has (tool_calls, ...)
  ChatValue tools;  // list, or null (the template's `tools` is then none)
  ChatValue documents;  // likewise
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;  // control
  /// Further variables by name; they win over the ones above.
  std::vector<std::pair<std::string, ChatValue>> variables;
  std::tm now{};  // local time, for strftime_now
};

/// A run of rendered text of one trust (see TextSegment).
struct OwnedSegment {
  std::string text;
  bool control = false;
};

class Template {
 public:
  /// Errors: Template "template: line L, column C: ..." for bad syntax and for constructs that are
  /// not supported.
  static Result<Template> compile(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// Neighbouring segments differ in `control`. Errors: Template, with line and column;
  /// raise_exception's message is the text after them.
  Result<std::vector<OwnedSegment>> render(const ChatInput& input) const;

  /// Texts and string constants that the template itself can write (for Tokenizer::guard_markers).
  const std::vector<std::string>& literals() const noexcept;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// All segments joined.
std::string joined_text(const std::vector<OwnedSegment>& segments);

}  // namespace cyb
