// TensorProto to HostTensor: raw bytes stay where they are, typed fields are unpacked into memory.
#include "import/onnx/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "base/half.hpp"
#include "base/json_text.hpp"
#include "import/onnx/wire.hpp"
#include "tensor/buffer.hpp"

namespace cyb::onnx {
namespace {

struct TypeRow {
  std::string_view name;
  std::optional<DType> dtype;
};

// By TensorProto.DataType.
constexpr std::array kTypes = {TypeRow{"UNDEFINED", std::nullopt},
                               TypeRow{"FLOAT", DType::kF32},
                               TypeRow{"UINT8", DType::kU8},
                               TypeRow{"INT8", DType::kI8},
                               TypeRow{"UINT16", DType::kUint16},
                               TypeRow{"INT16", DType::kI16},
                               TypeRow{"INT32", DType::kI32},
                               TypeRow{"INT64", DType::kI64},
                               TypeRow{"STRING", std::nullopt},
                               TypeRow{"BOOL", DType::kBool},
                               TypeRow{"FLOAT16", DType::kF16},
                               TypeRow{"DOUBLE", DType::kF64},
                               TypeRow{"UINT32", DType::kUint32},
                               TypeRow{"UINT64", DType::kUint64},
                               TypeRow{"COMPLEX64", std::nullopt},
                               TypeRow{"COMPLEX128", std::nullopt},
                               TypeRow{"BFLOAT16", DType::kBf16},
                               TypeRow{"FLOAT8E4M3FN", std::nullopt},
                               TypeRow{"FLOAT8E4M3FNUZ", std::nullopt},
                               TypeRow{"FLOAT8E5M2", std::nullopt},
                               TypeRow{"FLOAT8E5M2FNUZ", std::nullopt},
                               TypeRow{"UINT4", std::nullopt},
                               TypeRow{"INT4", std::nullopt},
                               TypeRow{"FLOAT4E2M1", std::nullopt},
                               TypeRow{"FLOAT8E8M0", std::nullopt},
                               TypeRow{"UINT2", std::nullopt},
                               TypeRow{"INT2", std::nullopt}};

Error tensor_error(const TensorProto& tensor, std::string_view what) {
  return onnx_error(fmt::format("tensor {}: {}", json_quote(tensor.name), what));
}

/// Writes n values of `values` as T.
template <class T, class From>
void put(std::byte* out, const std::vector<From>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

void put_ints(DType dtype, std::byte* out, const std::vector<std::int64_t>& values) {
  switch (format_info(dtype).block_bytes) {
    case 1:
      return put<std::uint8_t>(out, values);
    case 2:
      return put<std::uint16_t>(out, values);
    case 4:
      return put<std::uint32_t>(out, values);
    default:
      return put<std::uint64_t>(out, values);
  }
}

/// Every value fits the dtype: a wrapped number would be another model.
bool ints_fit(DType dtype, const std::vector<std::int64_t>& values) {
  const unsigned bits = format_info(dtype).block_bytes * 8;
  if (bits == 64) return true;
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32;
  const std::int64_t lowest = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t highest = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const std::int64_t end = dtype == DType::kBool ? 1 : highest;
  for (const std::int64_t value : values) {
    if (value < lowest || value > end) return false;
  }
  return true;
}

/// The number of values in the one typed field that this dtype uses; nullopt if another is used.
std::optional<std::size_t> typed_count(const TensorProto& tensor, DType dtype) {
  const bool as_floats = dtype == DType::kF32;
  const bool as_doubles = dtype == DType::kF64;
  const bool as_ints = !as_floats && !as_doubles;
  if ((!tensor.floats.empty() && !as_floats) || (!tensor.doubles.empty() && !as_doubles) ||
      (!tensor.ints.empty() && !as_ints))
    return std::nullopt;
  return as_floats ? tensor.floats.size() : as_doubles ? tensor.doubles.size() : tensor.ints.size();
}

Result<HostTensor> from_fields(const TensorProto& tensor, DType dtype, const Shape& shape) {
  const auto count = typed_count(tensor, dtype);
  if (!count) return fail(tensor_error(tensor, "data in a field of another type"));
  if (shape.elements() != *count) {
    return fail(tensor_error(tensor, fmt::format("{} values for shape {}", *count, shape.text())));
  }
  if (!ints_fit(dtype, tensor.ints))
    return fail(tensor_error(tensor, fmt::format("a value outside {}", dtype_name(dtype))));
  std::byte* data = nullptr;
  CYB_ASSIGN(HostTensor out, HostTensor::allocate(dtype, shape, data));
  if (dtype == DType::kF32) {
    put<float>(data, tensor.floats);
  } else if (dtype == DType::kF64) {
    put<double>(data, tensor.doubles);
  } else {
    put_ints(dtype, data, tensor.ints);
  }
  return out;
}

/// A byte of a bool tensor is 0 or 1.
Result<void> check_bools(const TensorProto& tensor, const HostTensor& out) {
  if (out.dtype != DType::kBool) return {};
  for (const std::byte b : out.bytes) {
    if (b > std::byte{1}) return fail(tensor_error(tensor, "a BOOL that is neither 0 nor 1"));
  }
  return {};
}

template <class T>
std::int64_t element_at(const std::byte* data, std::size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return static_cast<std::int64_t>(value);
}

std::int64_t int_at(DType dtype, const std::byte* data, std::size_t i) {
  switch (dtype) {
    case DType::kI8:
      return element_at<std::int8_t>(data, i);
    case DType::kI16:
      return element_at<std::int16_t>(data, i);
    case DType::kI32:
      return element_at<std::int32_t>(data, i);
    case DType::kUint16:
      return element_at<std::uint16_t>(data, i);
    case DType::kUint32:
      return element_at<std::uint32_t>(data, i);
    case DType::kI64:
    case DType::kUint64:
      return element_at<std::int64_t>(data, i);
    default:
      return element_at<std::uint8_t>(data, i);
  }
}

}  // namespace

std::optional<DType> dtype_of(std::int32_t element_type) noexcept {
  const auto i = static_cast<std::size_t>(element_type);
  return i < kTypes.size() ? kTypes[i].dtype : std::nullopt;
}

std::string type_name(std::int32_t element_type) {
  const auto i = static_cast<std::size_t>(element_type);
  return i < kTypes.size() ? std::string(kTypes[i].name) : fmt::format("type {}", element_type);
}

Result<HostTensor> HostTensor::allocate(DType dtype, const Shape& shape, std::byte*& data) {
  const auto size = cyb::tensor_bytes(dtype, shape);
  if (!size) return fail(onnx_error(fmt::format("shape {} overflows", shape.text())));
  CYB_ASSIGN(
      Buffer buffer,
      Buffer::allocate(static_cast<std::size_t>(std::max<std::uint64_t>(*size, 1)), "import"));
  auto owned = std::make_shared<Buffer>(std::move(buffer));
  data = owned->data();
  return HostTensor{dtype, shape, {owned->data(), static_cast<std::size_t>(*size)}, owned};
}

Result<HostTensor> HostTensor::of_ints(std::span<const std::int64_t> values, const Shape& shape) {
  std::byte* data = nullptr;
  CYB_ASSIGN(HostTensor out, allocate(DType::kI64, shape, data));
  if (!values.empty()) std::memcpy(data, values.data(), values.size_bytes());
  return out;
}

Result<HostTensor> HostTensor::aligned() const {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (bytes.data() != nullptr && address % format_info(dtype).block_bytes == 0) return *this;
  std::byte* data = nullptr;
  CYB_ASSIGN(HostTensor out, allocate(dtype, shape, data));
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return out;
}

std::optional<std::vector<std::int64_t>> HostTensor::ints() const {
  const DTypeClass cls = format_info(dtype).cls;
  if (cls != DTypeClass::kInt && cls != DTypeClass::kBool) return std::nullopt;
  std::vector<std::int64_t> out(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = int_at(dtype, bytes.data(), i);
  return out;
}

std::optional<double> HostTensor::scalar() const {
  if (shape.count() != 1) return std::nullopt;
  if (const auto values = ints()) return static_cast<double>((*values)[0]);
  if (dtype == DType::kF64) {
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  const DecodeFn decode = format_info(dtype).decode;
  if (decode == nullptr) return std::nullopt;
  float value = 0;
  decode(bytes.data(), &value, 1);
  return static_cast<double>(value);
}

Result<HostTensor> read_tensor(const TensorProto& tensor, ExternalFiles& files) {
  const auto dtype = dtype_of(tensor.type);
  if (!dtype) return fail(source_encoding(tensor.name, type_name(tensor.type)));
  if (tensor.segmented) return fail(tensor_error(tensor, "a segment of a tensor"));
  const Shape shape{std::span<const std::int64_t>(tensor.dims)};
  const auto size = cyb::tensor_bytes(*dtype, shape);
  if (!size) return fail(tensor_error(tensor, fmt::format("shape {}", shape.text())));
  HostTensor out{*dtype, shape, {}, nullptr};
  if (tensor.external) {
    if (tensor.raw || !tensor.floats.empty() || !tensor.doubles.empty() || !tensor.ints.empty())
      return fail(tensor_error(tensor, "external data and data in the file"));
    const std::uint64_t unit = format_info(*dtype).block_bytes;
    CYB_ASSIGN(out.bytes, files.read(tensor, *size, unit, out.owner));
  } else if (tensor.raw) {
    if (tensor.raw->size() != *size) {
      return fail(tensor_error(tensor, fmt::format("{} bytes for {} {}", tensor.raw->size(),
                                                   dtype_name(*dtype), shape.text())));
    }
    out.bytes = *tensor.raw;
  } else {
    CYB_ASSIGN(out, from_fields(tensor, *dtype, shape));
  }
  CYB_TRY(check_bools(tensor, out));
  return out;
}

}  // namespace cyb::onnx
