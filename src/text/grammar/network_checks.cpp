// Facts about nodes spread backwards along edges, each edge once; left recursion is a cycle of
// edges that read nothing and enter a machine (Tarjan's components, with a stack of its own).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "text/grammar/network_builder.hpp"

namespace cyb::text {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Positions of `n` keys' items: first[k] .. first[k + 1] of the result are the items of key k.
template <class KeyOf>
void index_by(std::size_t n, std::size_t n_items, KeyOf key_of, std::vector<std::uint32_t>& first,
              std::vector<std::uint32_t>& items) {
  first.assign(n + 1, 0);
  for (std::size_t i = 0; i < n_items; ++i) {
    if (key_of(i) != kNone) ++first[key_of(i) + 1];
  }
  for (std::size_t k = 0; k < n; ++k) first[k + 1] += first[k];
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  items.resize(first[n]);
  for (std::size_t i = 0; i < n_items; ++i) {
    if (key_of(i) != kNone) items[at[key_of(i)]++] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace

void NetworkChecks::index_edges() {
  const auto& edges = net_.edges_;
  sources_.resize(edges.size());
  for (NodeId n = 0; n < net_.n_nodes(); ++n) {
    for (std::uint32_t i = net_.first_edge_[n]; i < net_.first_edge_[n + 1]; ++i) sources_[i] = n;
  }
  index_by(
      net_.n_nodes(), edges.size(), [&](std::size_t i) { return edges[i].target; }, first_in_,
      in_edges_);
  const auto called = [&](std::size_t i) {
    if (edges[i].kind == EdgeKind::kCall) return edges[i].arg;
    return edges[i].kind == EdgeKind::kLoop ? net_.loops_[edges[i].arg].machine : kNone;
  };
  index_by(net_.n_machines(), edges.size(), called, first_caller_, caller_edges_);
  machine_at_.assign(net_.n_nodes(), kNone);
  for (std::uint32_t m = 0; m < net_.n_machines(); ++m) machine_at_[net_.machines_[m].entry] = m;
}

/// Whether what holds at the target of `e` holds at its source.
bool NetworkChecks::passes(const NetworkEdge& e, bool live) const {
  const auto& flags = live ? live_ : null_;
  switch (e.kind) {
    case EdgeKind::kEpsilon:
      return true;
    case EdgeKind::kBytes:
      return live;
    case EdgeKind::kCall:
      return flags[net_.machines_[e.arg].entry];
    case EdgeKind::kLoop: {
      const Loop& loop = net_.loops_[e.arg];
      return loop.min == 0 || flags[net_.machines_[loop.machine].entry];
    }
  }
  return false;
}

Result<void> NetworkChecks::spread(std::vector<bool>& flags, bool live) {
  flags.assign(net_.n_nodes(), false);
  std::vector<NodeId> todo;
  const auto mark = [&](NodeId n) {
    if (flags[n]) return;
    flags[n] = true;
    todo.push_back(n);
  };
  for (const Machine& m : net_.machines_) mark(m.final);
  while (!todo.empty()) {
    const NodeId n = todo.back();
    todo.pop_back();
    CYB_TRY(budget_.step("root"));
    for (std::uint32_t i = first_in_[n]; i < first_in_[n + 1]; ++i) {
      if (passes(net_.edges_[in_edges_[i]], live)) mark(sources_[in_edges_[i]]);
    }
    const std::uint32_t m = machine_at_[n];
    if (m == kNone) continue;
    for (std::uint32_t i = first_caller_[m]; i < first_caller_[m + 1]; ++i) {
      const std::uint32_t e = caller_edges_[i];
      if (flags[net_.edges_[e].target]) mark(sources_[e]);
    }
  }
  return {};
}

/// Whether a machine ends where `node` is reached, and nowhere else.
bool NetworkChecks::ends_at(NodeId node) const {
  for (int hops = 0; hops < 64; ++hops) {
    const auto edges = net_.edges(node);
    if (net_.nodes_[node].final) return edges.empty();
    if (edges.size() != 1 || edges[0].kind != EdgeKind::kEpsilon) return false;
    node = edges[0].target;
  }
  return false;
}

void NetworkChecks::settle() {
  for (NodeId n = 0; n < net_.n_nodes(); ++n) net_.nodes_[n].live = live_[n];
  for (Machine& m : net_.machines_) m.nullable = null_[m.entry];
  for (Loop& loop : net_.loops_) {
    loop.nullable = loop.min == 0 || null_[net_.machines_[loop.machine].entry];
    if (!live_[net_.machines_[loop.machine].entry]) loop.max = 0;
  }
  for (NetworkEdge& e : net_.edges_) {
    if (e.kind == EdgeKind::kCall) e.tail = ends_at(e.target);
  }
}

/// Adds the nodes that are reached from `node` without reading, into machines among them.
void NetworkChecks::left_edges(NodeId node, std::vector<NodeId>& out) const {
  const auto add = [&](NodeId n) {
    if (live_[n]) out.push_back(n);
  };
  for (const NetworkEdge& e : net_.edges(node)) {
    if (e.kind == EdgeKind::kEpsilon) add(e.target);
    if (e.kind == EdgeKind::kCall) {
      add(net_.machines_[e.arg].entry);
      if (net_.machines_[e.arg].nullable) add(e.target);
    }
    if (e.kind == EdgeKind::kLoop) {
      const Loop& loop = net_.loops_[e.arg];
      if (loop.max > 0) add(net_.machines_[loop.machine].entry);
      if (loop.nullable) add(e.target);
    }
  }
}

/// Components of the nodes under left_edges(); kNone for nodes that never end.
Result<std::vector<std::uint32_t>> NetworkChecks::left_components() {
  const std::size_t n_nodes = net_.n_nodes();
  std::vector<std::uint32_t> order(n_nodes, kNone), low(n_nodes, 0), component(n_nodes, kNone);
  struct Frame {
    NodeId node;
    std::size_t first, next;  // of `targets`, which holds those of the whole path
  };
  std::vector<Frame> path;
  std::vector<NodeId> open, targets;
  std::uint32_t count = 0, n_components = 0;
  const auto enter = [&](NodeId n) {
    order[n] = low[n] = count++;
    open.push_back(n);
    path.push_back({n, targets.size(), targets.size()});
    left_edges(n, targets);
  };
  for (NodeId start = 0; start < n_nodes; ++start) {
    if (order[start] == kNone && live_[start]) enter(start);
    while (!path.empty()) {
      Frame& top = path.back();
      const NodeId n = top.node;
      if (top.next < targets.size()) {
        const NodeId to = targets[top.next++];
        if (order[to] != kNone && component[to] == kNone) low[n] = std::min(low[n], order[to]);
        if (order[to] == kNone) enter(to);
        CYB_TRY(budget_.step("root"));
        continue;
      }
      if (low[n] == order[n]) {
        for (NodeId member = kNone; member != n; open.pop_back()) {
          member = open.back();
          component[member] = n_components;
        }
        ++n_components;
      }
      targets.resize(top.first);
      path.pop_back();
      if (!path.empty()) low[path.back().node] = std::min(low[path.back().node], low[n]);
    }
  }
  return component;
}

Result<void> NetworkChecks::refuse_left_recursion() {
  CYB_ASSIGN(const std::vector<std::uint32_t> component, left_components());
  for (std::size_t i = 0; i < net_.edges_.size(); ++i) {
    const NetworkEdge& e = net_.edges_[i];
    if (e.kind != EdgeKind::kCall && e.kind != EdgeKind::kLoop) continue;
    const bool call = e.kind == EdgeKind::kCall;
    const Machine& m = net_.machines_[call ? e.arg : net_.loops_[e.arg].machine];
    if (!live_[sources_[i]] || component[sources_[i]] != component[m.entry]) continue;
    if (component[m.entry] == kNone) continue;
    return fail(grammar_error(rules_.rule_at(m.rule).name,
                              "left recursion: the rule can begin with itself, by way of others "
                              "or of an optional part"));
  }
  return {};
}

void NetworkChecks::classify_bytes() {
  std::array<std::uint16_t, 256> classes{};
  std::size_t n = 1;
  for (const ByteSet& set : net_.sets_) {
    std::array<std::uint16_t, 512> renamed{};
    renamed.fill(0xFFFF);
    std::uint16_t count = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::uint16_t& name = renamed[2U * classes[byte] + (set.test(byte) ? 1U : 0U)];
      if (name == 0xFFFF) name = count++;
      classes[byte] = name;
    }
    n = count;
    if (n == 256) break;
  }
  for (unsigned byte = 0; byte < 256; ++byte)
    net_.classes_[byte] = static_cast<std::uint8_t>(classes[byte]);
  net_.n_classes_ = n;
}

Result<void> NetworkChecks::run() {
  index_edges();
  CYB_TRY(spread(null_, false));
  CYB_TRY(spread(live_, true));
  settle();
  if (!live_[net_.root().entry]) {
    return fail(
        grammar_error(rules_.rule_at(net_.root().rule).name,
                      "no finite text fits: every way through it goes on for ever or needs a "
                      "character of a class that has none"));
  }
  CYB_TRY(refuse_left_recursion());
  classify_bytes();
  return {};
}

}  // namespace cyb::text
