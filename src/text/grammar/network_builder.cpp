// A node has any number of edges; alternatives leave from one node, so that sets of active nodes
// stay small.
#include "text/grammar/network_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cyb::text {
namespace {

// Of a short text: so many copies are cheaper than a counter.
constexpr std::uint64_t kMostCopies = 16, kMostByteCopies = 32;
constexpr std::size_t kInlineCost = 64;

struct ByteRange {
  std::uint8_t first = 0, last = 0;
};
struct Utf8Range {
  std::array<ByteRange, 4> bytes{};
  std::size_t size = 0;
};

std::size_t encode(char32_t c, std::array<std::uint8_t, 4>& out) {
  const auto tail = [c](unsigned shift) {
    return static_cast<std::uint8_t>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    out[0] = static_cast<std::uint8_t>(c);
    return 1;
  }
  if (c < 0x800) {
    out = {static_cast<std::uint8_t>(0xC0U | (c >> 6)), tail(0)};
    return 2;
  }
  if (c < 0x10000) {
    out = {static_cast<std::uint8_t>(0xE0U | (c >> 12)), tail(6), tail(0)};
    return 3;
  }
  out = {static_cast<std::uint8_t>(0xF0U | (c >> 18)), tail(12), tail(6), tail(0)};
  return 4;
}

/// Where [first, last] must be cut so that every byte is a range of its own; `last` where it need
/// not be.
char32_t cut(char32_t first, char32_t last) {
  for (const char32_t size : {0x7FU, 0x7FFU, 0xFFFFU}) {
    if (first <= size && last > size) return size;
  }
  for (unsigned i = 1; i < 4; ++i) {
    const char32_t mask = (1U << (6 * i)) - 1;
    if (last < 0x80 || (first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) return first | mask;
    if ((last & mask) != mask) return (last & ~mask) - 1;
  }
  return last;
}

/// The characters of a range as runs of byte ranges.
std::vector<Utf8Range> utf8_ranges(const CharSet& set) {
  std::vector<Utf8Range> out;
  for (CharRange rest : set.ranges()) {
    while (rest.first <= rest.last) {
      CharRange piece = rest;
      while (cut(piece.first, piece.last) != piece.last) piece.last = cut(piece.first, piece.last);
      std::array<std::uint8_t, 4> low{}, high{};
      Utf8Range range{.size = encode(piece.first, low)};
      encode(piece.last, high);
      for (std::size_t i = 0; i < range.size; ++i) range.bytes[i] = {low[i], high[i]};
      out.push_back(range);
      rest.first = piece.last + 1;
    }
  }
  return out;
}

ByteSet byte_set(std::uint8_t first, std::uint8_t last) {
  ByteSet out;
  for (unsigned byte = first; byte <= last; ++byte) out.set(byte);
  return out;
}

}  // namespace

NodeId NetworkBuilder::node() {
  net_.nodes_.emplace_back();
  return static_cast<NodeId>(net_.nodes_.size() - 1);
}

void NetworkBuilder::edge(NodeId from, NetworkEdge e) {
  edges_.emplace_back(from, e);
}

void NetworkBuilder::bytes(NodeId from, const ByteSet& set, NodeId to) {
  const auto [at, added] = set_ids_.try_emplace(set, static_cast<std::uint32_t>(net_.sets_.size()));
  if (added) net_.sets_.push_back(set);
  net_.nodes_[from].reads = true;
  edge(from, {EdgeKind::kBytes, false, at->second, to});
}

std::uint32_t NetworkBuilder::machine(ExprId body, RuleId rule) {
  const NodeId entry = node(), final = node();
  net_.nodes_[final].final = true;
  net_.machines_.push_back({entry, final, rule});
  bodies_.push_back(body);
  return static_cast<std::uint32_t>(net_.machines_.size() - 1);
}

std::uint32_t NetworkBuilder::machine_of(RuleId rule) {
  const auto found = machine_of_rule_.find(rule);
  if (found != machine_of_rule_.end()) return found->second;
  const std::uint32_t id = machine(rules_.rule_at(rule).body, rule);
  machine_of_rule_.emplace(rule, id);
  return id;
}

bool NetworkBuilder::measure_inline(RuleId rule) const {
  if (!rules_.rule_at(rule).may_inline) return false;
  std::size_t cost = 0;
  std::vector<ExprId> todo{rules_.rule_at(rule).body};
  while (!todo.empty() && cost <= kInlineCost) {
    const Expr& e = rules_.at(todo.back());
    todo.pop_back();
    cost += 1;
    if (e.kind == ExprKind::kRule) return false;
    if (e.kind == ExprKind::kLiteral) cost += e.count;
    if (e.kind == ExprKind::kClass && rules_.set(e).ranges().back().last > 0x7F) cost += 11;
    if (e.kind == ExprKind::kRepeat) todo.push_back(e.first);
    if (e.kind != ExprKind::kSequence && e.kind != ExprKind::kChoice) continue;
    const auto all = rules_.children(e);
    todo.insert(todo.end(), all.begin(), all.end());
  }
  return cost <= kInlineCost;
}

bool NetworkBuilder::inlines(RuleId rule) {
  const auto found = inlines_.find(rule);
  if (found != inlines_.end()) return found->second;
  const bool value = measure_inline(rule);
  inlines_.emplace(rule, value);
  return value;
}

std::string NetworkBuilder::place() const {
  return rules_.rule_at(rule_).name;
}

void NetworkBuilder::emit_class(const CharSet& set, NodeId from, NodeId to) {
  std::map<NodeId, ByteSet> leads;
  std::map<std::tuple<std::uint8_t, std::uint8_t, NodeId>, NodeId> shared;
  for (const Utf8Range& range : utf8_ranges(set)) {
    NodeId target = to;
    for (std::size_t i = range.size; i-- > 1;) {
      const ByteRange& b = range.bytes[i];
      const auto [at, added] = shared.try_emplace({b.first, b.last, target}, 0);
      if (added) {
        at->second = node();
        bytes(at->second, byte_set(b.first, b.last), target);
      }
      target = at->second;
    }
    leads[target] |= byte_set(range.bytes[0].first, range.bytes[0].last);
  }
  for (const auto& [target, set_of_leads] : leads) bytes(from, set_of_leads, target);
}

void NetworkBuilder::emit_sequence(const Expr& e, const Work& work) {
  const auto parts = rules_.children(e);
  NodeId from = work.from;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const NodeId to = i + 1 == parts.size() ? work.to : node();
    work_.push_back({parts[i], from, to});
    from = to;
  }
}

/// A short text min..max times, written out.
void NetworkBuilder::emit_copies(const Expr& e, const Work& work) {
  NodeId from = work.from;
  const std::uint64_t copies = e.max == kUnbounded ? e.min : e.max;
  for (std::uint64_t i = 0; i < copies; ++i) {
    if (i >= e.min) epsilon(from, work.to);
    const NodeId to = node();
    work_.push_back({e.first, from, to});
    from = to;
  }
  epsilon(from, work.to);
  if (e.max == kUnbounded) work_.push_back({e.first, from, from});
}

void NetworkBuilder::emit_repeat(const Expr& e, const Work& work) {
  const Expr& child = rules_.at(e.first);
  const bool set = child.kind == ExprKind::kClass;
  const bool short_text = set || (child.kind == ExprKind::kLiteral && child.count <= 4);
  const bool byte = set && rules_.set(child).ranges().back().last < 0x80;
  const std::uint64_t most_copies = byte ? kMostByteCopies : kMostCopies;
  if (e.max == kUnbounded && e.min <= 1) {
    const NodeId begin = node(), end = e.min == 0 ? begin : node();
    epsilon(work.from, begin);
    work_.push_back({e.first, begin, end});
    if (e.min == 1) epsilon(end, begin);
    epsilon(end, work.to);
  } else if (e.max == 1) {
    work_.push_back({e.first, work.from, work.to});
    epsilon(work.from, work.to);
  } else if (short_text && (e.max == kUnbounded ? e.min : e.max) <= most_copies) {
    emit_copies(e, work);
  } else {
    const std::uint32_t body = machine(e.first, rule_);
    net_.loops_.push_back({body, e.min, e.max, work.to});
    edge(work.from,
         {EdgeKind::kLoop, false, static_cast<std::uint32_t>(net_.loops_.size() - 1), work.to});
  }
}

Result<void> NetworkBuilder::emit_rule(const Expr& e, const Work& work) {
  const GrammarRule& rule = rules_.rule_at(e.first);
  if (rule.body == kNoExpr) return fail(grammar_error(rule.name, "is used, but not defined"));
  if (inlines(e.first)) {
    work_.push_back({rule.body, work.from, work.to});
  } else {
    edge(work.from, {EdgeKind::kCall, false, machine_of(e.first), work.to});
  }
  return {};
}

Result<void> NetworkBuilder::emit(const Work& work) {
  const Expr& e = rules_.at(work.expr);
  switch (e.kind) {
    case ExprKind::kEmpty:
      epsilon(work.from, work.to);
      break;
    case ExprKind::kNever:
      break;
    case ExprKind::kLiteral: {
      NodeId from = work.from;
      const std::string_view text = rules_.bytes(e);
      for (std::size_t i = 0; i < text.size(); ++i) {
        const NodeId to = i + 1 == text.size() ? work.to : node();
        const std::uint8_t byte = static_cast<std::uint8_t>(text[i]);
        bytes(from, byte_set(byte, byte), to);
        from = to;
      }
      break;
    }
    case ExprKind::kClass:
      emit_class(rules_.set(e), work.from, work.to);
      break;
    case ExprKind::kSequence:
      emit_sequence(e, work);
      break;
    case ExprKind::kChoice:
      for (const ExprId part : rules_.children(e)) work_.push_back({part, work.from, work.to});
      break;
    case ExprKind::kRepeat:
      emit_repeat(e, work);
      break;
    case ExprKind::kRule:
      return emit_rule(e, work);
  }
  return {};
}

/// Edges by their source.
void NetworkBuilder::finish() {
  net_.first_edge_.assign(net_.nodes_.size() + 1, 0);
  for (const auto& [from, e] : edges_) ++net_.first_edge_[from + 1];
  for (std::size_t i = 0; i < net_.nodes_.size(); ++i)
    net_.first_edge_[i + 1] += net_.first_edge_[i];
  std::vector<std::uint32_t> at(net_.first_edge_.begin(), net_.first_edge_.end() - 1);
  net_.edges_.resize(edges_.size());
  for (const auto& [from, e] : edges_) net_.edges_[at[from]++] = e;
}

Result<GrammarNetwork> NetworkBuilder::run() {
  rule_ = rules_.root;
  const GrammarRule& root = rules_.rule_at(rules_.root);
  if (root.body == kNoExpr) return fail(grammar_error(root.name, "is not defined"));
  machine_of(rules_.root);
  for (std::size_t m = 0; m < bodies_.size(); ++m) {
    const Machine machine = net_.machines_[m];
    rule_ = machine.rule;
    work_.push_back({bodies_[m], machine.entry, machine.final});
    while (!work_.empty()) {
      const Work work = work_.back();
      work_.pop_back();
      CYB_TRY(emit(work));
      CYB_TRY(budget_.step(place()));
      if (net_.nodes_.size() <= kMaxGrammarStates && edges_.size() <= 4 * kMaxGrammarStates)
        continue;
      return fail(grammar_error(
          place(), fmt::format("the grammar has more than {} states here", kMaxGrammarStates)));
    }
  }
  finish();
  CYB_TRY(NetworkChecks(net_, rules_, budget_).run());
  return std::move(net_);
}

Result<GrammarNetwork> GrammarNetwork::build(const GrammarRules& rules, GrammarBudget& budget) {
  return NetworkBuilder(rules, budget).run();
}

}  // namespace cyb::text
