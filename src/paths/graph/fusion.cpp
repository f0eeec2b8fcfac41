// Groups grow from each node in order along its readers, as far as all that they need is there.
#include "paths/graph/fusion.hpp"

#include <algorithm>
#include <set>

#include "ops/elementwise.hpp"

namespace cyb {
namespace {

constexpr std::size_t kMaxMembers = 16;

}  // namespace

class Fusion::Finder {
 public:
  Finder(const FusionInput& input, const Fuses& fuses)
      : in_(input), nodes_(input.program.nodes()), fuses_(fuses) {
    const std::size_t n_values = input.program.values().size();
    readers_.resize(n_values);
    made_at_.assign(n_values, -1);
    for (std::uint32_t at = in_.begin; at < in_.end; ++at) {
      fusion_.heads_.push_back(at);
      for (const std::uint32_t v : nodes_[at].inputs) {
        if (v != 0) readers_[v].push_back(at);
      }
      for (const std::uint32_t v : nodes_[at].outputs) made_at_[v] = at;
    }
    fusion_.begin_ = in_.begin;
  }

  Fusion find() {
    for (std::uint32_t at = in_.begin; at < in_.end; ++at) {
      const bool leads =
          in_.is_step[at - in_.begin] && fusion_.head(at) == at && nodes_[at].outputs.size() == 1;
      if (leads) grow(at);
    }
    return std::move(fusion_);
  }

 private:
  std::uint32_t result(std::uint32_t node) const { return nodes_[node].outputs[0]; }

  void grow(std::uint32_t head) {
    std::vector<std::uint32_t> found;
    std::set<std::uint32_t> values = {result(head)};
    std::set<std::uint32_t> todo(readers_[result(head)].begin(), readers_[result(head)].end());
    while (!todo.empty() && found.size() < kMaxMembers) {
      const std::uint32_t at = *todo.begin();
      todo.erase(todo.begin());
      if (!joins(at, head, values)) continue;
      found.push_back(at);
      values.insert(result(at));
      todo.insert(readers_[result(at)].begin(), readers_[result(at)].end());
    }
    for (; !found.empty(); found.pop_back()) {
      const std::vector<std::uint32_t> members = needed_by(found.back(), found);
      if (!closed(head, members) || !fuses_(head, members)) continue;
      take(head, members);
      return;
    }
  }

  bool joins(std::uint32_t at, std::uint32_t head, const std::set<std::uint32_t>& values) const {
    const TensorProgram::Node& node = nodes_[at];
    if (!is_elementwise(node.op.tag) || !in_.is_step[at - in_.begin] || fusion_.head(at) != at)
      return false;
    const TensorSpec &got = in_.specs[result(at)], &want = in_.specs[result(head)];
    if (got.dtype != want.dtype || got.dims != want.dims) return false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const std::uint32_t v = node.inputs[k];
      if (values.contains(v)) {
        if (!works_in_place(node.op.tag, k)) return false;
      } else if (v != 0 && made_at_[v] >= static_cast<std::int64_t>(head)) {
        return false;
      }
    }
    return true;
  }

  /// `last` and those of `found` that it depends on.
  std::vector<std::uint32_t> needed_by(std::uint32_t last,
                                       const std::vector<std::uint32_t>& found) const {
    std::set<std::uint32_t> wanted = {result(last)};
    std::vector<std::uint32_t> members;
    for (auto at = found.rbegin(); at != found.rend(); ++at) {
      if (!wanted.contains(result(*at))) continue;
      members.insert(members.begin(), *at);
      wanted.insert(nodes_[*at].inputs.begin(), nodes_[*at].inputs.end());
    }
    return members;
  }

  /// No value but the last one is read outside.
  bool closed(std::uint32_t head, const std::vector<std::uint32_t>& members) const {
    const auto inside = [&](std::uint32_t v) {
      return in_.program.values()[v].last_use < in_.end &&
             std::ranges::all_of(
                 readers_[v],
                 [&](std::uint32_t reader) {
                   return std::ranges::find(members, reader) != members.end();
                 });
    };
    if (!inside(result(head))) return false;
    return std::all_of(members.begin(), members.end() - 1,
                       [&](std::uint32_t node) { return inside(result(node)); });
  }

  void take(std::uint32_t head, const std::vector<std::uint32_t>& members) {
    for (const std::uint32_t node : members) {
      fusion_.heads_[node - in_.begin] = head;
      made_at_[result(node)] = head;
    }
    fusion_.members_[head] = members;
  }

  const FusionInput& in_;
  const std::vector<TensorProgram::Node>& nodes_;
  const Fuses& fuses_;
  std::vector<std::vector<std::uint32_t>> readers_;  // nodes of the stage, per value
  std::vector<std::int64_t> made_at_;                // node whose step gives a value; -1: before
  Fusion fusion_;
};

Fusion Fusion::find(const FusionInput& input, const Fuses& fuses) {
  return Finder(input, fuses).find();
}

}  // namespace cyb
