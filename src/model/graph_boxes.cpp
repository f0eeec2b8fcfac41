// Joining nodes into boxes.
#include "model/graph_boxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "model/format_error.hpp"
#include "model/graph_bodies.hpp"
#include "ops/control/control.hpp"

namespace cyb {
namespace {

constexpr std::size_t kMaxLines = 24;  // of one box: a long chain becomes several
constexpr std::size_t kMaxText = 72;   // characters of a detail

std::string shortened(std::string text) {
  if (text.size() <= kMaxText) return text;
  text.resize(kMaxText - 3);
  return text + "...";
}

class Maker {
 public:
  Maker(const Graph& graph, const GraphTypes& types, const WeightLookup& weights)
      : graph_(graph), types_(types), weights_(weights) {}

  Picture make() {
    for (const GraphInput& input : graph_.inputs) {
      made_[input.name] = add_box(BoxKind::kInput);
      picture_.boxes.back().lines.push_back(
          {printable(input.name), input.spec.text(graph_.symbols)});
      specs_[input.name] = &input.spec;
    }
    count_readers();
    std::size_t dead = 0;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const bool skip = dead < types_.dead_nodes.size() && types_.dead_nodes[dead] == i;
      if (skip) ++dead;
      if (!skip) add_node(i);
    }
    for (const std::string& name : graph_.outputs) {
      const std::uint32_t box = add_box(BoxKind::kOutput);
      const auto spec = specs_.find(name);
      picture_.boxes.back().lines.push_back(
          {printable(name),
           spec == specs_.end() ? "" : shortened(spec->second->text(graph_.symbols))});
      connect(name, box);
    }
    return std::move(picture_);
  }

 private:
  std::uint32_t add_box(BoxKind kind) {
    picture_.boxes.push_back({kind, {}});
    return static_cast<std::uint32_t>(picture_.boxes.size() - 1);
  }

  void count_readers() {
    for (const GraphNode& node : graph_.nodes) {
      for (const std::string& name : node.inputs) ++readers_[name];
    }
    for (const std::string& name : graph_.outputs) readers_[name] += 2;  // it has a box of its own
  }

  /// The tensor that alone feeds the node, if the node can go into its maker's box.
  const std::string* only_source(const GraphNode& node) const {
    const std::string* only = nullptr;
    for (const std::string& name : node.inputs) {
      if (name.empty() || !made_.contains(name)) continue;
      if (only != nullptr) return nullptr;
      only = &name;
    }
    return only;
  }

  void add_node(std::uint32_t i) {
    const GraphNode& node = graph_.nodes[i];
    if (node.inputs.empty() && node.op.tag == OpTag::kConstant) {  // shown where it is read
      constants_[node.outputs[0]] = types_.node_outputs[i][0];
      return;
    }
    const std::string* source = only_source(node);
    std::uint32_t box = UINT32_MAX;
    if (source != nullptr && readers_.at(*source) == 1) {
      const std::uint32_t maker = made_.at(*source);
      const PictureBox& candidate = picture_.boxes[maker];
      const bool joins = candidate.kind == BoxKind::kNodes && last_[maker] == *source &&
                         candidate.lines.size() < kMaxLines;
      if (joins) box = maker;
    }
    if (box == UINT32_MAX) {
      box = add_box(BoxKind::kNodes);
      for (const std::string& name : node.inputs) connect(name, box);
    }
    picture_.boxes[box].lines.push_back({std::string(op_info(node.op.tag).name), detail(i)});
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      made_[node.outputs[k]] = box;
      specs_[node.outputs[k]] = &types_.node_outputs[i][k];
    }
    // Only a node with one result can be followed inside the box.
    last_[box] = node.outputs.size() == 1 ? node.outputs[0] : std::string();
  }

  std::string detail(std::uint32_t i) const {
    const GraphNode& node = graph_.nodes[i];
    std::string text;
    for (const std::string& name : node.inputs) {
      if (name.empty() || made_.contains(name)) continue;
      const auto constant = constants_.find(name);
      const auto weight =
          constant != constants_.end() ? std::optional(constant->second) : weights_(name);
      if (weight) text += (text.empty() ? "" : " ") + weight->text(graph_.symbols);
    }
    if (!text.empty()) text = "W " + text + " ";
    for (std::size_t k = 0; k < body_attrs(node.op.tag).size(); ++k) {
      const auto body = decode_body(node, k);
      if (body) text += fmt::format("{} {} nodes ", body_name(node, k), body->nodes.size());
    }
    text += "\u2192";
    for (const TensorSpec& spec : types_.node_outputs[i]) text += " " + spec.text(graph_.symbols);
    return shortened(std::move(text));
  }

  void connect(const std::string& name, std::uint32_t to) {
    const auto maker = made_.find(name);
    if (name.empty() || maker == made_.end()) return;
    const std::uint32_t from = maker->second;
    // The edges into one box are added one after the other.
    for (std::size_t e = picture_.edges.size(); e > 0 && picture_.edges[e - 1].to == to; --e) {
      if (picture_.edges[e - 1].from == from) return;
    }
    const auto spec = specs_.find(name);
    picture_.edges.push_back(
        {from, to,
         spec == specs_.end() ? "" : shortened(dims_text(spec->second->dims, graph_.symbols))});
  }

  const Graph& graph_;
  const GraphTypes& types_;
  const WeightLookup& weights_;
  Picture picture_;
  std::unordered_map<std::string, std::uint32_t> made_;  // tensor -> box
  std::unordered_map<std::string, std::uint32_t> readers_;
  std::unordered_map<std::string, const TensorSpec*> specs_;
  std::unordered_map<std::string, TensorSpec> constants_;
  std::unordered_map<std::uint32_t, std::string> last_;  // box -> the one tensor it ends with
};

}  // namespace

Picture graph_picture(const Graph& graph, const GraphTypes& types, const WeightLookup& weights) {
  return Maker(graph, types, weights).make();
}

}  // namespace cyb
