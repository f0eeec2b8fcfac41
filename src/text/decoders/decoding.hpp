// Decoding: the decoder of a tokenizer.json as a function of one token and of whether it is the
// first, so that a stream can be decoded token by token.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/regex/regex.hpp"

namespace cyb::text {

class Fields;

class Decoding {
 public:
  /// Errors: NotBuilt naming the component or the field.
  static Result<Decoding> make(const std::vector<nlohmann::json>& steps);

  /// The bytes of a token (not always whole UTF-8).
  std::string render(std::string_view token, bool first) const;

  /// A token that is the one before it again prints nothing (CTC).
  bool drops_repeats() const noexcept { return drops_repeats_; }
  /// A space at the very start of a text is dropped.
  bool strips_start() const noexcept { return strips_start_; }
  /// A space at the very end of a text is dropped (it stands for the end of a word).
  bool strips_end() const noexcept { return strips_end_; }

 private:
  enum class Kind : std::uint8_t {
    kByteLevel,
    kMetaspace,
    kWordPiece,
    kWordEnds,
    kByteFallback,
    kReplace,
    kReplaceRegex,
    kStrip,
    kCtc
  };
  struct Step {
    Kind kind = Kind::kByteLevel;
    std::string from, to;
    std::optional<Regex> regex;
    bool flag = false;  // Metaspace: drops marks of the first token; WordPiece: cleanup
    std::size_t start = 0, stop = 0;
  };
  Result<void> add(const nlohmann::json& step, bool& fused);
  Result<void> add_replace(Fields& fields, bool fused, Step& step);
  Result<void> add_ctc(Fields& fields, Step& step);
  static void run(const Step& step, bool first, std::string& text);

  std::vector<Step> steps_;
  bool joins_by_space_ = false, strips_start_ = false, strips_end_ = false, drops_repeats_ = false;
};

}  // namespace cyb::text
