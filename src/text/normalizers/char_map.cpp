// The walk through the double array (its units as Darts-clone lays them out).
#include "text/normalizers/char_map.hpp"

#include <utf8proc.h>

#include <cstring>

#include "text/pretokenizers/char_class.hpp"

namespace cyb::text {
namespace {

bool has_leaf(std::uint32_t unit) noexcept {
  return (unit >> 8 & 1U) == 1U;
}
std::uint32_t value_of(std::uint32_t unit) noexcept {
  return unit & 0x7FFFFFFFU;
}
std::uint32_t label_of(std::uint32_t unit) noexcept {
  return unit & (0x80000000U | 0xFFU);
}
std::uint32_t offset_of(std::uint32_t unit) noexcept {
  return unit >> 10 << ((unit & (1U << 9)) >> 6);
}

constexpr std::size_t kGraphemeBytes = 6;  // longer ones go character by character

}  // namespace

Result<CharMap> CharMap::read(std::string_view blob) {
  std::uint32_t size = 0;
  if (blob.size() >= sizeof size) std::memcpy(&size, blob.data(), sizeof size);
  if (size == 0 || size % 4 != 0 || blob.size() - sizeof size < size) {
    return fail(tokenizer_error("precompiled_charsmap is broken"));
  }
  CharMap out;
  out.array_.resize(size / 4);
  std::memcpy(out.array_.data(), blob.data() + sizeof size, size);
  out.texts_ = blob.substr(sizeof size + size);
  if (out.texts_.empty() || out.texts_.back() != '\0') out.texts_ += '\0';
  return out;
}

CharMap::Hit CharMap::search(std::string_view text, bool first) const noexcept {
  Hit best;
  std::size_t node = offset_of(array_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= array_.size()) break;
    const std::uint32_t unit = array_[node];
    if (label_of(unit) != byte) break;
    node ^= offset_of(unit);
    if (node >= array_.size()) break;
    if (!has_leaf(unit)) continue;
    const std::size_t at = value_of(array_[node]);
    if (at >= texts_.size()) break;
    best = {i + 1, std::string_view(texts_.c_str() + at)};
    if (first) break;
  }
  return best;
}

std::string CharMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (std::size_t at = 0; at < text.size();) {
    const Hit hit = longest(text.substr(at));
    const std::size_t size =
        hit.size > 0 ? hit.size : valid_size(static_cast<unsigned char>(text[at]));
    out.append(hit.size > 0 ? hit.text : text.substr(at, size));
    at += size;
  }
  return out;
}

Result<std::string> CharMap::apply_by_grapheme(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  const auto put = [&](std::string_view grapheme) {
    if (grapheme.size() < kGraphemeBytes) {
      const Hit hit = shortest(grapheme);
      if (hit.size > 0) {
        out.append(hit.text);
        return;
      }
    }
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::size_t size = valid_size(static_cast<unsigned char>(grapheme[at]));
      const Hit hit = shortest(grapheme.substr(at, size));
      out.append(hit.size > 0 ? hit.text : grapheme.substr(at, size));
      at += size;
    }
  };
  utf8proc_int32_t state = 0, before = -1;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = valid_size(static_cast<unsigned char>(text[at]));
    const auto c = static_cast<utf8proc_int32_t>(decode_valid(text, at, size));
    if (before >= 0 && utf8proc_grapheme_break_stateful(before, c, &state)) {
      put(text.substr(begin, at - begin));
      begin = at;
    }
    before = c;
    at += size;
  }
  put(text.substr(begin));
  return out;
}

}  // namespace cyb::text
