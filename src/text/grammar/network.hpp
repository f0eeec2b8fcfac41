// GrammarNetwork: a grammar compiled to machines over bytes that call each other (a recursive
// transition network). Repetitions with bounds are loops with a counter, never copies. Immutable.
// Invariants: no machine can call itself before a byte was read; every node that is `live` reaches
// the end of its machine.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "text/grammar/budget.hpp"
#include "text/grammar/expression.hpp"

namespace cyb::text {

using NodeId = std::uint32_t;

enum class EdgeKind : std::uint8_t { kEpsilon, kBytes, kCall, kLoop };

struct NetworkEdge {
  EdgeKind kind = EdgeKind::kEpsilon;
  bool tail = false;      // kCall: nothing follows in this machine
  std::uint32_t arg = 0;  // byte set, machine, loop
  NodeId target = 0;      // where it goes on
};

struct Machine {
  NodeId entry = 0, final = 0;
  RuleId rule = 0;  // the one that it is, or is a part of
  bool nullable = false;
};

/// `machine` min..max times. `nullable`: none at all is enough (also where the machine itself is
/// nullable: iterations that read nothing do not count).
struct Loop {
  std::uint32_t machine = 0;
  std::uint64_t min = 0, max = 0;
  NodeId next = 0;
  bool nullable = false;
};

using ByteSet = std::bitset<256>;

class GrammarNetwork {
 public:
  /// Errors: InvalidInput for a rule without a body, one that never ends, left recursion, more than
  /// kMaxGrammarStates nodes, no time left; each names the rule.
  static Result<GrammarNetwork> build(const GrammarRules& rules, GrammarBudget& budget);

  std::size_t n_nodes() const noexcept { return nodes_.size(); }
  std::span<const NetworkEdge> edges(NodeId node) const noexcept {
    return std::span(edges_).subspan(first_edge_[node], first_edge_[node + 1] - first_edge_[node]);
  }
  bool live(NodeId node) const noexcept { return nodes_[node].live; }
  bool final(NodeId node) const noexcept { return nodes_[node].final; }
  bool reads(NodeId node) const noexcept { return nodes_[node].reads; }
  const Machine& machine(std::uint32_t id) const noexcept { return machines_[id]; }
  std::size_t n_machines() const noexcept { return machines_.size(); }
  const Loop& loop(std::uint32_t id) const noexcept { return loops_[id]; }
  const ByteSet& set(std::uint32_t id) const noexcept { return sets_[id]; }
  /// The machine of the root rule.
  const Machine& root() const noexcept { return machines_[0]; }
  /// Bytes of one class are alike everywhere.
  std::uint8_t byte_class(std::uint8_t byte) const noexcept { return classes_[byte]; }
  std::size_t n_classes() const noexcept { return n_classes_; }

 private:
  friend class NetworkBuilder;
  friend class NetworkChecks;
  struct Node {
    bool live = false, final = false, reads = false;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> first_edge_;  // [n_nodes + 1]
  std::vector<NetworkEdge> edges_;
  std::vector<Machine> machines_;
  std::vector<Loop> loops_;
  std::vector<ByteSet> sets_;
  std::array<std::uint8_t, 256> classes_{};
  std::size_t n_classes_ = 1;
};

}  // namespace cyb::text
