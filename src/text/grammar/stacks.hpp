// StackSets: sets of return stacks, shared and hash-consed: equal sets have equal numbers. A set is
// a list of frames, each with the set of what may lie below it, so that any number of stacks takes
// little room. Set 0 holds the empty stack only.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar/network.hpp"

namespace cyb::text {

using StackSet = std::uint32_t;
inline constexpr StackSet kEmptyStack = 0;
inline constexpr std::uint32_t kNoLoop = UINT32_MAX;

/// Where a machine returns to: a node, or a loop whose iteration `count` (from 1) is under way.
struct StackFrame {
  NodeId node = 0;  // kNoLoop: where it goes on
  std::uint32_t loop = kNoLoop;
  std::uint64_t count = 0;
  StackSet below = kEmptyStack;
  bool same_top(const StackFrame& o) const noexcept {
    return node == o.node && loop == o.loop && count == o.count;
  }
  bool operator==(const StackFrame&) const = default;
};

/// Numbers of things by their hashes; the caller compares.
class HashIndex {
 public:
  /// The number of an equal thing, or `next` after it was taken in.
  template <class Equal>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, Equal equal) {
    if (2 * (hashes_.size() + 1) > slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != UINT32_MAX; at = (at + 1) & (slots_.size() - 1)) {
      if (hashes_[slots_[at]] == hash && equal(slots_[at])) return slots_[at];
    }
    slots_[at] = next;
    hashes_.push_back(hash);
    return next;
  }
  void clear();

 private:
  void grow();
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> hashes_;  // [number]
};

inline std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

class StackSets {
 public:
  /// `longest`: bytes of the longest token: counters further than that from their bounds are alike.
  StackSets(const GrammarNetwork& net, std::size_t longest);

  StackSet push(StackFrame frame) { return intern(std::span(&frame, 1), false); }
  StackSet unite(StackSet a, StackSet b);
  /// True where the empty stack is a member.
  bool has_empty(StackSet set) const noexcept { return sets_[set].has_empty; }
  std::span<const StackFrame> frames(StackSet set) const noexcept {
    return std::span(frames_).subspan(sets_[set].first, sets_[set].count);
  }
  /// The set that behaves the same within one token, with counters at a value that stands for all.
  StackSet canonical(StackSet set) const noexcept { return sets_[set].canonical; }
  std::size_t size_bytes() const noexcept;

 private:
  struct Set {
    std::uint32_t first = 0, count = 0;
    bool has_empty = false;
    StackSet canonical = 0;
  };
  StackSet intern(std::span<const StackFrame> frames, bool has_empty);
  StackSet make_canonical(StackSet set);
  std::uint64_t clip(const StackFrame& frame) const noexcept;
  bool merge(StackSet a, StackSet b, std::vector<StackFrame>& out,
             std::vector<std::pair<StackSet, StackSet>>& todo);

  const GrammarNetwork* net_;
  std::uint64_t longest_;
  std::vector<Set> sets_;
  std::vector<StackFrame> frames_;
  HashIndex index_;
  std::unordered_map<std::uint64_t, StackSet> united_;
};

}  // namespace cyb::text
