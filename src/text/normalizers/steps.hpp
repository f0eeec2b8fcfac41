// The normalizers of a tokenizer.json, one object a step. Each changes a text as a whole, in linear
// time (the Unicode forms in O(n log n)).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "text/regex/regex.hpp"

namespace cyb::text {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  /// `text` is valid UTF-8 and stays so.
  virtual Result<void> apply(std::string& text) const = 0;
};

/// Errors: NotBuilt naming the component or the field; Tokenizer for a broken character map.
Result<std::unique_ptr<NormalizerStep>> make_normalizer(const nlohmann::json& step);

/// Puts `content` for every match. Errors: Tokenizer for a match of too many steps, too long a
/// text.
Result<void> replace_regex(const Regex& regex, const std::string& content, std::string& text);

/// Bytes of a base64 text. Errors: Tokenizer.
Result<std::string> base64_bytes(std::string_view text);
std::string base64_text(std::string_view bytes);

}  // namespace cyb::text
