// Merging of adjacent symbols in order of priority (lowest value first, leftmost on ties): the core
// of both BPE kinds. Short pieces scan an array, long ones use a heap: O(n log n), no recursion.
// Both give the same result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cyb::text {

/// A symbol: bytes [begin, next symbol's begin) of the piece, and its token (-1: none).
struct Symbol {
  std::uint32_t begin = 0;
  std::int32_t id = -1;
};

inline constexpr std::uint32_t kNoMerge = ~0U;

/// Buffers kept between pieces.
struct MergeScratch {
  std::vector<Symbol> symbols;          // in: one per character or byte; out: what remains
  std::vector<std::uint32_t> priority;  // of the pair that starts here
  std::vector<std::uint32_t> next, previous;
  std::vector<std::uint64_t> heap;  // priority << 32 | index of the left symbol
};

inline constexpr std::size_t kShortPiece = 48;

// Rules: priority(left, right, end) of two adjacent symbols whose bytes end at `end`, or kNoMerge;
//        merged(priority, left, end) the id of the result.
template <class Rules>
void merge_short(const Rules& rules, MergeScratch& scratch, std::uint32_t size) {
  auto& symbols = scratch.symbols;
  auto& priority = scratch.priority;
  std::size_t count = symbols.size();
  const auto end_of = [&](std::size_t i) { return i + 1 < count ? symbols[i + 1].begin : size; };
  const auto pair = [&](std::size_t i) {
    return i + 1 < count ? rules.priority(symbols[i], symbols[i + 1], end_of(i + 1)) : kNoMerge;
  };
  priority.resize(count);
  for (std::size_t i = 0; i < count; ++i) priority[i] = pair(i);
  while (count > 1) {
    const auto best = std::min_element(priority.begin(),
                                       priority.begin() + static_cast<std::ptrdiff_t>(count) - 1);
    if (*best == kNoMerge) break;
    const std::size_t i = static_cast<std::size_t>(best - priority.begin());
    symbols[i].id = rules.merged(*best, symbols[i], end_of(i + 1));
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    priority.erase(priority.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    --count;
    priority[i] = pair(i);
    if (i > 0) priority[i - 1] = pair(i - 1);
  }
}

template <class Rules>
class LongMerge {
 public:
  LongMerge(const Rules& rules, MergeScratch& scratch, std::uint32_t size)
      : rules_(rules),
        s_(scratch),
        size_(size),
        count_(static_cast<std::uint32_t>(scratch.symbols.size())) {}

  void run() {
    prepare();
    while (!s_.heap.empty()) {
      std::pop_heap(s_.heap.begin(), s_.heap.end(), std::greater<>());
      const std::uint64_t top = s_.heap.back();
      s_.heap.pop_back();
      const std::uint32_t at = static_cast<std::uint32_t>(top);
      // Stale entries have another priority: the bytes of a pair that starts here only ever grow.
      if (s_.priority[at] == static_cast<std::uint32_t>(top >> 32)) merge_at(at);
    }
    compact();
  }

 private:
  std::uint32_t end_of(std::uint32_t i) const {
    return s_.next[i] < count_ ? s_.symbols[s_.next[i]].begin : size_;
  }

  void prepare() {
    s_.priority.resize(count_);
    s_.next.resize(count_);
    s_.previous.resize(count_);
    s_.heap.clear();
    for (std::uint32_t i = 0; i < count_; ++i) {
      s_.next[i] = i + 1;
      s_.previous[i] = i - 1;
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
      set_priority(i);
      if (s_.priority[i] != kNoMerge) s_.heap.push_back(entry(i));
    }
    std::make_heap(s_.heap.begin(), s_.heap.end(), std::greater<>());
  }

  std::uint64_t entry(std::uint32_t i) const {
    return static_cast<std::uint64_t>(s_.priority[i]) << 32 | i;
  }

  void set_priority(std::uint32_t i) {
    const std::uint32_t right = s_.next[i];
    s_.priority[i] = right < count_
                         ? rules_.priority(s_.symbols[i], s_.symbols[right], end_of(right))
                         : kNoMerge;
  }

  void renew(std::uint32_t i) {
    set_priority(i);
    if (s_.priority[i] == kNoMerge) return;
    s_.heap.push_back(entry(i));
    std::push_heap(s_.heap.begin(), s_.heap.end(), std::greater<>());
  }

  void merge_at(std::uint32_t at) {
    const std::uint32_t right = s_.next[at];
    s_.symbols[at].id = rules_.merged(s_.priority[at], s_.symbols[at], end_of(right));
    s_.priority[right] = kNoMerge;  // `right` is gone
    s_.next[at] = s_.next[right];
    if (s_.next[at] < count_) s_.previous[s_.next[at]] = at;
    renew(at);
    if (at > 0) renew(s_.previous[at]);
  }

  void compact() {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; i = s_.next[i]) s_.symbols[kept++] = s_.symbols[i];
    s_.symbols.resize(kept);
  }

  const Rules& rules_;
  MergeScratch& s_;
  std::uint32_t size_, count_;
};

/// Merges scratch.symbols, which cover a piece of `size` bytes, until no rule applies.
template <class Rules>
void merge_symbols(const Rules& rules, MergeScratch& scratch, std::uint32_t size) {
  if (scratch.symbols.size() <= kShortPiece) {
    merge_short(rules, scratch, size);
  } else {
    LongMerge<Rules>(rules, scratch, size).run();
  }
}

}  // namespace cyb::text
