// The node of the product keeps its inputs and gets a new output name; the branch gets the old one,
// so nothing after it changes.
#include "paths/graph/lora_graph.hpp"

#include <fmt/format.h>

#include <set>

#include "paths/lora_emit.hpp"

namespace cyb {
namespace {

class Rewriter {
 public:
  Rewriter(const LoraTerms& terms, Graph& graph) : terms_(terms), graph_(graph) {
    for (const GraphInput& input : graph.inputs) names_.insert(input.name);
    for (const GraphNode& node : graph.nodes) {
      names_.insert(node.inputs.begin(), node.inputs.end());
      names_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  Result<void> run() {
    std::vector<GraphNode> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (GraphNode& node : before) CYB_TRY(take(std::move(node)));
    for (const LoraTerm& term : terms_.all()) {
      if (!used_.contains(&term))
        return fail(lora_unused(term, "no node of the graph reads it so"));
    }
    return {};
  }

 private:
  std::string fresh() {
    std::string name;
    do {
      name = fmt::format("lora.t{}", n_++);
    } while (!names_.insert(name).second);
    return name;
  }

  void add(Op op, std::vector<std::string> inputs, std::string output) {
    graph_.nodes.push_back({.id = static_cast<std::uint32_t>(graph_.nodes.size()),
                            .op = std::move(op),
                            .inputs = std::move(inputs),
                            .outputs = {std::move(output)}});
  }

  const LoraTerm* term(const GraphNode& node, std::size_t input) const {
    const bool gather = node.op.tag == OpTag::kTokenEmbed;
    return terms_.find(node.inputs[input], gather ? LoraPlace::kEmbedding : LoraPlace::kProduct);
  }

  Result<void> take(GraphNode node) {
    const LoraTerm* found = nullptr;
    std::size_t at = 0;
    for (std::size_t k = 0; k < node.inputs.size() && found == nullptr; ++k) {
      found = term(node, k);
      at = k;
    }
    node.id = static_cast<std::uint32_t>(graph_.nodes.size());
    if (found == nullptr) {
      graph_.nodes.push_back(std::move(node));
      return {};
    }
    const OpTag tag = node.op.tag;
    if (at != 1 || (tag != OpTag::kMatmul && tag != OpTag::kTokenEmbed)) {
      return fail(lora_unused(
          *found, fmt::format("Op::{} reads it, which takes no adapter", op_info(tag).name)));
    }
    used_.insert(found);
    const std::string x = node.inputs[0], y = node.outputs[0], plain = fresh();
    node.outputs[0] = plain;
    graph_.nodes.push_back(std::move(node));
    if (tag == OpTag::kMatmul) {
      add(lora_op(*found), {plain, x, found->a, found->b}, y);
      return {};
    }
    const std::string low = fresh(), branch = fresh();
    add(Op{OpTag::kTokenEmbed, {}}, {x, found->a}, low);
    add(Op{OpTag::kMatmul, {}}, {low, found->b}, branch);
    add(Op{OpTag::kAdd, {}}, {plain, branch}, y);
    return {};
  }

  const LoraTerms& terms_;
  Graph& graph_;
  std::set<std::string, std::less<>> names_;
  std::set<const LoraTerm*> used_;
  std::size_t n_ = 0;
};

}  // namespace

Result<void> add_branches(const LoraTerms& terms, Graph& graph) {
  return Rewriter(terms, graph).run();
}

}  // namespace cyb
