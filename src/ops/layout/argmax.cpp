// Argmax (tag 199). NaN is an error: it has no place in an order.
#include "ops/layout/argmax.hpp"

#include <array>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"dim", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_argmax(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "dim"));
  CYB_TRY(rules::want_nonempty(in[0], axis));
  std::vector<Dim> dims = in[0].dims;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return rules::one(DType::kI32, std::move(dims));
}

Result<void> reference_argmax(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::int64_t d = ArgmaxAttrs::from(call.attrs).dim;
  const auto axis =
      static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(shape.rank()) : d);
  const std::size_t n = ref::extent(shape, axis),
                    inner = ref::extent(shape, axis + 1, shape.rank());
  const std::size_t outer = ref::extent(shape, 0, axis);
  const ref::Values x(call.inputs[0]);
  for (std::size_t o = 0; o < outer * inner; ++o) {
    const std::size_t base = o / inner * n * inner + o % inner;
    std::size_t best = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float v = x[base + i * inner];
      if (v != v) return fail(non_finite("Argmax", "input 0", base + i * inner));
      if (v > x[base + best * inner]) best = i;
    }
    call.outputs[0].as<std::int32_t>()[o] = static_cast<std::int32_t>(best);
  }
  return {};
}

}  // namespace

OpImpl impl_Argmax() {
  return {.attrs = kAttrs, .infer = infer_argmax, .reference = reference_argmax};
}

}  // namespace cyb
