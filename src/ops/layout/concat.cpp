// Concat (tag 8).
#include "ops/layout/concat.hpp"

#include <array>
#include <cstring>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"axis", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_concat(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  std::vector<Dim> dims = in[0].dims;
  for (std::size_t k = 1; k < in.size(); ++k) {
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
    CYB_TRY(rules::want_rank(in, k, dims.size()));
    std::vector<Dim> want = dims;
    want[axis] = in[k].dims[axis];
    CYB_TRY(rules::want_dims(in, k, want));
    dims[axis] = dims[axis] + in[k].dims[axis];
  }
  TensorSpec out{in[0].dtype, std::move(dims)};
  std::vector<Dim> value;
  for (std::size_t k = 0; k < in.size() && out.rank() == 1; ++k) {
    const std::vector<Dim>* part = rules::value_of(in, k);
    if (part == nullptr) return std::vector{std::move(out)};
    value.insert(value.end(), part->begin(), part->end());
  }
  const bool small = static_cast<std::int64_t>(value.size()) <= rules::kMaxValues;
  if (out.rank() == 1 && small) out.value = std::move(value);
  return std::vector{std::move(out)};
}

Result<void> reference_concat(const RefCall& call) {
  const MutableTensorView& y = call.outputs[0];
  const std::size_t rank = y.shape.rank();
  const std::int64_t a = ConcatAttrs::from(call.attrs).axis;
  const auto axis = static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(rank) : a);
  const std::size_t outer = ref::extent(y.shape, 0, axis);
  const std::size_t bytes = ref::element_bytes(y.dtype);
  const std::size_t row = ref::extent(y.shape, axis, rank) * bytes;
  std::size_t offset = 0;
  for (const TensorView& x : call.inputs) {
    const std::size_t part = ref::extent(x.shape, axis, rank) * bytes;
    for (std::size_t o = 0; o < outer && part != 0; ++o) {
      std::memcpy(y.data + o * row + offset, x.data + o * part, part);
    }
    offset += part;
  }
  return {};
}

}  // namespace

OpImpl impl_Concat() {
  return {.attrs = kAttrs, .infer = infer_concat, .reference = reference_concat};
}

}  // namespace cyb
