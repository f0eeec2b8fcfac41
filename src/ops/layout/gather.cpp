// Gather (tag 281): rows of x picked by index along one axis; negative ones count from the end.
#include "ops/layout/gather.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"axis", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_gather(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_index(in, 1));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  std::vector<Dim> dims = in[0].dims;
  const auto at = dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(at, in[1].dims.begin(), in[1].dims.end());
  TensorSpec out{in[0].dtype, std::move(dims)};
  const auto indices = rules::constants_of(in, 1);
  if (in[0].value && in[0].rank() == 1 && indices) {
    out.value.emplace();
    const auto n = static_cast<std::int64_t>(in[0].value->size());
    for (const std::int64_t i : *indices) {
      if (i < -n || i >= n)
        return fail(rules::bad_shape(dims_text(in[0].dims), "room for the index"));
      out.value->push_back((*in[0].value)[static_cast<std::size_t>(i < 0 ? i + n : i)]);
    }
  }
  return std::vector{std::move(out)};
}

Result<void> reference_gather(const RefCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  const std::size_t rank = x.shape.rank();
  const std::int64_t a = GatherAttrs::from(call.attrs).axis;
  const auto axis = static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(rank) : a);
  const std::size_t outer = ref::extent(x.shape, 0, axis);
  const std::size_t row = ref::extent(x.shape, axis + 1, rank) * ref::element_bytes(x.dtype);
  const auto n = static_cast<std::size_t>(indices.shape.count());
  std::byte* out = call.outputs[0].data;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t index = ref::integer_at(indices, i);
    if (index < -x.shape[axis] || index >= x.shape[axis]) {
      return fail(invalid_input(
          fmt::format("Op::Gather: index {} is outside 0..{}", index, x.shape[axis] - 1)));
    }
    if (index < 0) index += x.shape[axis];
    for (std::size_t o = 0; o < outer && row != 0; ++o) {
      const std::size_t from = o * ref::extent(x.shape, axis) + static_cast<std::size_t>(index);
      std::memcpy(out + (o * n + i) * row, x.data + from * row, row);
    }
  }
  return {};
}

}  // namespace

OpImpl impl_Gather() {
  return {.attrs = kAttrs, .infer = infer_gather, .reference = reference_gather};
}

}  // namespace cyb
