// The scanners. Each comment names the alternative of the expression that the code decides, in the
// expression's order.
#include "text/pretokenizers/pretokenizer.hpp"

#include "text/pretokenizers/char_class.hpp"

namespace cyb::text {
namespace {

/// End of the run of characters of one class from `at` on.
std::size_t run_end(std::string_view text, std::size_t at, CharClass kind) noexcept {
  for (Char c = char_at(text, at); c.size != 0 && c.kind == kind; c = char_at(text, at))
    at += c.size;
  return at;
}

/// `'s|'t|'re|'ve|'m|'ll|'d` at an apostrophe: bytes after it, or 0. `fold`: any case (U+017F is an
/// s).
std::size_t contraction(std::string_view text, std::size_t at, bool fold) noexcept {
  const auto letter = [&](std::size_t i) {
    if (at + i >= text.size()) return '\0';
    const char c = text[at + i];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 1;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 2 : 0;
    case 'l':
      return letter(2) == 'l' ? 2 : 0;
    default:
      return fold && text.substr(at + 1).starts_with("\xC5\xBF") ? 2 : 0;
  }
}

/// A run of white space [at, end) with something else behind it: `\s+(?!\S)` gives all but its last
/// character, or `\s+` all of it where there is only one.
std::size_t before_last_space(std::string_view text, std::size_t at, std::size_t end) noexcept {
  std::size_t last = end - 1;
  while ((static_cast<unsigned char>(text[last]) & 0xC0U) == 0x80U) --last;
  return last > at ? last : end;
}

// `'s|...|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. With `digits` every number is a
// piece of its own and ends the text for what stands before it (the split of smollm comes first).
template <bool digits>
std::size_t gpt2_piece(std::string_view text, std::size_t at) {
  const Char first = char_at(text, at);
  if (digits && first.kind == CharClass::kNumber) return at + first.size;
  if (text[at] == '\'') {
    if (const std::size_t more = contraction(text, at, false)) return at + 1 + more;
  }
  if (first.kind != CharClass::kSpace) return run_end(text, at, first.kind);
  const Char second = char_at(text, at + first.size);
  const bool cut = second.size == 0 || (digits && second.kind == CharClass::kNumber);
  if (text[at] == ' ' && !cut && second.kind != CharClass::kSpace) {
    return run_end(text, at + 1, second.kind);
  }
  const std::size_t end = run_end(text, at, CharClass::kSpace);
  const Char after = char_at(text, end);
  if (after.size == 0 || (digits && after.kind == CharClass::kNumber)) return end;
  return before_last_space(text, at, end);
}

bool is_newline(char c) noexcept {
  return c == '\r' || c == '\n';
}

std::size_t skip_newlines(std::string_view text, std::size_t at) noexcept {
  while (at < text.size() && is_newline(text[at])) ++at;
  return at;
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+` at white space.
std::size_t space_piece(std::string_view text, std::size_t at) noexcept {
  const std::size_t end = run_end(text, at, CharClass::kSpace);
  for (std::size_t i = end; i > at; --i) {
    if (is_newline(text[i - 1])) return i;
  }
  return end == text.size() ? end : before_last_space(text, at, end);
}

// `(?i:'s|...|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}| ?[^\s\p{L}\p{N}]+[\r\n]*`; 0 where
// none of them matches, which is at white space only.
template <int max_digits>
std::size_t qwen2_word(std::string_view text, std::size_t at) {
  const Char first = char_at(text, at);
  if (text[at] == '\'') {
    if (const std::size_t more = contraction(text, at, true)) return at + 1 + more;
  }
  if (first.kind == CharClass::kLetter) return run_end(text, at, CharClass::kLetter);
  if (first.kind == CharClass::kNumber) {
    std::size_t end = at + first.size;
    for (int i = 1; i < max_digits; ++i) {
      const Char c = char_at(text, end);
      if (c.size == 0 || c.kind != CharClass::kNumber) break;
      end += c.size;
    }
    return end;
  }
  const Char second = char_at(text, at + first.size);
  if (second.size != 0 && second.kind == CharClass::kLetter && !is_newline(text[at])) {
    return run_end(text, at + first.size, CharClass::kLetter);
  }
  if (first.kind == CharClass::kOther) {
    return skip_newlines(text, run_end(text, at, CharClass::kOther));
  }
  if (text[at] == ' ' && second.size != 0 && second.kind == CharClass::kOther) {
    return skip_newlines(text, run_end(text, at + 1, CharClass::kOther));
  }
  return 0;
}

// The same, then `\s*[\r\n]+|\s+(?!\S)|\s+`.
template <int max_digits>
std::size_t qwen2_piece(std::string_view text, std::size_t at) {
  const std::size_t end = qwen2_word<max_digits>(text, at);
  return end != 0 ? end : space_piece(text, at);
}

std::size_t whole_text(std::string_view text, std::size_t) {
  return text.size();
}

}  // namespace

std::size_t llama3_word(std::string_view text, std::size_t at) {
  return qwen2_word<3>(text, at);
}

NextPiece next_piece(PreTokenizer pre) noexcept {
  switch (pre) {
    case PreTokenizer::kGpt2:
      return gpt2_piece<false>;
    case PreTokenizer::kSmollm:
      return gpt2_piece<true>;
    case PreTokenizer::kQwen2:
      return qwen2_piece<1>;
    case PreTokenizer::kLlama3:
      return qwen2_piece<3>;
    case PreTokenizer::kNone:
      break;
  }
  return whole_text;
}

}  // namespace cyb::text
