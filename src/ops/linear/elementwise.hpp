// Binary elementwise ops with NumPy broadcasting: equal dtypes, every number, integers wrap.
#pragma once

#include <functional>
#include <type_traits>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb::elementwise {

Result<std::vector<TensorSpec>> infer_binary(const Attrs& attrs, rules::Specs inputs);

/// One innermost row of a broadcast: out[i] = f(a[i * a_step], b[i * b_step]), steps 0 or 1.
struct RowIndex {
  std::size_t out, a, b, length, a_step, b_step;
};
/// Calls body for every innermost row; offsets are in elements.
void for_rows(const Shape& out, const Shape& a, const Shape& b,
              const std::function<void(const RowIndex&)>& body);

template <class A, class B, class T, class F>
void apply(const RefCall& call, const A* a, const B* b, T* out, F f) {
  const auto body = [&](const RowIndex& row) {
    for (std::size_t i = 0; i < row.length; ++i) {
      out[row.out + i] = f(a[row.a + i * row.a_step], b[row.b + i * row.b_step]);
    }
  };
  for_rows(call.outputs[0].shape, call.inputs[0].shape, call.inputs[1].shape,
           std::cref(body));  // a reference fits a function without memory
}

/// Integer arithmetic modulo 2^n.
template <class F>
struct Wrapping {
  F f;
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  }
};

/// f for f16, f32 and f64.
template <class F>
Result<void> run_real(const RefCall& call, F f) {
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> a(call.inputs[0]), b(call.inputs[1]);
    ref::Outputs<C> y(call.outputs[0]);
    apply(call, a.data(), b.data(), y.data(), f);
    y.finish();
    return {};
  });
}

/// g for integers.
template <class G>
Result<void> run_int(const RefCall& call, G g) {
  return ref::visit_int(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    apply(call, call.inputs[0].as<C>(), call.inputs[1].as<C>(), call.outputs[0].as<C>(), g);
    return {};
  });
}

/// f for reals, `g` for integers.
template <class F, class G>
Result<void> run(const RefCall& call, F f, G g) {
  return rules::is_int(call.inputs[0].dtype) ? run_int(call, g) : run_real(call, f);
}

/// Symbolic values of an integer op: `f(a, b)` of each pair (one may have a single element), where
/// both are known and f has a result.
using DimFn = std::optional<Dim> (*)(const Dim&, const Dim&);
void set_value(TensorSpec& out, rules::Specs inputs, DimFn f);

}  // namespace cyb::elementwise
