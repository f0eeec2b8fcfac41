// Split (tag 9).
#include "ops/layout/split.hpp"

#include <array>
#include <cstring>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"axis", AttrKind::kI32},
                               AttrSpec{"sizes", AttrKind::kU32List}};

Result<std::vector<TensorSpec>> infer_split(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  const auto& sizes = attrs.list(1);
  if (sizes.empty()) return fail(rules::bad_payload("sizes"));
  std::int64_t total = 0;
  std::vector<TensorSpec> outputs;
  for (const std::int64_t size : sizes) {
    total += size;
    outputs.push_back({in[0].dtype, in[0].dims});
    outputs.back().dims[axis] = Dim(size);
  }
  if (certainly_differ(in[0].dims[axis], Dim(total))) {
    std::vector<Dim> want = in[0].dims;
    want[axis] = Dim(total);
    return fail(rules::bad_shape(dims_text(in[0].dims), dims_text(want)));
  }
  return outputs;
}

Result<void> reference_split(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const std::size_t rank = x.shape.rank();
  const std::int64_t a = SplitAttrs::from(call.attrs).axis;
  const auto axis = static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(rank) : a);
  const std::size_t outer = ref::extent(x.shape, 0, axis);
  const std::size_t bytes = ref::element_bytes(x.dtype);
  const std::size_t row = ref::extent(x.shape, axis, rank) * bytes;
  std::size_t offset = 0;
  for (const MutableTensorView& y : call.outputs) {
    const std::size_t part = ref::extent(y.shape, axis, rank) * bytes;
    for (std::size_t o = 0; o < outer && part != 0; ++o) {
      std::memcpy(y.data + o * part, x.data + o * row + offset, part);
    }
    offset += part;
  }
  return {};
}

}  // namespace

OpImpl impl_Split() {
  return {.attrs = kAttrs,
          .infer = infer_split,
          .reference = reference_split,
          .count = [](const Attrs& attrs) { return attrs.list(1).size(); }};
}

}  // namespace cyb
