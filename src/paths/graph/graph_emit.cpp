// Recording: one node per plain op, values named t0, t1, ... in order, so that equal bodies give
// equal bytes.
#include "paths/graph/graph_emit.hpp"

#include <algorithm>

#include "paths/family.hpp"
#include "paths/graph/record.hpp"

namespace cyb {

GraphEmit::GraphEmit(const TensorSource& tensors) : tensors_(tensors), values_(1) {
  values_[kNoValue].spec = TensorSpec::none();
  graph_.symbols = {"B", "S", "P"};
}

ValueId GraphEmit::add(std::string name, TensorSpec spec) {
  values_.push_back({std::move(name), std::move(spec)});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId GraphEmit::input(std::string_view name, TensorSpec spec) {
  if (const auto it = named_.find(name); it != named_.end()) return it->second;
  graph_.inputs.push_back({std::string(name), spec});
  const ValueId id = add(std::string(name), std::move(spec));
  named_.emplace(name, id);
  return id;
}

Result<ValueId> GraphEmit::ids() {
  return input("ids", {DType::kI32, {Dim::symbol(kSymbolB), Dim::symbol(kSymbolS)}});
}

Result<ValueId> GraphEmit::positions() {
  return input("pos", {DType::kI32, {Dim::symbol(kSymbolS)}});
}

Result<ValueId> GraphEmit::length() {
  return input("len", {DType::kI32, {Dim(1)}});
}

Result<ValueId> GraphEmit::weight(std::string_view name, WeightUse use) {
  const bool asked = std::any_of(needs_.begin(), needs_.end(), [&](const WeightNeed& n) {
    return n.use == use && n.name == name;
  });
  if (!asked) needs_.push_back({std::string(name), use});
  if (const auto it = named_.find(name); it != named_.end()) return it->second;
  auto spec = tensors_.find(name);
  if (!spec) return fail(missing_tensor(name, "the family body"));
  const ValueId id = add(std::string(name), std::move(*spec));
  named_.emplace(name, id);
  return id;
}

Result<ValueId> GraphEmit::constant(std::span<const float> values, const Shape& shape) {
  const auto bytes = std::as_bytes(values);
  const Attrs attrs{{std::int64_t{static_cast<std::uint8_t>(DType::kF32)},
                     std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()),
                     std::vector<std::byte>(bytes.begin(), bytes.end())}};
  return one(Op{OpTag::kConstant, attrs}, {});
}

Result<void> GraphEmit::output(std::string_view name, ValueId value) {
  for (GraphNode& node : graph_.nodes) {
    for (std::string& out : node.outputs) {
      if (out == values_[value].name) out = name;
    }
    for (std::string& in : node.inputs) {
      if (in == values_[value].name) in = name;
    }
  }
  values_[value].name = name;
  graph_.outputs.emplace_back(name);
  return {};
}

Result<std::vector<ValueId>> GraphEmit::emit(const Op& op, std::span<const ValueId> inputs) {
  if (op_info(op.tag).fused) return decompose(op, inputs, *this);
  std::vector<TensorSpec> specs;
  GraphNode node{
      .id = static_cast<std::uint32_t>(graph_.nodes.size()), .op = op, .inputs = {}, .outputs = {}};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    TensorSpec spec = values_[inputs[k]].spec;
    // An encoded weight is read as f32 by ops that do not take it as stored (spec ir section 2,
    // rule b).
    const bool is_value = spec.dtype == DType::kI32 || spec.dtype == DType::kBool;
    if (!spec.absent && !is_value && !takes_encoded(op, k))
      spec.dtype = DType::kF32;
    specs.push_back(std::move(spec));
    node.inputs.push_back(values_[inputs[k]].name);
  }
  while (!node.inputs.empty() &&
         node.inputs.back().empty()) {  // trailing absent inputs are not written
    node.inputs.pop_back();
    specs.pop_back();
  }
  CYB_ASSIGN(std::vector<TensorSpec> outputs, infer(op, specs));
  std::vector<ValueId> ids;
  for (TensorSpec& spec : outputs) {
    ids.push_back(add("t" + std::to_string(values_.size()), std::move(spec)));
    node.outputs.push_back(values_[ids.back()].name);
  }
  graph_.nodes.push_back(std::move(node));
  return ids;
}

Result<Graph> record_graph(const ConfigTable& config, const TensorSource& tensors) {
  CYB_ASSIGN(const std::string model_type, config.string("model_type"));
  const FamilyRow* family = find_family(model_type);
  if (family == nullptr) {
    return fail(
        Error(ErrorKind::kDispatch, "D2", "model_type " + model_type + " has no curated codepath"));
  }
  CYB_ASSIGN(const std::unique_ptr<FamilyModel> model, family->bind(config, tensors));
  GraphEmit emit(tensors);
  CYB_TRY(model->body(emit));
  return emit.take();
}

}  // namespace cyb
