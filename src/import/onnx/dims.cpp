// The few ops that exporters compute shapes with, on dimensions instead of numbers.
#include "import/onnx/dims.hpp"

#include <algorithm>
#include <cstring>

#include "import/onnx/wire.hpp"
#include "ops/rules.hpp"

namespace cyb::onnx {
namespace {

using Dims = std::vector<Dim>;

std::size_t count_of(const TensorSpec& spec) {
  if (spec.rank() == 0) return 1;
  return spec.rank() == 1 && spec.dims[0].is_constant()
             ? static_cast<std::size_t>(spec.dims[0].constant())
             : SIZE_MAX;
}

std::optional<Dim> arithmetic(std::string_view name, const Dim& a, const Dim& b) {
  if (name == "Add") return a + b;
  if (name == "Sub") return a + b * -1;
  if (name == "Mul") {
    if (b.is_constant()) return a * b.constant();
    if (a.is_constant()) return b * a.constant();
  }
  if (name == "Div" && b.is_constant()) {
    if (b == Dim(1)) return a;
    return a.divided_by(b.constant());
  }
  return std::nullopt;
}

std::optional<Dims> binary(std::string_view name, const Dims& a, const Dims& b) {
  const std::size_t n = std::max(a.size(), b.size());
  if ((a.size() != n && a.size() != 1) || (b.size() != n && b.size() != 1)) return std::nullopt;
  Dims out;
  for (std::size_t i = 0; i < n; ++i) {
    const auto dim = arithmetic(name, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    if (!dim || dim->is_anonymous()) return std::nullopt;
    out.push_back(*dim);
  }
  return out;
}

std::optional<Dims> gather(const Dims& x, const Dims& indices) {
  const auto n = static_cast<std::int64_t>(x.size());
  Dims out;
  for (const Dim& index : indices) {
    if (!index.is_constant() || index.constant() < -n || index.constant() >= n) return std::nullopt;
    const std::int64_t at = index.constant() + (index.constant() < 0 ? n : 0);
    out.push_back(x[static_cast<std::size_t>(at)]);
  }
  return out;
}

/// Slice with attributes axis, start, end, step.
std::optional<Dims> slice(const Dims& x, const Attrs& attrs) {
  const auto n = static_cast<std::int64_t>(x.size());
  const std::int64_t step = attrs.i(3);
  if (step < 1) return std::nullopt;
  const auto place = [n](std::int64_t at) {
    return std::clamp(at < 0 ? at + n : at, std::int64_t{0}, n);
  };
  Dims out;
  for (std::int64_t i = place(attrs.i(1)); i < place(attrs.i(2)); i += step)
    out.push_back(x[static_cast<std::size_t>(i)]);
  return out;
}

std::optional<Dims> values_of(std::string_view name, const Op& op,
                              std::span<const TensorSpec> inputs) {
  if (name == "Concat") {
    Dims out;
    for (const TensorSpec& spec : inputs)
      out.insert(out.end(), spec.value->begin(), spec.value->end());
    return out;
  }
  const Dims& x = *inputs[0].value;
  const bool copies = name == "Reshape" || name == "Cast" || name == "ReshapeTo";
  if (copies) return x;
  if (inputs.size() == 2 && name == "Gather") return gather(x, *inputs[1].value);
  if (inputs.size() == 2) return binary(name, x, *inputs[1].value);
  if (name == "Slice" && op.attrs.values.size() >= 4) return slice(x, op.attrs);
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Dim>> follow_dims(const Op& op, std::span<const TensorSpec> inputs,
                                            const TensorSpec& out) {
  if (out.value) return out.value;
  const bool known = !inputs.empty() && std::ranges::all_of(inputs, [](const TensorSpec& spec) {
    return spec.value.has_value() && spec.rank() <= 1;
  });
  if (!known || !rules::is_int(out.dtype) || out.rank() > 1) return std::nullopt;
  auto dims = values_of(op_info(op.tag).name, op, inputs);
  if (!dims || dims->size() != count_of(out) ||
      dims->size() > static_cast<std::size_t>(kMaxFollowed))
    return std::nullopt;
  return dims;
}

Result<HostTensor> int_tensor(std::span<const std::int64_t> values, const Shape& shape,
                              DType dtype) {
  std::byte* data = nullptr;
  CYB_ASSIGN(HostTensor out, HostTensor::allocate(dtype, shape, data));
  const std::size_t size = format_info(dtype).block_bytes;
  if (out.bytes.size() != values.size() * size)
    return fail(internal_error("values that do not fill their shape"));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(data + i * size, &values[i], size);  // little-endian: the low bytes
  const auto back = out.ints();
  if (!back || !std::ranges::equal(*back, values))
    return fail(onnx_error("a dimension that does not fit its integer type"));
  return out;
}

}  // namespace cyb::onnx
