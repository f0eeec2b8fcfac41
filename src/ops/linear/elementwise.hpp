// Binary elementwise ops with NumPy broadcasting: equal dtypes, f32 f16 i32 i64, integers wrap.
#pragma once

#include <type_traits>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb::elementwise {

Result<std::vector<TensorSpec>> infer_binary(const Attrs& attrs, rules::Specs inputs);

/// One innermost row of a broadcast: out[i] = f(a[i * a_step], b[i * b_step]), steps 0 or 1.
struct RowIndex {
  std::size_t out, a, b, length, a_step, b_step;
};
/// Calls body for every innermost row; offsets are in elements.
void for_rows(const Shape& out, const Shape& a, const Shape& b,
              const std::function<void(const RowIndex&)>& body);

template <class T, class F>
void apply(const RefCall& call, const T* a, const T* b, T* out, F f) {
  for_rows(call.outputs[0].shape, call.inputs[0].shape, call.inputs[1].shape,
           [&](const RowIndex& row) {
             for (std::size_t i = 0; i < row.length; ++i) {
               out[row.out + i] = f(a[row.a + i * row.a_step], b[row.b + i * row.b_step]);
             }
           });
}

/// Integer arithmetic modulo 2^n.
template <class F>
struct Wrapping {
  F f;
  template <class T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  }
};

/// f for floats, `g` for integers.
template <class F, class G>
Result<void> run(const RefCall& call, F f, G g) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1];
  const MutableTensorView& out = call.outputs[0];
  if (a.dtype == DType::kI32) {
    apply(call, a.as<std::int32_t>(), b.as<std::int32_t>(), out.as<std::int32_t>(), g);
  } else if (a.dtype == DType::kI64) {
    apply(call, a.as<std::int64_t>(), b.as<std::int64_t>(), out.as<std::int64_t>(), g);
  } else {
    const ref::Values va(a), vb(b);
    ref::Results y(out);
    apply(call, va.data(), vb.data(), y.data(), f);
    y.finish();
  }
  return {};
}

}  // namespace cyb::elementwise
