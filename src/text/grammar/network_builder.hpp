// NetworkBuilder: expressions to nodes and edges. Works off a list of (expression, from, to), so
// that nothing recurses on a grammar's shape.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "text/grammar/network.hpp"

namespace cyb::text {

class NetworkBuilder {
 public:
  NetworkBuilder(const GrammarRules& rules, GrammarBudget& budget)
      : rules_(rules), budget_(budget) {}
  /// Errors: those of GrammarNetwork::build().
  Result<GrammarNetwork> run();

 private:
  struct Work {
    ExprId expr;
    NodeId from, to;
  };
  NodeId node();
  void edge(NodeId from, NetworkEdge e);
  void epsilon(NodeId from, NodeId to) { edge(from, {EdgeKind::kEpsilon, false, 0, to}); }
  void bytes(NodeId from, const ByteSet& set, NodeId to);
  std::uint32_t machine(ExprId body, RuleId rule);
  std::uint32_t machine_of(RuleId rule);
  bool inlines(RuleId rule);
  bool measure_inline(RuleId rule) const;
  Result<void> emit(const Work& work);
  Result<void> emit_rule(const Expr& e, const Work& work);
  void emit_sequence(const Expr& e, const Work& work);
  void emit_class(const CharSet& set, NodeId from, NodeId to);
  void emit_repeat(const Expr& e, const Work& work);
  void emit_copies(const Expr& e, const Work& work);
  void finish();
  std::string place() const;

  const GrammarRules& rules_;
  GrammarBudget& budget_;
  GrammarNetwork net_;
  std::vector<std::pair<NodeId, NetworkEdge>> edges_;
  std::vector<ExprId> bodies_;  // [machine]
  std::unordered_map<RuleId, std::uint32_t> machine_of_rule_;
  std::unordered_map<RuleId, bool> inlines_;
  std::unordered_map<ByteSet, std::uint32_t> set_ids_;
  std::vector<Work> work_;
  RuleId rule_ = 0;  // whose machine is being built
};

/// What is true of nodes as a whole: which end, which need nothing, left recursion, classes of
/// bytes.
class NetworkChecks {
 public:
  NetworkChecks(GrammarNetwork& net, const GrammarRules& rules, GrammarBudget& budget)
      : net_(net), rules_(rules), budget_(budget) {}
  Result<void> run();

 private:
  void index_edges();
  bool passes(const NetworkEdge& e, bool live) const;
  Result<void> spread(std::vector<bool>& flags, bool live);
  void settle();
  bool ends_at(NodeId node) const;
  Result<std::vector<std::uint32_t>> left_components();
  Result<void> refuse_left_recursion();
  void left_edges(NodeId node, std::vector<NodeId>& out) const;
  void classify_bytes();

  GrammarNetwork& net_;
  const GrammarRules& rules_;
  GrammarBudget& budget_;
  std::vector<NodeId> sources_;                             // [edge]
  std::vector<std::uint32_t> first_in_, in_edges_;          // edges by target
  std::vector<std::uint32_t> first_caller_, caller_edges_;  // calls and loops by machine
  std::vector<std::uint32_t> machine_at_;  // [node] the machine that begins there, or none
  std::vector<bool> null_, live_;
};

}  // namespace cyb::text
