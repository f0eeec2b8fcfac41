// Constant (tag 289).
#include "ops/layout/constant.hpp"

#include <array>
#include <cstring>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

ConstantAttrs ConstantAttrs::of(std::span<const float> values, const Shape& shape) {
  const auto raw = std::as_bytes(values);
  return {DType::kF32,
          {shape.dims().begin(), shape.dims().end()},
          std::vector<std::byte>(raw.begin(), raw.end())};
}

namespace {

constexpr std::array kAttrs = {AttrSpec{"dtype", AttrKind::kU8},
                               AttrSpec{"shape", AttrKind::kI64List},
                               AttrSpec{"bytes", AttrKind::kBytes}};

Result<std::vector<TensorSpec>> infer_constant(const Attrs& attrs, rules::Specs) {
  const auto dtype = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  if (!dtype) return fail(rules::bad_payload("dtype"));
  const std::vector<std::int64_t>& dims = attrs.list(1);
  if (dims.size() > Shape::kMaxRank) return fail(rules::bad_payload("shape"));
  const Shape shape{std::span<const std::int64_t>(dims)};
  const auto bytes = tensor_bytes(*dtype, shape);
  if (!bytes) return fail(rules::bad_payload("shape"));
  if (*bytes != attrs.bytes(2).size()) return fail(rules::bad_payload("bytes"));
  if (*bytes == 0) return std::vector{TensorSpec::of(*dtype, shape)};  // no data is no absence
  return std::vector{spec_with_value({*dtype, shape, attrs.bytes(2).data()})};
}

Result<void> reference_constant(const RefCall& call) {
  const std::vector<std::byte>& bytes = call.attrs.bytes(2);
  if (!bytes.empty()) std::memcpy(call.outputs[0].data, bytes.data(), bytes.size());
  return {};
}

}  // namespace

OpImpl impl_Constant() {
  return {.attrs = kAttrs, .infer = infer_constant, .reference = reference_constant};
}

}  // namespace cyb
