// Softmax (tag 70). A row of -Inf only is an error; the sum is in the reference order.
#include "ops/activation/softmax.hpp"

#include <array>
#include <limits>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"dim", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_softmax(const Attrs& attrs, rules::Specs in) {
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "dim"));
  CYB_TRY(rules::want_nonempty(in[0], axis));
  return rules::same_float(attrs, in);
}

/// In place; false if every element is -Inf.
bool softmax_row(float* row, std::size_t n) {
  float largest = -std::numeric_limits<float>::infinity();
  bool all_lowest = true;
  for (std::size_t i = 0; i < n; ++i) {
    if (row[i] > largest) largest = row[i];
    all_lowest = all_lowest && row[i] == -std::numeric_limits<float>::infinity();
  }
  if (all_lowest) return false;
  for (std::size_t i = 0; i < n; ++i) row[i] = math::exp_f32(row[i] - largest);
  const float total = ref::sum(row, n);
  for (std::size_t i = 0; i < n; ++i) row[i] = row[i] / total;
  return true;
}

Result<void> reference_softmax(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::int64_t d = SoftmaxAttrs::from(call.attrs).dim;
  const auto axis =
      static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(shape.rank()) : d);
  const std::size_t n = ref::extent(shape, axis),
                    inner = ref::extent(shape, axis + 1, shape.rank());
  const std::size_t outer = ref::extent(shape, 0, axis);
  const ref::Values x(call.inputs[0]);
  ref::Results y(call.outputs[0]);
  std::vector<float> row(n);
  for (std::size_t o = 0; o < outer * inner; ++o) {
    const std::size_t base = o / inner * n * inner + o % inner;
    for (std::size_t i = 0; i < n; ++i) row[i] = x[base + i * inner];
    if (!softmax_row(row.data(), n)) return fail(non_finite("Softmax", "row of -Inf", o));
    for (std::size_t i = 0; i < n; ++i) y.data()[base + i * inner] = row[i];
  }
  y.finish();
  return {};
}

}  // namespace

OpImpl impl_Softmax() {
  return {.attrs = kAttrs, .infer = infer_softmax, .reference = reference_softmax};
}

}  // namespace cyb
