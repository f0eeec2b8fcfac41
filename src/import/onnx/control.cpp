// Lowering of If, Loop and Scan to ops with bodies. What a Loop carries has one rank; a dimension
// that a round changes is unknown in every round, found by lowering the body until nothing changes.
#include "import/onnx/control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {
namespace {

constexpr std::size_t kMaxTries = 64;  // each but the last makes a dimension unknown

Result<Val> one(Builder& builder, std::string_view op, std::vector<NamedAttr> attrs,
                std::vector<Val> inputs) {
  CYB_ASSIGN(const std::vector<Val> out, builder.emit(op, std::move(attrs), std::move(inputs)));
  return out[0];
}

/// A value of one element as rank 0.
Result<Val> scalar(Builder& builder, Val value, DType dtype, std::string_view what) {
  if (value == 0) return value;
  if (builder.spec(value).dtype != dtype) {
    return fail(onnx_error(fmt::format("{}: {}, expected {}", what,
                                       dtype_name(builder.spec(value).dtype), dtype_name(dtype))));
  }
  if (builder.spec(value).rank() == 0) return value;
  return one(builder, "Reshape", {{"shape", std::vector<std::int64_t>{}}}, {value});
}

Result<Val> number(Builder& builder, std::int64_t value) {
  CYB_ASSIGN(HostTensor tensor, HostTensor::of_ints(std::span(&value, 1), Shape{}));
  return builder.constant(std::move(tensor));
}

Result<Val> list(Builder& builder, std::int64_t value) {
  CYB_ASSIGN(HostTensor tensor, HostTensor::of_ints(std::span(&value, 1), Shape{1}));
  return builder.constant(std::move(tensor));
}

Result<std::shared_ptr<const GraphProto>> graph_of(const NodeProto& node, std::string_view name) {
  const auto at = std::ranges::find(node.attributes, name, &AttributeProto::name);
  if (at == node.attributes.end() || at->type != AttributeType::kGraph)
    return fail(onnx_error(fmt::format("no {}", name)));
  CYB_ASSIGN(GraphProto graph, parse_graph(at->message));
  return std::make_shared<const GraphProto>(std::move(graph));
}

Result<Control> begin_if(const NodeProto& node, std::span<const Val> inputs, Builder& builder) {
  Control out;
  out.node = &node;
  if (inputs.size() != 1 || inputs[0] == 0) return fail(onnx_error("If without its condition"));
  CYB_ASSIGN(const Val condition, scalar(builder, inputs[0], DType::kBool, "condition"));
  out.inputs = {condition};
  for (const std::string_view name : {"then_branch", "else_branch"}) {
    CYB_ASSIGN(auto graph, graph_of(node, name));
    if (graph->outputs.size() < node.outputs.size())
      return fail(onnx_error("more outputs than the branch has"));
    out.graphs.push_back(std::move(graph));
  }
  return out;
}

Result<void> begin_scan(std::span<const Val> inputs, Builder& builder, Control& out) {
  CYB_ASSIGN(ScanShape shape, scan_shape(*out.node, inputs, builder));
  const Scanned& first = shape.in[0];
  CYB_ASSIGN(const Val dims, builder.shape_of(first.value));
  CYB_ASSIGN(const Val at, number(builder, first.axis));
  CYB_ASSIGN(const Val count, one(builder, "Gather", {{"axis", std::int64_t{0}}}, {dims, at}));
  out.inputs = {count, 0};
  out.inputs.insert(out.inputs.end(), shape.state.begin(), shape.state.end());
  out.cut = std::move(shape.in);
  const std::size_t states = shape.state.size();
  if (out.graphs[0]->inputs.size() != inputs.size() || out.graphs[0]->outputs.size() < states)
    return fail(onnx_error("a body with another number of inputs or outputs"));
  out.stacked = scan_outputs(*out.node, out.graphs[0]->outputs.size() - states);
  return {};
}

Result<void> begin_loop(std::span<const Val> inputs, Builder& builder, Control& out) {
  if (inputs.size() < 2) return fail(onnx_error("a Loop without its count and condition"));
  CYB_ASSIGN(const Val count, scalar(builder, inputs[0], DType::kI64, "count"));
  CYB_ASSIGN(const Val condition, scalar(builder, inputs[1], DType::kBool, "condition"));
  out.inputs = {count, condition};
  out.inputs.insert(out.inputs.end(), inputs.begin() + 2, inputs.end());
  const std::size_t carried = inputs.size() - 2;
  if (out.graphs[0]->inputs.size() != inputs.size() || out.graphs[0]->outputs.size() < carried + 1)
    return fail(onnx_error("a body with another number of inputs or outputs"));
  return {};
}

/// Element `round` (or the one as far from the end) of an input of a Scan.
Result<Val> slice_of(const Control& control, const Scanned& cut, Val round, Builder& builder) {
  Val at = round;
  if (cut.reverse) {
    CYB_ASSIGN(const Val last, number(builder, 1));
    CYB_ASSIGN(const Val end, one(builder, "Sub", {}, {control.inputs[0], last}));
    CYB_ASSIGN(at, one(builder, "Sub", {}, {end, round}));
  }
  return one(builder, "Gather", {{"axis", cut.axis}}, {cut.value, at});
}

/// A dimension that differs is unknown from now on; true if there is one.
Result<bool> widen(TensorSpec& kept, const TensorSpec& given, std::size_t k) {
  if (kept.dtype != given.dtype || kept.rank() != given.rank()) {
    return fail(not_built(fmt::format("Loop whose value {} is {} before a round and {} after it", k,
                                      kept.text(), given.text())));
  }
  bool wider = false;
  for (std::size_t i = 0; i < kept.rank(); ++i) {
    if (kept.dims[i].is_anonymous() || kept.dims[i] == given.dims[i]) continue;
    kept.dims[i] = Dim::anonymous();
    wider = true;
  }
  return wider;
}

Result<bool> close_loop(Control& control, std::span<const Val> outputs, Builder& builder) {
  const bool scan = control.node->op_type == "Scan";
  const std::vector<Val>& given = builder.region_inputs(control.regions.back());
  std::vector<Val> values = {given[1]};
  if (!scan) {
    CYB_ASSIGN(values[0], scalar(builder, outputs[0], DType::kBool, "condition"));
    outputs = outputs.subspan(1);
  }
  bool wider = false;
  for (std::size_t k = 0; k < control.carried.size(); ++k) {
    if (outputs[k] == 0) return fail(onnx_error("a body without one of its outputs"));
    CYB_ASSIGN(const bool w, widen(control.carried[k], builder.spec(outputs[k]), k));
    wider = wider || w;
  }
  if (wider) {
    builder.drop_region();
    control.regions.pop_back();
    if (++control.tries > kMaxTries) return fail(not_built("Loop whose state keeps no shape"));
    return true;
  }
  values.insert(values.end(), outputs.begin(), outputs.end());
  if (std::ranges::find(values, Val{0}) != values.end())
    return fail(onnx_error("a body without one of its outputs"));
  CYB_TRY(builder.end_region(values));
  std::vector<TensorSpec> specs;
  for (const Val value : values) specs.push_back(builder.spec(value));
  control.outputs.push_back(std::move(specs));
  return false;
}

Result<std::vector<TensorSpec>> branch_specs(const Control& control) {
  std::vector<TensorSpec> out = control.outputs[0];
  for (std::size_t k = 0; k < out.size() && k < control.outputs[1].size(); ++k) {
    const TensorSpec& other = control.outputs[1][k];
    if (out[k].dtype != other.dtype || out[k].rank() != other.rank()) {
      return fail(not_built(fmt::format(
          "If whose branches give {} and {} for output {} (a torch squeeze exports one: fix the "
          "dimension that decides it with --dim NAME=N)",
          out[k].text(), other.text(), k)));
    }
    for (std::size_t i = 0; i < out[k].rank(); ++i) {
      if (!(out[k].dims[i] == other.dims[i])) out[k].dims[i] = Dim::anonymous();
    }
  }
  return out;
}

/// A stacked output of a Scan has its new axis first: where it belongs, and in its direction.
Result<Val> placed(const Scanned& how, Val value, Builder& builder) {
  if (how.reverse) {
    CYB_ASSIGN(const Val back, list(builder, -1));
    CYB_ASSIGN(const Val end, list(builder, INT64_MIN));
    CYB_ASSIGN(const Val first, list(builder, 0));
    CYB_ASSIGN(value, one(builder, "SliceBy", {}, {value, back, end, first, back}));
  }
  const std::size_t rank = builder.spec(value).rank();
  CYB_ASSIGN(const std::int64_t axis, axis_place(how.axis, rank));
  if (axis == 0) return value;
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 1; d <= axis; ++d) dims.push_back(d);
  dims.push_back(0);
  for (auto d = axis + 1; d < static_cast<std::int64_t>(rank); ++d) dims.push_back(d);
  return one(builder, "Permute", {{"dims", std::move(dims)}}, {value});
}

}  // namespace

Result<Control> begin_control(const NodeProto& node, std::span<const Val> inputs,
                              Builder& builder) {
  if (node.op_type == "If") return begin_if(node, inputs, builder);
  Control out;
  out.node = &node;
  out.tag = OpTag::kLoop;
  CYB_ASSIGN(auto graph, graph_of(node, "body"));
  out.graphs.push_back(std::move(graph));
  if (node.op_type == "Scan") {
    CYB_TRY(begin_scan(inputs, builder, out));
  } else {
    CYB_TRY(begin_loop(inputs, builder, out));
  }
  for (std::size_t k = 2; k < out.inputs.size(); ++k) {
    if (out.inputs[k] == 0) return fail(onnx_error("a carried value that is absent"));
    out.carried.push_back(builder.spec(out.inputs[k]));
    out.carried.back().value.reset();
  }
  return out;
}

Result<std::vector<std::pair<std::string_view, Val>>> open_body(Control& control,
                                                                Builder& builder) {
  std::vector<std::pair<std::string_view, Val>> names;
  if (control.tag == OpTag::kIf) {
    control.regions.push_back(builder.begin_region({}));
    return names;
  }
  std::vector<TensorSpec> specs = {TensorSpec{DType::kI64, {}}, TensorSpec{DType::kBool, {}}};
  specs.insert(specs.end(), control.carried.begin(), control.carried.end());
  control.regions.push_back(builder.begin_region(specs));
  const std::vector<Val> values = builder.region_inputs(control.regions.back());
  const GraphProto& graph = *control.graphs[0];
  const bool scan = control.node->op_type == "Scan";
  std::size_t at = 0;
  for (std::size_t k = scan ? 2 : 0; k < values.size(); ++k)
    names.emplace_back(graph.inputs[at++].name, values[k]);
  for (const Scanned& cut : control.cut) {
    CYB_ASSIGN(const Val slice, slice_of(control, cut, values[0], builder));
    names.emplace_back(graph.inputs[at++].name, slice);
  }
  return names;
}

Result<bool> close_body(Control& control, std::span<const Val> outputs, Builder& builder) {
  if (control.tag == OpTag::kLoop) return close_loop(control, outputs, builder);
  if (std::ranges::find(outputs, Val{0}) != outputs.end())
    return fail(onnx_error("a branch without one of its outputs"));
  std::vector<TensorSpec> specs;
  for (const Val value : outputs) specs.push_back(builder.spec(value));
  CYB_TRY(builder.end_region(outputs));
  control.outputs.push_back(std::move(specs));
  return control.outputs.size() < control.graphs.size();
}

Result<std::vector<Val>> finish_control(Control& control, Builder& builder) {
  if (control.tag == OpTag::kIf) {
    CYB_ASSIGN(std::vector<TensorSpec> specs, branch_specs(control));
    return builder.emit_control(control.tag, control.inputs, control.regions, std::move(specs));
  }
  const bool scan = control.node->op_type == "Scan";
  std::vector<TensorSpec> specs = control.carried;
  const std::vector<TensorSpec>& given = control.outputs[0];
  for (std::size_t k = 1 + specs.size(); k < given.size(); ++k) {
    TensorSpec spec = given[k];
    spec.value.reset();
    for (Dim& dim : spec.dims) {  // where no round runs, what is no number is 0
      if (!dim.is_constant()) dim = Dim::anonymous();
    }
    const Scanned* first = scan ? &control.cut[0] : nullptr;
    spec.dims.insert(spec.dims.begin(),
                     first != nullptr
                         ? builder.spec(first->value).dims[static_cast<std::size_t>(first->axis)]
                         : Dim::anonymous());
    specs.push_back(std::move(spec));
  }
  CYB_ASSIGN(std::vector<Val> out,
             builder.emit_control(control.tag, control.inputs, control.regions, std::move(specs)));
  for (std::size_t k = 0; k < control.stacked.size(); ++k) {
    Val& value = out[control.carried.size() + k];
    CYB_ASSIGN(value, placed(control.stacked[k], value, builder));
  }
  return out;
}

}  // namespace cyb::onnx
