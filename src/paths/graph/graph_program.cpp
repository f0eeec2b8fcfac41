// GraphProgram::plan: binds the symbols of one run and places intermediates by lifetime.
#include "paths/graph/graph_program.hpp"

#include <algorithm>

#include "paths/plan/arena.hpp"

namespace cyb {
namespace {

constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 40;  // sums of offsets cannot wrap

std::vector<std::int64_t> bind_symbols(std::span<const std::string> symbols, std::uint32_t n_new,
                                       std::uint32_t n_past) {
  std::vector<std::int64_t> values;
  for (const std::string& name : symbols) {
    values.push_back(name == "B" ? 1 : name == "S" ? n_new : name == "P" ? n_past : -1);
  }
  return values;
}

}  // namespace

Result<Plan> GraphProgram::plan(std::uint32_t n_new, std::uint32_t max_past) const {
  const std::vector<std::int64_t> symbols = bind_symbols(symbols_, n_new, max_past);
  std::vector<Operand> operands(values_.size());
  for (std::size_t v = 1; v < values_.size(); ++v) {
    const auto shape = values_[v].spec.bind(symbols);
    if (!shape)
      return fail(
          shape_mismatch("graph", "shapes bound by ids and pos", values_[v].spec.text(symbols_)));
    operands[v] = {.kind = values_[v].kind,
                   .dtype = values_[v].spec.dtype,
                   .shape = *shape,
                   .weight = values_[v].weight,
                   .past_axis = takes_any_past_ ? values_[v].past_axis : std::int8_t{-1},
                   .max_past = max_past};
  }
  Plan plan;
  plan.max_tokens = n_new;
  ArenaPlanner arena;
  std::vector<std::vector<std::uint32_t>> ending(nodes_.size() + 1);
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    for (const std::uint32_t v : node.outputs) {
      const std::uint32_t root = values_[v].alias_of;
      if (root == v) {
        const auto size = tensor_bytes(operands[v].dtype, operands[v].shape);
        if (!size || *size > kMaxTensorBytes) {
          return fail(
              out_of_memory("graph", size.value_or(UINT64_MAX), kMaxTensorBytes).in(node.label));
        }
        operands[v].offset = arena.alloc(*size);
        ending[std::min<std::size_t>(values_[v].last_use, nodes_.size())].push_back(v);
      } else {
        operands[v].offset = operands[root].offset;
      }
    }
    for (const std::uint32_t v : ending[i]) arena.free(operands[v].offset);
    if (node.is_view) continue;
    Step step{node.op, {}, {}, node.label};
    for (const std::uint32_t v : node.inputs) step.inputs.push_back(operands[v]);
    for (const std::uint32_t v : node.outputs) step.outputs.push_back(operands[v]);
    plan.steps.push_back(std::move(step));
  }
  plan.arena_bytes = arena.peak_bytes();
  plan.outputs = {operands[output_]};
  return plan;
}

}  // namespace cyb
