// Depth is a number, not a stack: brackets of the wrong kind are the caller's JSON parser's
// business.
#include "text/tools/json_scan.hpp"

#include <fmt/format.h>

#include <iterator>

namespace cyb::text {
namespace {

constexpr std::size_t kLongestWord = 64;

bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+';
}

}  // namespace

ScanStep JsonScan::push(char c) noexcept {
  if (inside_) {
    const bool ends = c == '"' && !escaped_;
    escaped_ = c == '\\' && !escaped_;
    inside_ = !ends;
    return ends && depth_ == 0 ? ScanStep::kDone : ScanStep::kMore;
  }
  if (scalar_) return is_word(c) ? ScanStep::kMore : ScanStep::kOver;
  if (c == '"') {
    inside_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (!begun_) {
    if (!is_word(c)) return ScanStep::kFailed;
    scalar_ = true;
  } else if ((c == '}' || c == ']') && --depth_ == 0) {
    return ScanStep::kDone;
  }
  begun_ = true;
  return ScanStep::kMore;
}

bool CallScan::known_key() {
  if (key_ == "arguments" || key_ == "parameters") return !has_arguments_;
  if (key_ == "name") return !has_name_;
  return key_ == "id" || key_ == "type" || key_ == "call_id";
}

ScanStep CallScan::start_value(char c) {
  scan_.reset();
  const bool arguments = key_ == "arguments" || key_ == "parameters";
  if (arguments && c != '{') return ScanStep::kFailed;
  if (key_ == "name" && c != '"') return ScanStep::kFailed;
  has_arguments_ = has_arguments_ || arguments;
  part_ = arguments ? Part::kArguments : Part::kFrame;
  at_ = At::kInValue;
  return value(c);
}

ScanStep CallScan::value(char c) {
  const ScanStep step = scan_.push(c);
  if (step == ScanStep::kFailed) return step;
  if (step == ScanStep::kOver) return after_value(c);
  if (key_ == "name" && c != '"') {
    if (c == '\\' || name_.size() == kLongestWord) return ScanStep::kFailed;
    name_ += c;
  }
  if (step == ScanStep::kDone) {
    at_ = At::kComma;
    has_name_ = has_name_ || key_ == "name";
  }
  return ScanStep::kMore;
}

ScanStep CallScan::after_value(char c) {
  part_ = Part::kFrame;
  at_ = At::kComma;
  if (is_json_space(c)) return ScanStep::kMore;
  if (c == '}') return has_name_ ? ScanStep::kDone : ScanStep::kFailed;
  if (c != ',') return ScanStep::kFailed;
  at_ = At::kKey;
  first_ = false;
  return ScanStep::kMore;
}

ScanStep CallScan::push(char c) {
  if (at_ == At::kInValue) return value(c);
  if (at_ == At::kComma) return after_value(c);
  if (at_ == At::kInKey) {
    if (c == '"') {
      at_ = At::kColon;
      return known_key() ? ScanStep::kMore : ScanStep::kFailed;
    }
    if (c == '\\' || key_.size() == kLongestWord) return ScanStep::kFailed;
    key_ += c;
    return ScanStep::kMore;
  }
  if (is_json_space(c) && at_ != At::kOpen) return ScanStep::kMore;
  if (at_ == At::kValue) return start_value(c);
  if (at_ == At::kOpen && c == '{') {
    at_ = At::kKey;
  } else if (at_ == At::kKey && c == '"') {
    key_.clear();
    at_ = At::kInKey;
  } else if (at_ == At::kColon && c == ':') {
    at_ = At::kValue;
  } else {
    return ScanStep::kFailed;
  }
  return ScanStep::kMore;
}

void append_json_char(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (static_cast<unsigned char>(c) < 0x20U) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += c;
  }
}

void KeywordScan::text(char c, std::string& json) {
  if (escaped_) {
    escaped_ = false;
    static constexpr std::string_view kSame = "\\\"bfnrt";
    if (kSame.find(c) != std::string_view::npos) {
      json += '\\';
      json += c;
    } else {
      if (c != '\'' && c != '\n') json += "\\\\";  // Python keeps the backslash
      if (c != '\n') append_json_char(json, c);
    }
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == quote_) {
    json += '"';
    at_ = At::kNext;
  } else {
    append_json_char(json, c);
  }
}

/// A word of Python as JSON.
bool KeywordScan::end_word(std::string& json) {
  if (word_ == "True" || word_ == "true") {
    json += "true";
  } else if (word_ == "False" || word_ == "false") {
    json += "false";
  } else if (word_ == "None" || word_ == "null") {
    json += "null";
  } else if (word_.find_first_not_of("0123456789.eE+-") == std::string::npos) {
    json += word_;
  } else {
    return false;
  }
  at_ = At::kNext;
  return true;
}

ScanStep KeywordScan::value(char c, std::string& json) {
  if (c == '"' || c == '\'') {
    quote_ = c;
    json += '"';
    at_ = At::kText;
  } else if (c == '[' || c == '{') {
    ++depth_;
    json += c;
  } else if ((c == ']' || c == '}') && depth_ > 0) {
    --depth_;
    json += c;
    at_ = At::kNext;
  } else if (is_word(c)) {
    word_ = c;
    at_ = At::kWord;
  } else {
    return ScanStep::kFailed;
  }
  return ScanStep::kMore;
}

/// After a value.
ScanStep KeywordScan::between(char c, std::string& json) {
  if (c == ',' || c == ':') {
    if (depth_ > 0) json += c;
    if (depth_ == 0 && c == ':') return ScanStep::kFailed;
    at_ = depth_ > 0 ? At::kValue : At::kKey;
    return ScanStep::kMore;
  }
  if ((c == ']' || c == '}') && depth_ > 0) return value(c, json);
  if (c != ')' || depth_ > 0) return ScanStep::kFailed;
  json += '}';
  return ScanStep::kDone;
}

ScanStep KeywordScan::key(char c, std::string& json) {
  if (at_ == At::kKey && c == ')') {
    json += any_ ? "}" : "{}";
    return ScanStep::kDone;
  }
  if (at_ != At::kEquals && is_word(c) && word_.size() < kLongestWord) {
    word_ = at_ == At::kKey ? std::string(1, c) : word_ + c;
    at_ = At::kInKey;
    return ScanStep::kMore;
  }
  if (at_ == At::kInKey && is_json_space(c)) {
    at_ = At::kEquals;
    return ScanStep::kMore;
  }
  if (at_ == At::kKey || c != '=') return ScanStep::kFailed;
  json += any_ ? ", \"" : "{\"";
  json += word_ + "\": ";
  any_ = true;
  at_ = At::kValue;
  return ScanStep::kMore;
}

ScanStep KeywordScan::push(char c, std::string& json) {
  if (at_ == At::kText) {
    text(c, json);
    return ScanStep::kMore;
  }
  if (at_ == At::kWord && is_word(c)) {
    word_ += c;
    return word_.size() <= kLongestWord ? ScanStep::kMore : ScanStep::kFailed;
  }
  if (at_ == At::kWord && !end_word(json)) return ScanStep::kFailed;
  if (at_ == At::kOpen) {
    at_ = At::kKey;
    return c == '(' ? ScanStep::kMore : ScanStep::kFailed;
  }
  if (at_ == At::kInKey || !is_json_space(c)) {
    if (at_ == At::kValue) return value(c, json);
    return at_ == At::kNext ? between(c, json) : key(c, json);
  }
  if (depth_ > 0 && c == ' ') json += c;
  return ScanStep::kMore;
}

}  // namespace cyb::text
