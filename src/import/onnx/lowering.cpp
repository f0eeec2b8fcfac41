// The walk over the nodes: names, functions, and the row of each operator.
#include "import/onnx/lowering_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

// Opset 7 and later is what this importer is for; an older model runs where its ops mean the same.
constexpr std::int64_t kOldestOpset = 1;
constexpr std::int64_t kNewestOpset = 28;  // of onnx 1.23, whose cases the tests run
constexpr std::uint64_t kMaxExpanded = 65536;

}  // namespace

Result<Lowered> Lowering::run() {
  CYB_ASSIGN(out_.opset, opset_of(model_.opsets, ""));
  if (out_.opset < kOldestOpset) {
    return fail(not_built(fmt::format("opset {}, older than {}", out_.opset, kOldestOpset)));
  }
  if (out_.opset > kNewestOpset) {
    return fail(not_built(fmt::format("opset {}, newer than {}", out_.opset, kNewestOpset)));
  }
  if (model_.graph.n_sparse != 0) return fail(not_built("sparse initializers"));
  CYB_TRY(check_ops());
  Frame main;
  main.nodes = model_.graph.nodes;
  main.opsets = model_.opsets;
  CYB_TRY(add_initializers(model_.graph, main));
  CYB_TRY(add_inputs(main));
  push(std::move(main));
  CYB_TRY(walk());
  std::vector<std::pair<std::string, Val>> outputs;
  for (const ValueInfo& output : model_.graph.outputs) {
    CYB_ASSIGN(const Val value, lookup(output.name));
    CYB_TRY(check_declared(output, builder_.spec(value)));
    outputs.emplace_back(output.name, value);
  }
  if (outputs.empty()) return fail(onnx_error("a graph without outputs"));
  for (const auto& [name, value] : initializers_) {
    if (!read_.contains(value)) out_.unused.emplace_back(name);
  }
  CYB_ASSIGN(out_.built, builder_.finish(outputs));
  return std::move(out_);
}

Result<std::int64_t> Lowering::opset_of(std::span<const OpsetId> opsets,
                                        std::string_view domain) const {
  const OpsetId* found = nullptr;
  for (const OpsetId& id : opsets) {
    const std::string_view have = id.domain == "ai.onnx" ? std::string_view() : id.domain;
    if (have != domain) continue;
    if (found != nullptr && found->version != id.version) {
      return fail(onnx_error(fmt::format("domain {} has the opsets {} and {}", json_quote(domain),
                                         found->version, id.version)));
    }
    found = &id;
  }
  if (found != nullptr) return found->version;
  // com.microsoft has one version, and exporters forget it.
  if (domain == "com.microsoft") return 1;
  if (domain.empty() && model_.ir_version < 3) return 1;
  return fail(onnx_error(fmt::format("no opset import of domain {}", json_quote(domain))));
}

const FunctionProto* Lowering::find_function(const NodeProto& node) const {
  const auto at = functions_.find({node.domain, node.op_type, node.overload});
  return at == functions_.end() ? nullptr : at->second;
}

Result<void> Lowering::check_ops() const {
  std::map<std::string, std::uint64_t> missing;
  std::set<const FunctionProto*> seen;
  std::vector<std::span<const NodeProto>> work = {model_.graph.nodes};
  while (!work.empty()) {
    const std::span<const NodeProto> nodes = work.back();
    work.pop_back();
    for (const NodeProto& node : nodes) {
      if (const FunctionProto* f = find_function(node)) {
        if (seen.insert(f).second) work.emplace_back(f->nodes);
        continue;
      }
      const bool known = find_row(node.domain, node.op_type) != nullptr || has_graphs(node);
      if (!known) ++missing[shown_op(node)];
    }
  }
  if (missing.empty()) return {};
  std::string text;
  for (const auto& [op, count] : missing)
    text += fmt::format("{}{} x{}", text.empty() ? "" : ", ", op, count);
  return fail(not_built(fmt::format("the ONNX operators {}", text)));
}

Result<void> Lowering::add_initializers(const GraphProto& graph, Frame& frame) {
  if (graph.n_sparse != 0) return fail(not_built("sparse initializers"));
  for (const TensorProto& proto : graph.initializers) {
    CYB_ASSIGN(HostTensor tensor, read_tensor(proto, files_));
    const Val value = builder_.constant(std::move(tensor), proto.name);
    if (!frame.names.emplace(proto.name, value).second)
      return fail(onnx_error(fmt::format("{} is defined twice", json_quote(proto.name))));
    if (frames_.empty()) initializers_.emplace_back(proto.name, value);
  }
  return {};
}

/// What a file says of an output against what its nodes give: another type is a broken file, other
/// sizes are common and worth a word.
Result<void> Lowering::check_declared(const ValueInfo& output, const TensorSpec& spec) {
  if (!output.is_tensor || output.type == 0) return {};
  const auto dtype = dtype_of(output.type);
  if (!dtype || *dtype != spec.dtype) {
    return fail(onnx_error(fmt::format("output {} is declared {} and computed as {}",
                                       json_quote(output.name), type_name(output.type),
                                       dtype_name(spec.dtype))));
  }
  if (!output.has_shape) return {};
  bool agrees = output.dims.size() == spec.rank();
  for (std::size_t d = 0; agrees && d < spec.rank(); ++d) {
    const auto& declared = output.dims[d].value;
    agrees = !declared || *declared < 0 || !spec.dims[d].is_constant() ||
             spec.dims[d].constant() == *declared;
  }
  if (!agrees) {
    out_.assumptions.push_back(
        fmt::format("output {} has the shape {}, not the one that the file declares",
                    json_quote(output.name), dims_text(spec.dims, builder_.symbols())));
  }
  return {};
}

Result<void> Lowering::add_inputs(Frame& frame) {
  std::set<std::string_view> seen;
  for (const ValueInfo& input : model_.graph.inputs) {
    if (!seen.insert(input.name).second)
      return fail(onnx_error(fmt::format("input {} is there twice", json_quote(input.name))));
    if (frame.names.contains(input.name)) {
      if (model_.ir_version >= 4) {
        out_.assumptions.push_back(
            fmt::format("input {} keeps its default value", json_quote(input.name)));
      }
      continue;
    }
    const auto refused = [&](std::string_view what) {
      return fail(not_built(fmt::format("input {}: {}", json_quote(input.name), what)));
    };
    if (!input.is_tensor) return refused("a sequence, map or optional");
    const auto dtype = dtype_of(input.type);
    if (!dtype) return refused(type_name(input.type));
    if (!input.has_shape) return refused("no shape");
    TensorSpec spec;
    spec.dtype = *dtype;
    std::vector<std::string_view> named;
    for (const DimProto& dim : input.dims) spec.dims.push_back(input_dim(input, dim, named));
    CYB_ASSIGN(const Val value, builder_.input(input.name, std::move(spec)));
    frame.names.emplace(input.name, value);
  }
  for (const auto& [name, size] : dims_) {
    if (fixed_.contains(name)) continue;
    return fail(invalid_input(fmt::format("no input has a dimension {}; there are: {}",
                                          json_quote(name), fmt::join(symbols_, ", "))));
  }
  return {};
}

Dim Lowering::input_dim(const ValueInfo& input, const DimProto& dim,
                        std::vector<std::string_view>& named) {
  if (dim.value && *dim.value >= 0) return *dim.value;
  const auto fixed = std::ranges::find(dims_, dim.param, &FixedDims::value_type::first);
  if (fixed != dims_.end() && !dim.param.empty()) {
    fixed_.insert(fixed->first);
    return fixed->second;
  }
  if (!dim.param.empty()) symbols_.insert(json_quote(dim.param));
  // Exporters give one name to every dynamic axis of an input: that says nothing about their sizes.
  const auto times = std::ranges::count(named, dim.param);
  named.push_back(dim.param);
  if (times == 0) return builder_.symbol(dim.param);
  if (times == 1 && !dim.param.empty()) {
    out_.assumptions.push_back(fmt::format("input {}: dimensions of the name {} may differ",
                                           json_quote(input.name), json_quote(dim.param)));
  }
  return builder_.symbol(dim.param.empty() ? "" : fmt::format("{}_{}", dim.param, times + 1));
}

Result<Val> Lowering::lookup(std::string_view name) {
  if (name.empty()) return Val{0};
  for (std::size_t at = frames_.size() - 1; at != SIZE_MAX; at = frames_[at].outer) {
    const auto found = frames_[at].names.find(name);
    if (found == frames_[at].names.end()) continue;
    read_.insert(found->second);
    return found->second;
  }
  return fail(
      onnx_error(fmt::format("{} is no input, initializer or earlier output", json_quote(name))));
}

Result<void> Lowering::walk() {
  // A small file may call functions of functions, and loop: what it becomes is bounded.
  const std::uint64_t limit =
      std::min<std::uint64_t>(kMaxGraphNodes, kMaxExpanded + model_.graph.nodes.size());
  std::uint64_t steps = 0;
  while (true) {
    Frame& frame = frames_.back();
    if (frame.next == frame.nodes.size()) {
      if (frames_.size() == 1) return {};
      CYB_TRY(leave());
      continue;
    }
    if (++steps > limit)
      return fail(invalid_input(fmt::format("more than {} nodes in functions and rounds", limit)));
    const NodeProto& node = frame.nodes[frame.next++];
    auto done = lower(node);
    if (!done) return fail(std::move(done).error().in(shown_node(node)));
  }
}

Result<void> Lowering::lower(const NodeProto& source) {
  CYB_ASSIGN(const NodeProto* node, resolve(source));
  if (const FunctionProto* f = find_function(*node)) return enter(*node, *f);
  CYB_ASSIGN(const std::int64_t opset, opset_of(frames_.back().opsets, node->domain));
  std::vector<Val> inputs;
  for (const std::string_view name : node->inputs) {
    CYB_ASSIGN(const Val value, lookup(name));
    inputs.push_back(value);
  }
  if (has_graphs(*node)) return lower_control(*node, opset, inputs);
  const OpRow* row = find_row(node->domain, node->op_type);
  if (row == nullptr) return fail(not_built("the ONNX operator"));
  if (opset < row->since)
    return fail(onnx_error(fmt::format("opset {} has no such operator", opset)));
  ++out_.op_counts[shown_op(*node)];
  Call call(builder_, files_, *node, opset, std::move(inputs));
  call.set_nan_tested(!node->outputs.empty() &&
                      frames_.back().nan_tested.contains(node->outputs[0]));
  row->lower(call);
  for (const std::string& what : call.take_assumptions())
    out_.assumptions.push_back(fmt::format("{}: {}", shown_node(*node), what));
  CYB_ASSIGN(const std::vector<Val> values, call.finish());
  return define(*node, values);
}

Result<void> Lowering::define(const NodeProto& node, std::span<const Val> values) {
  for (std::size_t k = 0; k < node.outputs.size() && k < values.size(); ++k) {
    const std::string_view name = node.outputs[k];
    if (name.empty() || values[k] == 0) continue;
    if (!frames_.back().names.emplace(name, values[k]).second)
      return fail(onnx_error(fmt::format("{} is defined twice", json_quote(name))));
    if (frames_.size() == 1) builder_.prefer_name(values[k], name);
  }
  return {};
}

Result<const NodeProto*> Lowering::resolve(const NodeProto& source) {
  const bool refers = std::ranges::any_of(
      source.attributes, [](const AttributeProto& a) { return !a.ref_name.empty(); });
  if (!refers) return &source;
  Frame& frame = frames_.back();
  NodeProto node = source;
  std::erase_if(node.attributes, [&](AttributeProto& a) {
    if (a.ref_name.empty()) return false;
    const AttributeProto* given = nullptr;
    const auto take = [&](std::span<const AttributeProto> from) {
      const auto at = std::ranges::find(from, a.ref_name, &AttributeProto::name);
      if (given == nullptr && at != from.end()) given = &*at;
    };
    // Inside a branch of If the attributes are those of the function around it.
    std::size_t at = frames_.size() - 1;
    while (frames_[at].outer != SIZE_MAX) at = frames_[at].outer;
    if (frames_[at].call != nullptr) take(frames_[at].call->attributes);
    take(frames_[at].defaults);
    if (given == nullptr) return true;  // not given: as if it were not there
    const std::string_view name = a.name;
    a = *given;
    a.name = name;
    a.ref_name = {};
    return false;
  });
  frame.resolved.push_back(std::move(node));
  return &frame.resolved.back();
}

Result<Lowered> lower_model(const ModelProto& model, ExternalFiles& files, const FixedDims& dims) {
  return Lowering(model, files, dims).run();
}

}  // namespace cyb::onnx
