// Look-ups in the generated table, by halving.
#include "text/unicode_tables.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

namespace cyb::text {
namespace {

struct Newer {
  char32_t first, last;
  std::uint16_t category;
};
constexpr auto kNewer = std::to_array<Newer>({
#define CYB_NEWER(first, last, category) {first, last, category_code(#category)},
#include "text/unicode_tables.inc"
});

struct Lower {
  char32_t first, last;
  std::int32_t delta;
};
constexpr auto kLower = std::to_array<Lower>({
#define CYB_LOWER(first, last, delta) {first, last, delta},
#include "text/unicode_tables.inc"
});

struct Range {
  char32_t first, last;
};
#define CYB_NOT_PUNCTUATION(first, last) {first, last},
constexpr auto kNotPunctuation = std::to_array<Range>({
#include "text/unicode_tables.inc"
});
#define CYB_NOT_BERT_MARK(first, last) {first, last},
constexpr auto kNotBertMark = std::to_array<Range>({
#include "text/unicode_tables.inc"
});
#define CYB_NOT_BERT_OTHER(first, last) {first, last},
constexpr auto kNotBertOther = std::to_array<Range>({
#include "text/unicode_tables.inc"
});
#define CYB_NOT_MARK(first, last) {first, last},
constexpr auto kNotMark = std::to_array<Range>({
#include "text/unicode_tables.inc"
});
#define CYB_NOT_COMPATIBLE(first, last) {first, last},
constexpr auto kNotCompatible = std::to_array<Range>({
#include "text/unicode_tables.inc"
});

template <class Row>
const Row* find(std::span<const Row> rows, char32_t c) noexcept {
  const auto found = std::ranges::upper_bound(rows, c, {}, &Row::first);
  if (found == rows.begin()) return nullptr;
  const Row& row = *std::prev(found);
  return c <= row.last ? &row : nullptr;
}

}  // namespace

std::uint16_t category_of(char32_t c) noexcept {
  const auto code = static_cast<utf8proc_int32_t>(c);
  if (utf8proc_category(code) != UTF8PROC_CATEGORY_CN)
    return category_code(utf8proc_category_string(code));
  const Newer* row = find(std::span<const Newer>(kNewer), c);
  return row != nullptr ? row->category : category_code("Cn");
}

const std::string& newer_members(std::string_view category) {
  static const std::map<std::string, std::string, std::less<>> kAll = [] {
    std::map<std::string, std::string, std::less<>> out;
    for (const Newer& row : kNewer) {
      const std::string text =
          fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<std::uint32_t>(row.first),
                      static_cast<std::uint32_t>(row.last));
      const char first = static_cast<char>(row.category >> 8);
      out[std::string(1, first)] += text;
      out[std::string{first, static_cast<char>(row.category & 0xFFU)}] += text;
    }
    return out;
  }();
  static const std::string kNone;
  const auto found = kAll.find(category);
  return found == kAll.end() ? kNone : found->second;
}

char32_t lower_of(char32_t c) noexcept {
  if (const Lower* row = find(std::span<const Lower>(kLower), c)) {
    return static_cast<char32_t>(static_cast<std::int32_t>(c) + row->delta);
  }
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool is_unknown(OldTable table, char32_t c) noexcept {
  const auto in = [c](std::span<const Range> rows) { return find(rows, c) != nullptr; };
  switch (table) {
    case OldTable::kPunctuation:
      return in(kNotPunctuation);
    case OldTable::kBertMark:
      return in(kNotBertMark);
    case OldTable::kBertOther:
      return in(kNotBertOther);
    case OldTable::kMark:
      return in(kNotMark);
    case OldTable::kCompatible:
      return in(kNotCompatible);
  }
  return false;
}

}  // namespace cyb::text
