// Pow, Mod, Compare, Where, Max, Min and Clip, with NumPy broadcasting.
#include <cmath>
#include <limits>

#include "ops/layout/convert.hpp"
#include "ops/linear/elementwise.hpp"
#include "ops/math/elementary.hpp"
#include "ops/math/is_nan.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// a^n modulo 2^64 for n >= 0; a negative exponent gives the truncated fraction.
template <class A, class B>
A integer_power(A a, B b) {
  if (std::cmp_less(b, 0)) {
    if (a == A{1}) return a;
    if constexpr (std::is_signed_v<A>) {
      if (a == A{-1}) return b % 2 == 0 ? A{1} : a;
    }
    return A{0};
  }
  // NOLINTBEGIN(bugprone-signed-char-misuse): a small integer is extended by its sign.
  auto base = static_cast<std::uint64_t>(a), result = std::uint64_t{1};
  for (auto n = static_cast<std::uint64_t>(b); n != 0; n >>= 1u) {
    // NOLINTEND(bugprone-signed-char-misuse)
    if ((n & 1u) != 0) result *= base;
    base *= base;
  }
  return static_cast<A>(result);
}

Result<std::vector<TensorSpec>> infer_pow(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_number(in, 1));
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(in[0], in[1]));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_pow(const RefCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1];
  return ref::visit_number(a.dtype, [&]<class A>(ref::Type<A>) {
    return ref::visit_number(b.dtype, [&]<class B>(ref::Type<B>) -> Result<void> {
      const ref::Elements<A> x(a);
      const ref::Elements<B> y(b);
      ref::Outputs<A> z(call.outputs[0]);
      elementwise::apply(call, x.data(), y.data(), z.data(), [](A u, B v) {
        if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
          return integer_power(u, v);
        } else {
          const double p = math::power_f64(static_cast<double>(u), static_cast<double>(v));
          return convert::to<A>(p);
        }
      });
      z.finish();
      return {};
    });
  });
}

constexpr std::array kModAttrs = {AttrSpec{"fmod", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_mod(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(std::vector<TensorSpec> out, elementwise::infer_binary(attrs, in));
  return out;
}

/// fmod: the sign of a. Else that of b.
template <class T>
T remainder(T a, T b, bool fmod) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(a, b);  // exact
    if (fmod || r == T{0} || (r < T{0}) == (b < T{0})) return r;
    return r + b;
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};
      const T r = static_cast<T>(a % b);
      return fmod || r == 0 || (r < 0) == (b < 0) ? r : static_cast<T>(r + b);
    } else {
      return static_cast<T>(a % b);
    }
  }
}

Result<void> reference_mod(const RefCall& call) {
  const TensorView& b = call.inputs[1];
  const bool fmod = call.attrs.i(0) != 0;
  if (rules::is_int(b.dtype) && call.outputs[0].shape.count() != 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(b.shape.count()); ++i) {
      if (ref::integer_at(b, i) == 0) return fail(invalid_input("Op::Mod: division by zero"));
    }
  }
  const auto f = [fmod]<class T>(T x, T y) { return remainder(x, y, fmod); };
  return elementwise::run(call, f, f);
}

constexpr std::array kCompareAttrs = {AttrSpec{"kind", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_compare(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 5, "kind"));
  if (!rules::is_element(in[0].dtype)) return fail(rules::bad_dtype(0, in[0].dtype));
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(in[0], in[1]));
  return rules::one(DType::kBool, std::move(dims));
}

template <class C>
bool compare(C a, C b, std::int64_t kind) {
  switch (kind) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

Result<void> reference_compare(const RefCall& call) {
  const std::int64_t kind = call.attrs.i(0);
  const DType dtype = call.inputs[0].dtype == DType::kBool ? DType::kU8 : call.inputs[0].dtype;
  return ref::visit_number(dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> a(call.inputs[0]), b(call.inputs[1]);
    elementwise::apply(call, a.data(), b.data(), call.outputs[0].as<std::uint8_t>(),
                       [kind](C x, C y) { return static_cast<std::uint8_t>(compare(x, y, kind)); });
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_where(const Attrs&, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kBool));
  if (!rules::is_element(in[1].dtype)) return fail(rules::bad_dtype(1, in[1].dtype));
  CYB_TRY(rules::want_dtype(in, 2, in[1].dtype));
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(in[1], in[2]));
  CYB_ASSIGN(dims, rules::broadcast(in[0], TensorSpec{in[1].dtype, std::move(dims)}));
  return rules::one(in[1].dtype, std::move(dims));
}

Result<void> reference_where(const RefCall& call) {
  const Shape& out = call.outputs[0].shape;
  const TensorView &c = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2];
  const auto cs = ref::broadcast_strides(out, c.shape), as = ref::broadcast_strides(out, a.shape),
             bs = ref::broadcast_strides(out, b.shape);
  return ref::visit_size(a.dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    ref::for_each_index(out, [&](std::size_t i, const ref::Index& index) {
      const std::size_t r = out.rank();
      const bool first = c.as<std::uint8_t>()[ref::dot(index, cs, r)] != 0;
      call.outputs[0].as<T>()[i] =
          first ? a.as<T>()[ref::dot(index, as, r)] : b.as<T>()[ref::dot(index, bs, r)];
    });
    return {};
  });
}

/// The larger (or smaller) of two; NaN wins.
template <class C>
C extreme(C a, C b, bool largest) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return largest ? (a < b ? b : a) : (b < a ? b : a);
}

Result<std::vector<TensorSpec>> infer_extreme(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  std::vector<Dim> dims = in[0].dims;
  for (std::size_t k = 1; k < in.size(); ++k) {
    CYB_ASSIGN(dims, rules::broadcast(TensorSpec{in[0].dtype, dims}, in[k]));
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> run_extreme(const RefCall& call, bool largest) {
  const Shape& out = call.outputs[0].shape;
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      const ref::Elements<C> x(call.inputs[k]);
      const auto strides = ref::broadcast_strides(out, call.inputs[k].shape);
      ref::for_each_index(out, [&](std::size_t i, const ref::Index& index) {
        const C v = x[ref::dot(index, strides, out.rank())];
        y[i] = k == 0 ? v : extreme(y[i], v, largest);
      });
    }
    y.finish();
    return {};
  });
}

Result<void> reference_max(const RefCall& call) {
  return run_extreme(call, true);
}
Result<void> reference_min(const RefCall& call) {
  return run_extreme(call, false);
}

Result<std::vector<TensorSpec>> infer_clip(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (in[k].absent || rules::product(in[k].dims) == Dim(1)) continue;
    return fail(rules::bad_shape(dims_text(in[k].dims), "one value"));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_clip(const RefCall& call) {
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), low(ref::input(call, 1)), high(ref::input(call, 2));
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      C v = x[i];
      if (low.present()) v = extreme(v, low[0], true);
      if (high.present()) v = extreme(v, high[0], false);
      y[i] = v;
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_Pow() {
  return {.infer = infer_pow, .reference = reference_pow};
}
OpImpl impl_Mod() {
  return {.attrs = kModAttrs, .infer = infer_mod, .reference = reference_mod};
}
OpImpl impl_Compare() {
  return {.attrs = kCompareAttrs, .infer = infer_compare, .reference = reference_compare};
}
OpImpl impl_Where() {
  return {.infer = infer_where, .reference = reference_where};
}
OpImpl impl_Max() {
  return {.infer = infer_extreme, .reference = reference_max};
}
OpImpl impl_Min() {
  return {.infer = infer_extreme, .reference = reference_min};
}
OpImpl impl_Clip() {
  return {.infer = infer_clip, .reference = reference_clip};
}

}  // namespace cyb
