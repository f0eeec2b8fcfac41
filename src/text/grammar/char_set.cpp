// Set algebra on sorted ranges.
#include "text/grammar/char_set.hpp"

#include <algorithm>

namespace cyb::text {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr char32_t kBelowSurrogates = 0xD7FF, kAboveSurrogates = 0xE000;

}  // namespace

CharSet CharSet::all() {
  return range(0, kLast);
}

CharSet CharSet::range(char32_t first, char32_t last) {
  CharSet out;
  out.add(first, last);
  return out;
}

void CharSet::add(char32_t first, char32_t last) {
  last = std::min(last, kLast);
  if (first > last) return;
  if (!ranges_.empty() && first > ranges_.back().last + 1 &&
      (last <= kBelowSurrogates || first >= kAboveSurrogates)) {
    ranges_.push_back({first, last});
    return;
  }
  // Around the surrogates.
  if (first <= kBelowSurrogates) ranges_.push_back({first, std::min(last, kBelowSurrogates)});
  if (last >= kAboveSurrogates) ranges_.push_back({std::max(first, kAboveSurrogates), last});
  normalise();
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalise();
}

void CharSet::normalise() {
  std::ranges::sort(ranges_, {}, &CharRange::first);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (kept > 0 && ranges_[i].first <= ranges_[kept - 1].last + 1) {
      ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, ranges_[i].last);
    } else {
      ranges_[kept++] = ranges_[i];
    }
  }
  ranges_.resize(kept);
}

CharSet CharSet::negated() const {
  CharSet out;
  char32_t next = 0;
  for (const CharRange& r : ranges_) {
    if (r.first > next) out.add(next, r.first - 1);
    next = r.last + 1;
  }
  if (next <= kLast) out.add(next, kLast);
  return out;
}

CharSet CharSet::common(const CharSet& other) const {
  CharSet out;
  std::size_t i = 0, j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const CharRange &a = ranges_[i], &b = other.ranges_[j];
    out.add(std::max(a.first, b.first), std::min(a.last, b.last));
    (a.last < b.last ? i : j) += 1;
  }
  return out;
}

CharSet CharSet::minus(const CharSet& other) const {
  return common(other.negated());
}

CharSet CharSet::any_case() const {
  CharSet out = *this;
  for (char32_t c = 'a'; c <= 'z'; ++c) {
    const char32_t upper = c - 'a' + 'A';
    if (contains(c)) out.add(upper, upper);
    if (contains(upper)) out.add(c, c);
  }
  return out;
}

bool CharSet::contains(char32_t c) const noexcept {
  const auto after = std::ranges::upper_bound(ranges_, c, {}, &CharRange::first);
  return after != ranges_.begin() && std::prev(after)->last >= c;
}

}  // namespace cyb::text
