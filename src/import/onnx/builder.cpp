// Emission: constant folding, dimensions as values, and the shape rule of each op.
#include "import/onnx/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/onnx/dims.hpp"

namespace cyb::onnx {
namespace {

// What folding may cost: one result, what goes in, the sum over a model, and the multiplications of
// one dot-product op. Beyond them the op stays in the graph, and is folded when it is loaded.
constexpr std::uint64_t kSmallBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMaxFoldBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxFoldedBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxFoldWork = std::uint64_t{1} << 26;

std::uint64_t bytes_of(const TensorView& view) {
  return cyb::tensor_bytes(view.dtype, view.shape).value_or(UINT64_MAX);
}

bool worth_folding(const Op& op, std::span<const TensorView> inputs,
                   std::span<const TensorSpec> outputs) {
  std::uint64_t in = 0, out = 0;
  for (const TensorView& view : inputs) {
    if (!view.present()) continue;
    in += std::min(bytes_of(view), kMaxFoldBytes + 1);
  }
  for (const TensorSpec& spec : outputs) {
    const auto shape = spec.bind({});
    const auto bytes = shape ? cyb::tensor_bytes(spec.dtype, *shape) : std::nullopt;
    if (!bytes) return false;
    out += std::min(*bytes, kMaxFoldBytes + 1);
  }
  if (in > kMaxFoldBytes || (out > kSmallBytes && out > in)) return false;
  const ToleranceClass cls = op_info(op.tag).cls;
  const bool cheap = cls == ToleranceClass::kX || cls == ToleranceClass::kE;
  return cheap || in * std::max<std::uint64_t>(out, 1) <= kMaxFoldWork;
}

}  // namespace

Result<std::optional<std::vector<HostTensor>>> run_reference(const Op& op,
                                                             std::span<const TensorView> inputs) {
  const OpInfo& info = op_info(op.tag);
  if (info.reference == nullptr) return std::nullopt;
  CYB_ASSIGN(const std::vector<TensorSpec> specs, run_specs(op, inputs));
  std::vector<HostTensor> out;
  std::vector<MutableTensorView> views;
  for (const TensorSpec& spec : specs) {
    const auto shape = spec.bind({});
    if (!shape) return fail(internal_error("a shape that run_specs left open"));
    std::byte* data = nullptr;
    CYB_ASSIGN(HostTensor tensor, HostTensor::allocate(spec.dtype, *shape, data));
    views.push_back({spec.dtype, *shape, data});
    out.push_back(std::move(tensor));
  }
  CYB_TRY(info.reference({.attrs = op.attrs, .inputs = inputs, .outputs = views}));
  return out;
}

Builder::Builder() : values_(1), regions_(1) {
  values_[0].spec = TensorSpec::none();
  graph_.symbols = {"B", "S", "P"};
  // B means batch here as everywhere; S, P and T are the executor's own.
  symbol_ids_.emplace("B", kSymbolB);
  symbol_names_ = {"B", "S", "P", "T"};
}

Dim Builder::symbol(std::string_view name) {
  // "?" and the like say that the size is not known, not that two of them are equal.
  const bool named = std::ranges::any_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c < 0;
  });
  if (!named || name.size() > 200 || name.contains('\0')) return Dim::anonymous();
  const auto at = symbol_ids_.find(name);
  if (at != symbol_ids_.end()) return Dim::symbol(at->second);
  std::string written(name);
  while (!symbol_names_.insert(written).second) written += '_';
  const auto id = static_cast<std::uint32_t>(graph_.symbols.size());
  graph_.symbols.push_back(std::move(written));
  symbol_ids_.emplace(name, id);
  return Dim::symbol(id);
}

Val Builder::add(Value value) {
  values_.push_back(std::move(value));
  return static_cast<Val>(values_.size() - 1);
}

Result<Val> Builder::input(std::string_view name, TensorSpec spec) {
  Value value;
  value.spec = std::move(spec);
  value.origin = Origin::kInput;
  value.name = name;
  const Val val = add(std::move(value));
  graph_.inputs.push_back({std::string(name), values_[val].spec});
  input_values_.push_back(val);
  return val;
}

Val Builder::constant(HostTensor tensor, std::string_view name) {
  Value value;
  value.origin = Origin::kConstant;
  value.name = name;
  value.spec = TensorSpec::of(tensor.dtype, tensor.shape);
  if (tensor.shape.rank() <= 1 && tensor.shape.count() <= kMaxFollowed) {
    if (const auto ints = tensor.ints(); ints && tensor.dtype != DType::kBool)
      value.spec.value = std::vector<Dim>(ints->begin(), ints->end());
  }
  value.constant = std::move(tensor);
  return add(std::move(value));
}

const HostTensor* Builder::known(Val value) const {
  const Value& v = values_[value];
  return v.constant && !v.transposed ? &*v.constant : nullptr;
}

std::optional<std::vector<Dim>> Builder::dims(Val value) const {
  return values_[value].spec.value;
}

void Builder::prefer_name(Val value, std::string_view name) {
  Value& v = values_[value];
  if (v.origin == Origin::kNode && v.name.empty()) v.name = name;
}

Result<std::optional<std::vector<Val>>> Builder::fold(const Op& op, std::span<const Val> inputs) {
  std::uint64_t cost = 0;
  for (const Val input : inputs) {
    if (input == 0) continue;
    const HostTensor* tensor = known(input);
    if (tensor == nullptr || tensor->bytes.size() > kMaxFoldBytes) return std::nullopt;
    cost += tensor->bytes.size();
  }
  if (folded_bytes_ + cost > kMaxFoldedBytes) return std::nullopt;
  std::vector<HostTensor> tensors(inputs.size());
  std::vector<TensorView> views;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k] != 0) {
      CYB_ASSIGN(tensors[k], known(inputs[k])->aligned());
    }
    views.push_back(inputs[k] == 0 ? TensorView{} : tensors[k].view());
  }
  const auto specs = run_specs(op, views);
  if (!specs || !worth_folding(op, views, *specs)) return std::nullopt;
  auto results = run_reference(op, views);
  // A value that the op refuses (an index out of range) is an error of the run, not of the import.
  if (!results || !*results) return std::nullopt;
  folded_bytes_ += cost;
  std::vector<Val> out;
  for (HostTensor& tensor : **results) {
    folded_bytes_ += tensor.bytes.size();
    out.push_back(constant(std::move(tensor)));
  }
  return out;
}

Result<Val> Builder::with_dims(Val value, std::vector<Dim> dims) {
  const TensorSpec& spec = values_[value].spec;
  if (!std::ranges::all_of(dims, &Dim::is_constant)) {
    values_[value].spec.value = std::move(dims);
    return value;
  }
  std::vector<std::int64_t> numbers;
  for (const Dim& dim : dims) numbers.push_back(dim.constant());
  const auto n = static_cast<std::int64_t>(numbers.size());
  const Shape shape = spec.rank() == 0 ? Shape{} : Shape{n};
  CYB_ASSIGN(HostTensor tensor, int_tensor(numbers, shape, spec.dtype));
  return constant(std::move(tensor));
}

Result<std::vector<Val>> Builder::emit(std::string_view op_name, std::vector<NamedAttr> attrs,
                                       std::vector<Val> inputs) {
  const OpInfo* info = find_op(op_name);
  if (info == nullptr) return fail(not_built(fmt::format("the op {}", op_name)));
  while (!inputs.empty() && inputs.back() == 0) inputs.pop_back();
  CYB_ASSIGN(Op op, make_op(info->tag, attrs));
  std::vector<TensorSpec> specs;
  for (const Val input : inputs) specs.push_back(values_[input].spec);
  CYB_ASSIGN(const std::vector<TensorSpec> outputs, infer(op, specs));
  CYB_ASSIGN(auto folded, fold(op, inputs));
  if (folded) return *std::move(folded);
  if (nodes_.size() >= kMaxGraphNodes)
    return fail(invalid_input(fmt::format("more than {} nodes", kMaxGraphNodes)));
  std::optional<std::vector<Dim>> dims;
  if (outputs.size() == 1) dims = follow_dims(op, specs, outputs[0]);
  std::vector<Val> out = add_node({std::move(op), std::move(inputs), {}, region_}, outputs);
  if (dims) {
    CYB_ASSIGN(out[0], with_dims(out[0], *std::move(dims)));
  }
  return out;
}

std::vector<Val> Builder::add_node(Node node, std::vector<TensorSpec> outputs) {
  for (TensorSpec& spec : outputs) {
    Value value;
    value.spec = std::move(spec);
    value.origin = Origin::kNode;
    value.node = static_cast<std::uint32_t>(nodes_.size());
    value.region = node.region;
    node.outputs.push_back(add(std::move(value)));
  }
  std::vector<Val> out = node.outputs;
  nodes_.push_back(std::move(node));
  return out;
}

Result<Val> Builder::shape_of(Val value) {
  const std::vector<Dim> dims = values_[value].spec.dims;
  if (std::ranges::all_of(dims, &Dim::is_constant)) {
    std::vector<std::int64_t> numbers;
    for (const Dim& dim : dims) numbers.push_back(dim.constant());
    const auto rank = static_cast<std::int64_t>(dims.size());
    CYB_ASSIGN(HostTensor tensor, HostTensor::of_ints(numbers, Shape{rank}));
    return constant(std::move(tensor));
  }
  CYB_ASSIGN(const std::vector<Val> out,
             emit("Shape", {{"end", std::int64_t{INT32_MAX}}}, {value}));
  return with_dims(out[0], dims);
}

std::optional<Val> Builder::transposed(Val value) {
  const HostTensor* tensor = known(value);
  if (tensor == nullptr || tensor->shape.rank() < 2) return std::nullopt;
  const auto at = transposed_.find(value);
  if (at != transposed_.end()) return at->second;
  Value out;
  out.origin = Origin::kConstant;
  out.constant = *tensor;
  out.transposed = true;
  out.name = values_[value].name;
  out.spec = values_[value].spec;
  std::swap(out.spec.dims[out.spec.rank() - 1], out.spec.dims[out.spec.rank() - 2]);
  const Val val = add(std::move(out));
  transposed_.emplace(value, val);
  return val;
}

}  // namespace cyb::onnx
