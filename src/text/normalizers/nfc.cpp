// Decomposition and composition by utf8proc; the ordering of combining marks is ours, since a
// library that sorts them by insertion is quadratic on a hostile text.
#include "text/normalizers/nfc.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/utf8.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/unicode_tables.hpp"

namespace cyb::text {
namespace {

utf8proc_option_t options_of(NormalForm form) noexcept {
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): options are or-ed together.
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

// U+FDFA becomes 18 characters, more than any other.
constexpr utf8proc_ssize_t kMaxParts = 32;

/// Ranges in which no character composes with one before it, decomposes for good or is reordered.
bool is_inert(char32_t c) noexcept {
  return c < 0x300 || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0x400 && c <= 0x482) || (c >= 0x3041 && c <= 0x3096) ||
         (c >= 0x30A1 && c <= 0x30FE) || (c >= 0x2010 && c <= 0x2027) ||
         (c >= 0x3001 && c <= 0x3020) || (c >= 0xFF01 && c <= 0xFFEE) ||
         (c >= 0x2500 && c <= 0x25FF) || (c >= 0x1F300 && c <= 0x1FAFF);
}

int combining_class(utf8proc_int32_t c) noexcept {
  const int value = utf8proc_get_property(c)->combining_class;
  return value != 0 && is_unknown(OldTable::kMark, static_cast<char32_t>(c)) ? 0 : value;
}

/// Stable order by combining class within each run of characters whose class is not 0.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  for (std::size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(i),
                     text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

}  // namespace

bool is_quickly_nfc(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    const std::size_t size = valid_size(lead);
    // Below U+0300 (lead byte 0xCC) nothing changes.
    if (lead >= 0xCC && !is_inert(decode_valid(text, at, size))) return false;
    at += size;
  }
  return true;
}

Result<std::string> nfc(std::string_view text) {
  return normal_form(text, NormalForm::kNfc);
}

Result<std::string> normal_form(std::string_view text, NormalForm form) {
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = valid_size(static_cast<unsigned char>(text[at]));
    const char32_t c = decode_valid(text, at, size);
    if (form != NormalForm::kNfc && c > 0x300 && is_unknown(OldTable::kCompatible, c)) {
      chars.push_back(static_cast<utf8proc_int32_t>(c));
      at += size;
      continue;
    }
    utf8proc_int32_t parts[kMaxParts];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kMaxParts,
                                               options, &boundary);
    if (count < 0 || count > kMaxParts) return fail(internal_error("Unicode decomposition"));
    chars.insert(chars.end(), parts, parts + count);
    at += size;
  }
  order_marks(chars);
  const auto length =
      utf8proc_normalize_utf32(chars.data(), static_cast<utf8proc_ssize_t>(chars.size()), options);
  if (length < 0) return fail(internal_error("Unicode composition"));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    utf8_append(out, static_cast<char32_t>(chars[static_cast<std::size_t>(i)]));
  }
  return out;
}

}  // namespace cyb::text
