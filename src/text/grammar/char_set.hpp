// CharSet: a set of Unicode scalar values as sorted, disjoint, non-adjacent ranges. Surrogates are
// never members.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cyb::text {

struct CharRange {
  char32_t first = 0, last = 0;  // both members
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  /// Every scalar value.
  static CharSet all();
  static CharSet of(char32_t c) { return range(c, c); }
  /// Empty where first > last.
  static CharSet range(char32_t first, char32_t last);

  void add(char32_t first, char32_t last);
  void add(const CharSet& other);
  CharSet negated() const;
  CharSet minus(const CharSet& other) const;
  CharSet common(const CharSet& other) const;
  /// With the other case of every ASCII letter.
  CharSet any_case() const;

  bool contains(char32_t c) const noexcept;
  bool empty() const noexcept { return ranges_.empty(); }
  std::span<const CharRange> ranges() const noexcept { return ranges_; }
  bool operator==(const CharSet&) const = default;

 private:
  void normalise();
  std::vector<CharRange> ranges_;
};

}  // namespace cyb::text
