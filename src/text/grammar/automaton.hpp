// GrammarAutomaton: the states that a network can be in after some bytes, made as they are reached
// and kept. A state is a set of (node, what its machine returns to); equal states have equal
// numbers. Not for several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar/network.hpp"
#include "text/grammar/stacks.hpp"

namespace cyb::text {

using GrammarState = std::uint32_t;
/// Nothing fits any more, and the text is not complete either.
inline constexpr GrammarState kDeadState = 0;

struct GrammarPlace {
  NodeId node = 0;
  StackSet stack = kEmptyStack;
  bool operator==(const GrammarPlace&) const = default;
};

class GrammarAutomaton {
 public:
  /// `net` must outlive this. `longest`: bytes of the longest token.
  GrammarAutomaton(const GrammarNetwork& net, std::size_t longest);

  GrammarState start() const noexcept { return start_; }
  GrammarState next(GrammarState state, std::uint8_t byte) {
    const std::uint32_t known = rows_[row_of(state) + net_->byte_class(byte)];
    return known != kUnknown ? known : step(state, byte);
  }
  /// The text may end here.
  bool complete(GrammarState state) const noexcept { return states_[state].complete; }
  /// Nothing may follow.
  bool closed(GrammarState state) const noexcept { return states_[state].count == 0; }
  std::span<const GrammarPlace> places(GrammarState state) const noexcept {
    return std::span(places_).subspan(states_[state].first, states_[state].count);
  }
  /// The state that takes the same tokens next, with counters at values that stand for many.
  GrammarState canonical(GrammarState state);
  /// The state of these places (sorted by node), of a text that is not complete.
  GrammarState state_of(std::span<const GrammarPlace> places) { return intern(places, false); }
  /// The state after a machine ended that returns to `frame`.
  GrammarState after_return(const StackFrame& frame);

  const StackSets& stacks() const noexcept { return stacks_; }
  StackSets& stacks() noexcept { return stacks_; }
  std::size_t size_bytes() const noexcept;
  std::size_t n_states() const noexcept { return states_.size(); }

 private:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  struct State {
    std::uint32_t first = 0, count = 0;
    GrammarState canonical = kUnknown;
    bool complete = false;
  };
  struct Visit {
    std::uint64_t round = 0;
    StackSet stack = 0;
  };
  std::size_t row_of(GrammarState state) const noexcept { return state * net_->n_classes(); }
  GrammarState step(GrammarState state, std::uint8_t byte);
  void begin();
  /// `fresh`: the node's machine was entered and has read nothing: it cannot end yet.
  void reach(NodeId node, StackSet stack, bool fresh);
  void settle();
  void follow(NodeId node, StackSet stack, bool fresh);
  void leave(StackSet stack);
  GrammarState end();
  GrammarState intern(std::span<const GrammarPlace> places, bool complete);

  const GrammarNetwork* net_;
  StackSets stacks_;
  std::vector<State> states_;
  std::vector<GrammarPlace> places_;
  std::vector<std::uint32_t> rows_;  // [states, classes of bytes]
  HashIndex index_;
  GrammarState start_ = kDeadState;

  // Of the step that is being made.
  std::vector<Visit> visits_;        // [2 * node + fresh]
  std::vector<Visit> reading_;       // [node]
  std::vector<std::uint32_t> todo_;  // 2 * node + fresh
  std::vector<NodeId> found_;
  std::vector<GrammarPlace> made_;
  std::uint64_t round_ = 0;
  bool complete_ = false;
};

}  // namespace cyb::text
