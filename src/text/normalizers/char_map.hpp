// CharMap: the character map that sentencepiece compiles into its models: a double array of
// prefixes and the texts that replace them. The bytes come from a file: every step is bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::text {

class CharMap {
 public:
  /// `blob`: size of the array in bytes (u32), the array, zero-ended texts.
  /// Errors: Tokenizer for a blob that is not of this form.
  static Result<CharMap> read(std::string_view blob);

  struct Hit {
    std::size_t size = 0;  // bytes of the prefix; 0: none
    std::string_view text;
  };
  Hit longest(std::string_view text) const noexcept { return search(text, false); }
  Hit shortest(std::string_view text) const noexcept { return search(text, true); }

  /// As sentencepiece: the longest prefix at each place.
  std::string apply(std::string_view text) const;
  /// As the `tokenizers` package: grapheme by grapheme where one is shorter than 6 bytes, else
  /// character by character, and of several prefixes the shortest replaces the whole.
  Result<std::string> apply_by_grapheme(std::string_view text) const;

 private:
  Hit search(std::string_view text, bool first) const noexcept;

  std::vector<std::uint32_t> array_;
  std::string texts_;
};

}  // namespace cyb::text
