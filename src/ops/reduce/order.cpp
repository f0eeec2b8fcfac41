// Order along one axis: ArgReduce (tag 401), TopK (287), TopKBy (402).
#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/math/is_nan.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kArgAttrs = {AttrSpec{"kind", AttrKind::kU8}, AttrSpec{"axis", AttrKind::kI32},
                                  AttrSpec{"keep", AttrKind::kU8}, AttrSpec{"last", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_arg(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 1, "kind"));
  CYB_TRY(rules::want_number(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(1), in[0].rank(), "axis"));
  CYB_TRY(rules::want_nonempty(in[0], axis));
  std::vector<Dim> dims = in[0].dims;
  if (attrs.i(2) != 0) {
    dims[axis] = 1;
  } else {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return rules::one(DType::kI64, std::move(dims));
}

/// a before b: NaN first, then larger (or smaller).
template <class C>
bool before(C a, C b, bool largest) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) && !is_nan(b);
  return largest ? a > b : a < b;
}

Result<void> reference_arg(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const bool largest = call.attrs.i(0) == 0, last = call.attrs.i(3) != 0;
  const ref::AxisView view(x.shape, ref::axis_of(call.attrs.i(1), x.shape.rank()));
  return ref::visit_number(x.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(x);
    for (std::size_t line = 0; line < view.lines(); ++line) {
      const C* row = in.data() + view.base(line);
      std::size_t best = 0;
      for (std::size_t k = 1; k < view.n; ++k) {
        const C v = row[k * view.inner], top = row[best * view.inner];
        if (before(v, top, largest) || (last && !before(top, v, largest))) best = k;
      }
      call.outputs[0].as<std::int64_t>()[line] = static_cast<std::int64_t>(best);
    }
    return {};
  });
}

/// The k first of each line, ties by lower index; `store(slot, value offset, index)`.
template <class Store>
Result<void> top_k(const RefCall& call, std::size_t axis, bool largest, Store store) {
  const TensorView& x = call.inputs[0];
  const ref::AxisView view(x.shape, axis);
  const std::size_t k = ref::extent(call.outputs[0].shape, axis);
  if (k > view.n) return fail(invalid_input("Op::TopK: k is larger than the dimension"));
  return ref::visit_number(x.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(x);
    std::vector<std::size_t> order(view.n);
    for (std::size_t line = 0; line < view.lines(); ++line) {
      const std::size_t base = view.base(line);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return before(in[base + a * view.inner], in[base + b * view.inner], largest);
      });
      const std::size_t out = line / view.inner * k * view.inner + line % view.inner;
      for (std::size_t i = 0; i < k; ++i)
        store(out + i * view.inner, base + order[i] * view.inner, order[i]);
    }
    return {};
  });
}

void move_value(const RefCall& call, std::size_t slot, std::size_t from) {
  const std::size_t bytes = ref::element_bytes(call.inputs[0].dtype);
  std::memcpy(call.outputs[0].data + slot * bytes, call.inputs[0].data + from * bytes, bytes);
}

constexpr std::array kTopAttrs = {AttrSpec{"k", AttrKind::kU32}, AttrSpec{"axis", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_top_k(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(1), in[0].rank(), "axis"));
  std::vector<Dim> dims = in[0].dims;
  if (dims[axis].is_constant() &&
      (attrs.i(0) > dims[axis].constant() ||
       dims[axis].constant() > std::numeric_limits<std::int32_t>::max())) {
    return fail(rules::bad_payload("k"));
  }
  dims[axis] = attrs.i(0);
  return std::vector{TensorSpec{in[0].dtype, dims}, TensorSpec{DType::kI32, dims}};
}

Result<void> reference_top_k(const RefCall& call) {
  const std::size_t axis = ref::axis_of(call.attrs.i(1), call.inputs[0].shape.rank());
  return top_k(call, axis, true, [&](std::size_t slot, std::size_t from, std::size_t index) {
    move_value(call, slot, from);
    call.outputs[1].as<std::int32_t>()[slot] = static_cast<std::int32_t>(index);
  });
}

constexpr std::array kTopByAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                    AttrSpec{"largest", AttrKind::kU8},
                                    AttrSpec{"sorted", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_top_k_by(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_list(in, 1));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  std::vector<Dim> dims = in[0].dims;
  dims[axis] = Dim::anonymous();
  if (const auto* k = rules::value_of(in, 1)) {
    const bool one = k->size() == 1;
    const bool bad = one && (*k)[0].is_constant() &&
                     ((*k)[0].constant() < 0 || (in[0].dims[axis].is_constant() &&
                                                 (*k)[0].constant() > in[0].dims[axis].constant()));
    if (!one || bad) return fail(rules::bad_shape(dims_text(in[0].dims), "room for k elements"));
    dims[axis] = (*k)[0];
  }
  return std::vector{TensorSpec{in[0].dtype, dims}, TensorSpec{DType::kI64, dims}};
}

/// Sorted even where `sorted` does not ask for it.
Result<void> reference_top_k_by(const RefCall& call) {
  const std::size_t axis = ref::axis_of(call.attrs.i(0), call.inputs[0].shape.rank());
  return top_k(call, axis, call.attrs.i(1) != 0,
               [&](std::size_t slot, std::size_t from, std::size_t index) {
                 move_value(call, slot, from);
                 call.outputs[1].as<std::int64_t>()[slot] = static_cast<std::int64_t>(index);
               });
}

}  // namespace

OpImpl impl_ArgReduce() {
  return {.attrs = kArgAttrs, .infer = infer_arg, .reference = reference_arg};
}
OpImpl impl_TopK() {
  return {.attrs = kTopAttrs, .infer = infer_top_k, .reference = reference_top_k};
}
OpImpl impl_TopKBy() {
  return {.attrs = kTopByAttrs, .infer = infer_top_k_by, .reference = reference_top_k_by};
}

}  // namespace cyb
