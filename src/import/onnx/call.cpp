// What every lowering uses: attributes, known values, and small emissions.
#include "import/onnx/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.hpp"
#include "base/json_text.hpp"
#include "import/onnx/dims.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {

Call::Call(Builder& builder, ExternalFiles& files, const NodeProto& node, std::int64_t opset,
           std::vector<Val> inputs)
    : builder_(builder),
      files_(files),
      node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      outputs_(node.outputs.size(), 0),
      read_(node.attributes.size(), false) {
  while (!inputs_.empty() && inputs_.back() == 0) inputs_.pop_back();
}

void Call::fail_with(Error error) {
  if (!error_) error_ = std::move(error);
}

void Call::refuse(const std::string& why) {
  fail_with(not_built(why));
}

void Call::out(std::size_t k, Val value) {
  if (k < outputs_.size()) outputs_[k] = value;
}

Result<std::vector<Val>> Call::finish() {
  if (error_) return fail(*std::move(error_));
  for (std::size_t k = 0; k < read_.size(); ++k) {
    if (read_[k]) continue;
    return fail(not_built(fmt::format("attribute {}", json_quote(node_.attributes[k].name))));
  }
  if (inputs_.size() > n_read_)
    return fail(onnx_error(fmt::format("the node has {} inputs, {} takes {}", inputs_.size(),
                                       node_.op_type, n_read_)));
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (outputs_[k] == 0 && wants(k)) return fail(not_built(fmt::format("output {}", k)));
  }
  return std::move(outputs_);
}

// Attributes

const AttributeProto* Call::attr(std::string_view name, AttributeType type) {
  for (std::size_t k = 0; k < node_.attributes.size(); ++k) {
    const AttributeProto& a = node_.attributes[k];
    if (a.name != name) continue;
    read_[k] = true;
    if (a.type == type) return &a;
    fail_with(onnx_error(fmt::format("attribute {} has another type", json_quote(name))));
    return nullptr;
  }
  return nullptr;
}

bool Call::has_attr(std::string_view name) {
  return std::ranges::find(node_.attributes, name, &AttributeProto::name) != node_.attributes.end();
}

std::int64_t Call::i(std::string_view name, std::int64_t fallback) {
  const AttributeProto* a = attr(name, AttributeType::kInt);
  return a == nullptr ? fallback : a->i;
}

double Call::f(std::string_view name, double fallback) {
  const AttributeProto* a = attr(name, AttributeType::kFloat);
  return a == nullptr ? fallback : static_cast<double>(a->f);
}

std::string Call::s(std::string_view name, std::string_view fallback) {
  const AttributeProto* a = attr(name, AttributeType::kString);
  if (a == nullptr) return std::string(fallback);
  return {reinterpret_cast<const char*>(a->s.data()), a->s.size()};
}

std::vector<std::int64_t> Call::ints(std::string_view name, std::vector<std::int64_t> fallback) {
  const AttributeProto* a = attr(name, AttributeType::kInts);
  if (a != nullptr) return a->ints;
  return fallback;
}

std::vector<float> Call::floats(std::string_view name) {
  const AttributeProto* a = attr(name, AttributeType::kFloats);
  return a == nullptr ? std::vector<float>() : a->floats;
}

std::vector<std::string> Call::strings(std::string_view name) {
  const AttributeProto* a = attr(name, AttributeType::kStrings);
  std::vector<std::string> out;
  if (a == nullptr) return out;
  for (const Bytes text : a->strings)
    out.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  return out;
}

std::optional<HostTensor> Call::tensor(std::string_view name) {
  const AttributeProto* a = attr(name, AttributeType::kTensor);
  if (a == nullptr) return std::nullopt;
  const auto proto = parse_tensor(a->message);
  auto out = proto ? read_tensor(*proto, files_) : Result<HostTensor>(fail(proto.error()));
  if (out) return *std::move(out);
  fail_with(std::move(out).error());
  return std::nullopt;
}

DType Call::type(std::string_view name, DType fallback) {
  const AttributeProto* a = attr(name, AttributeType::kInt);
  if (a == nullptr) return fallback;
  const std::int64_t number = a->i < 0 || a->i > INT32_MAX ? -1 : a->i;
  if (const auto out = dtype_of(static_cast<std::int32_t>(number))) return *out;
  refuse(fmt::format("the type {}", type_name(static_cast<std::int32_t>(number))));
  return fallback;
}

void Call::ignore(std::initializer_list<std::string_view> names) {
  for (std::size_t k = 0; k < node_.attributes.size(); ++k) {
    if (std::ranges::find(names, node_.attributes[k].name) != names.end()) read_[k] = true;
  }
}

// Values

Dim Call::dim(Val value, std::size_t axis) const {
  const TensorSpec& s = spec(value);
  return axis < s.rank() ? s.dims[axis] : Dim::anonymous();
}

std::int64_t Call::size(Val value, std::size_t axis, std::string_view what) {
  const Dim d = dim(value, axis);
  if (d.is_constant()) return d.constant();
  refuse(fmt::format("{} is not known before the run", what));
  return 1;
}

std::vector<std::int64_t> Call::sizes(Val value, std::string_view what) {
  std::vector<std::int64_t> out;
  for (std::size_t k = 0; k < rank(value); ++k) out.push_back(size(value, k, what));
  return out;
}

std::optional<std::vector<std::int64_t>> Call::known_ints(Val value) const {
  const HostTensor* tensor = builder_.known(value);
  return tensor == nullptr ? std::nullopt : tensor->ints();
}

std::vector<std::int64_t> Call::const_ints(Val value, std::string_view what) {
  auto values = known_ints(value);
  if (values) return *std::move(values);
  refuse(fmt::format("{} is not known before the run", what));
  return {};
}

std::size_t Call::axis(std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis >= -n && axis < n) return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
  fail_with(onnx_error(fmt::format("axis {} of rank {}", axis, rank)));
  return 0;
}

std::vector<std::int64_t> Call::axes(std::vector<std::int64_t> axes, std::size_t rank) {
  for (std::int64_t& a : axes) a = static_cast<std::int64_t>(axis(a, rank));
  return axes;
}

// Emission

std::vector<Val> Call::emit_all(std::string_view op, std::vector<NamedAttr> attrs,
                                std::vector<Val> inputs) {
  if (error_) return {};
  auto out = builder_.emit(op, std::move(attrs), std::move(inputs));
  if (out) return *std::move(out);
  fail_with(std::move(out).error());
  return {};
}

Val Call::emit(std::string_view op, std::vector<NamedAttr> attrs, std::vector<Val> inputs) {
  const std::vector<Val> out = emit_all(op, std::move(attrs), std::move(inputs));
  return out.empty() ? 0 : out[0];
}

Val Call::constant(HostTensor tensor) {
  return error_ ? 0 : builder_.constant(std::move(tensor));
}

Val Call::scalar(double value, DType dtype) {
  if (error_) return 0;
  std::byte* data = nullptr;
  auto tensor = HostTensor::allocate(dtype, Shape{}, data);
  if (!tensor) {
    fail_with(std::move(tensor).error());
    return 0;
  }
  if (dtype == DType::kF64) {
    std::memcpy(data, &value, sizeof value);
  } else if (dtype == DType::kF32) {
    const auto single = static_cast<float>(value);
    std::memcpy(data, &single, sizeof single);
  } else if (dtype == DType::kF16) {
    const std::uint16_t half = f32_to_f16(static_cast<float>(value));
    std::memcpy(data, &half, sizeof half);
  } else {
    const auto whole = static_cast<std::int64_t>(value);
    std::memcpy(data, &whole, tensor->bytes.size());  // little-endian: the low bytes
  }
  return constant(*std::move(tensor));
}

Val Call::int_list(std::span<const std::int64_t> values) {
  if (error_) return 0;
  auto tensor = HostTensor::of_ints(values, Shape{static_cast<std::int64_t>(values.size())});
  if (tensor) return constant(*std::move(tensor));
  fail_with(std::move(tensor).error());
  return 0;
}

Val Call::cast(Val value, DType to) {
  if (dtype(value) == to) return value;
  return emit("Cast", {{"dtype", static_cast<std::int64_t>(to)}}, {value});
}

Val Call::reshape(Val value, std::vector<std::int64_t> shape) {
  return emit("Reshape", {{"shape", std::move(shape)}}, {value});
}

Val Call::reshape_to(Val value, const std::vector<Dim>& shape) {
  std::vector<std::int64_t> numbers;
  int open = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    // A 0 copies: right for a dimension that is the source's at this place, whatever its value.
    if (shape[k].is_constant() && shape[k].constant() != 0) {
      numbers.push_back(shape[k].constant());
      open += shape[k] == Dim(-1) ? 1 : 0;
    } else if (k < rank(value) && shape[k] == dim(value, k)) {
      numbers.push_back(0);
    } else {
      numbers.push_back(-1);
      open += shape[k] == Dim(0) || shape[k].is_anonymous() ? 2 : 1;
    }
  }
  return open <= 1 ? reshape(value, std::move(numbers)) : 0;
}

Val Call::reshape_like(Val value, Val like) {
  const std::vector<Dim> shape = spec(like).dims;
  if (const Val out = reshape_to(value, shape); out != 0 || !ok()) return out;
  return emit("ReshapeTo", {{"allow_zero", std::int64_t{1}}}, {value, shape_of(like)});
}

Val Call::list_input(std::size_t k, std::string_view attribute) {
  if (has(k)) return in(k);
  if (!has_attr(attribute)) return 0;
  return int_list(ints(attribute));
}

std::uint64_t Call::key() const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a of the first output's name, and the place
  const std::string_view name = node_.outputs.empty() ? node_.name : node_.outputs[0];
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash + builder_.n_nodes();
}

Val Call::copy(Val value) {
  return reshape(value, std::vector<std::int64_t>(rank(value), 0));
}

Val Call::permute(Val value, std::vector<std::int64_t> dims) {
  return emit("Permute", {{"dims", std::move(dims)}}, {value});
}

Val Call::slice(Val value, std::size_t axis, std::int64_t start, std::int64_t end,
                std::int64_t step) {
  return emit(
      "Slice",
      {{"axis", static_cast<std::int64_t>(axis)}, {"start", start}, {"end", end}, {"step", step}},
      {value});
}

Val Call::concat(std::vector<Val> values, std::size_t axis) {
  if (values.size() == 1) return values[0];
  return emit("Concat", {{"axis", static_cast<std::int64_t>(axis)}}, std::move(values));
}

Val Call::shape_of(Val value) {
  if (error_) return 0;
  auto out = builder_.shape_of(value);
  if (out) return *out;
  fail_with(std::move(out).error());
  return 0;
}

Val Call::swapped(Val value) {
  if (error_) return 0;
  if (const auto weight = builder_.transposed(value)) return *weight;
  return emit("Transpose", {{"perm", std::vector<std::int64_t>{}}}, {value});
}

Val Call::reduce(std::string_view op, Val value, std::vector<std::int64_t> axes, bool keep) {
  return emit(op, {{"axes", std::move(axes)}, {"keep", std::int64_t{keep}}}, {value});
}

}  // namespace cyb::onnx
