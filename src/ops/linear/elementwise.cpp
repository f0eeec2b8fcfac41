// Broadcasting of binary elementwise ops.
#include "ops/linear/elementwise.hpp"

#include <array>

namespace cyb::elementwise {

Result<std::vector<TensorSpec>> infer_binary(const Attrs&, rules::Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  const DType dtype = in[0].dtype;
  CYB_TRY(rules::want_dtype(in, 1, dtype));
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(in[0], in[1]));
  return rules::one(dtype, std::move(dims));
}

namespace {

/// Element strides of `operand` along the dimensions of `out`; 0 where it broadcasts.
std::array<std::size_t, Shape::kMaxRank> strides_in(const Shape& out, const Shape& operand) {
  std::array<std::size_t, Shape::kMaxRank> strides{};
  const std::size_t shift = out.rank() - operand.rank();
  std::size_t stride = 1;
  for (std::size_t i = operand.rank(); i-- > 0;) {
    if (operand[i] != 1) strides[shift + i] = stride;
    stride *= ref::extent(operand, i);
  }
  return strides;
}

}  // namespace

void for_rows(const Shape& out, const Shape& a, const Shape& b,
              const std::function<void(const RowIndex&)>& body) {
  if (out.count() == 0) return;
  const auto a_strides = strides_in(out, a), b_strides = strides_in(out, b);
  const std::size_t last = out.rank() == 0 ? 0 : out.rank() - 1;
  const std::size_t length = out.rank() == 0 ? 1 : ref::extent(out, last);
  const std::size_t rows = ref::extent(out, 0, last);
  for (std::size_t r = 0; r < rows; ++r) {
    RowIndex row{r * length, 0, 0, length, a_strides[last], b_strides[last]};
    std::size_t rest = r;
    for (std::size_t i = last; i-- > 0;) {
      const std::size_t at = rest % ref::extent(out, i);
      rest /= ref::extent(out, i);
      row.a += at * a_strides[i];
      row.b += at * b_strides[i];
    }
    body(row);
  }
}

void set_value(TensorSpec& out, rules::Specs inputs, DimFn f) {
  const auto *a = rules::value_of(inputs, 0), *b = rules::value_of(inputs, 1);
  if (a == nullptr || b == nullptr || out.rank() > 1) return;
  const std::size_t n = a->size() == 1 ? b->size() : a->size();
  if (a->size() != n && a->size() != 1) return;
  if (b->size() != n && b->size() != 1) return;
  std::vector<Dim> value;
  for (std::size_t i = 0; i < n; ++i) {
    const auto v = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!v) return;
    value.push_back(*v);
  }
  out.value = std::move(value);
}

}  // namespace cyb::elementwise
