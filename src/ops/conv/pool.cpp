// Pooling: MaxPool (tag 414, with indices), AvgPool (415), LpPool (416) of 1 to 3 axes, Pool (86),
// MaxUnpool (418).
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/conv/geometry.hpp"
#include "ops/math/elementary.hpp"
#include "ops/math/is_nan.hpp"
#include "ops/op_impl.hpp"

namespace cyb {
namespace {

using conv::Axes;
using conv::List;
using conv::Window;
using rules::Specs;

constexpr AttrSpec list(std::string_view name) {
  return {name, AttrKind::kU32List};
}
constexpr AttrSpec u8(std::string_view name) {
  return {name, AttrKind::kU8};
}

Window window_of(const Attrs& a) {
  return {a.list(0), a.list(1), a.list(2), a.list(3), a.i(4), a.i(5) != 0};
}

Result<std::vector<Dim>> pooled_dims(const TensorSpec& x, const Window& window) {
  if (x.rank() < 3) return fail(rules::bad_shape(dims_text(x.dims), "3 or more dimensions"));
  CYB_TRY(conv::check_window(window, x.rank() - 2));
  std::vector<Dim> dims = {x.dims[0], x.dims[1]};
  for (std::size_t a = 0; a < window.axes(); ++a) {
    CYB_ASSIGN(Dim out, conv::output_dim(window, a, x.dims[2 + a]));
    dims.push_back(std::move(out));
  }
  return dims;
}

struct Run {
  Axes axes;
  std::size_t planes, in_size, out_size;
  Run(const RefCall& call, const Window& window) {
    const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
    axes = conv::axes_of(window, x.dims().subspan(2), y.dims().subspan(2));
    planes = ref::extent(x, 0, 2);
    in_size = ref::extent(x, 2, x.rank());
    out_size = ref::extent(y, 2, y.rank());
  }
};

/// visit(tap number, offset in the plane) of every tap of output `o` that is inside.
template <class F>
void for_taps(const Axes& a, std::size_t o, F visit) {
  const auto flat = static_cast<std::int64_t>(o);
  const std::array position = {flat / (a[1].out * a[2].out), flat / a[2].out % a[1].out,
                               flat % a[2].out};
  std::size_t k = 0;
  for (std::int64_t i = 0; i < a[0].kernel; ++i) {
    const std::int64_t z = conv::tap(a[0], position[0], i);
    for (std::int64_t j = 0; j < a[1].kernel; ++j) {
      const std::int64_t r = conv::tap(a[1], position[1], j);
      for (std::int64_t l = 0; l < a[2].kernel; ++l, ++k) {
        const std::int64_t q = conv::tap(a[2], position[2], l);
        const bool in = conv::inside(a[0], z) && conv::inside(a[1], r) && conv::inside(a[2], q);
        if (in) visit(k, static_cast<std::size_t>((z * a[1].in + r) * a[2].in + q));
      }
    }
  }
}

/// Taps of output `o` that lie in the input or its declared padding.
std::int64_t padded_taps(const Axes& a, std::size_t o) {
  const auto flat = static_cast<std::int64_t>(o);
  const std::array position = {flat / (a[1].out * a[2].out), flat / a[2].out % a[1].out,
                               flat % a[2].out};
  std::int64_t n = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t along = 0;
    for (std::int64_t k = 0; k < a[d].kernel; ++k) {
      const std::int64_t at = conv::tap(a[d], position[d], k);
      along += at >= -a[d].before && at < a[d].in + a[d].after ? 1 : 0;
    }
    n *= along;
  }
  return n;
}

constexpr std::array kMaxAttrs = {list("kernel"), list("strides"), list("dilations"), list("pads"),
                                  u8("auto_pad"), u8("ceil"),      u8("column_major")};

Result<std::vector<TensorSpec>> infer_max(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_ASSIGN(std::vector<Dim> dims, pooled_dims(in[0], window_of(attrs)));
  return std::vector{TensorSpec{in[0].dtype, dims}, TensorSpec{DType::kI64, dims}};
}

/// Offset in a plane with the last axis outermost.
std::size_t column_major(const Axes& a, std::size_t at) {
  const auto flat = static_cast<std::int64_t>(at);
  const std::int64_t q = flat % a[2].in, r = flat / a[2].in % a[1].in,
                     z = flat / (a[1].in * a[2].in);
  return static_cast<std::size_t>((q * a[1].in + r) * a[0].in + z);
}

/// Largest tap, the first of equals; NaN wins; a window of padding alone is the lowest number.
template <class C, class F>
void max_pool(const Run& run, const C* x, F store) {
  using Limits = std::numeric_limits<C>;
  for (std::size_t n = 0; n < run.planes * run.out_size; ++n) {
    const C* plane = x + n / run.out_size * run.in_size;
    C best = Limits::lowest();
    if constexpr (std::is_floating_point_v<C>) best = -Limits::infinity();
    std::size_t where = 0;
    bool first = true;
    for_taps(run.axes, n % run.out_size, [&](std::size_t, std::size_t at) {
      const C v = plane[at];
      if (is_nan(best) || !(first || v > best || is_nan(v))) return;
      best = v;
      where = at;
      first = false;
    });
    store(n, best, where);
  }
}

Result<void> reference_max(const RefCall& call) {
  const Run run(call, window_of(call.attrs));
  const bool columns = call.attrs.i(6) != 0;
  auto* indices = call.outputs[1].as<std::int64_t>();
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    max_pool(run, x.data(), [&](std::size_t n, C v, std::size_t at) {
      y[n] = v;
      const std::size_t inner = columns ? column_major(run.axes, at) : at;
      indices[n] = static_cast<std::int64_t>(n / run.out_size * run.in_size + inner);
    });
    y.finish();
    return {};
  });
}

constexpr std::array kAvgAttrs = {list("kernel"), list("strides"), list("dilations"), list("pads"),
                                  u8("auto_pad"), u8("ceil"),      u8("count_pad")};

Result<std::vector<TensorSpec>> infer_average(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_ASSIGN(std::vector<Dim> dims, pooled_dims(in[0], window_of(attrs)));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> average(const RefCall& call, const Window& window, bool count_pad) {
  const Run run(call, window);
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t n = 0; n < y.size(); ++n) {
      const C* plane = x.data() + n / run.out_size * run.in_size;
      ref::Sum<C> sum;
      std::int64_t cells = 0;
      for_taps(run.axes, n % run.out_size, [&](std::size_t k, std::size_t at) {
        sum.add_at(k, plane[at]);
        ++cells;
      });
      if (count_pad) cells = padded_taps(run.axes, n % run.out_size);
      y[n] = sum.value() / static_cast<C>(cells);
    }
    y.finish();
    return {};
  });
}

Result<void> reference_average(const RefCall& call) {
  return average(call, window_of(call.attrs), call.attrs.i(6) != 0);
}

constexpr std::array kLpAttrs = {list("kernel"),
                                 list("strides"),
                                 list("dilations"),
                                 list("pads"),
                                 u8("auto_pad"),
                                 u8("ceil"),
                                 AttrSpec{"p", AttrKind::kU32}};

Result<std::vector<TensorSpec>> infer_lp(const Attrs& attrs, Specs in) {
  if (attrs.i(6) < 1) return fail(rules::bad_payload("p"));
  return infer_average(attrs, in);
}

/// (sum |x|^p)^(1/p).
Result<void> reference_lp(const RefCall& call) {
  const Run run(call, window_of(call.attrs));
  const auto p = static_cast<double>(call.attrs.i(6));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t n = 0; n < y.size(); ++n) {
      const C* plane = x.data() + n / run.out_size * run.in_size;
      ref::Sum<double> sum;
      for_taps(run.axes, n % run.out_size, [&](std::size_t k, std::size_t at) {
        sum.add_at(k, math::power_f64(std::fabs(static_cast<double>(plane[at])), p));
      });
      y[n] =
          static_cast<C>(p == 2.0 ? std::sqrt(sum.value()) : math::power_f64(sum.value(), 1.0 / p));
    }
    y.finish();
    return {};
  });
}

constexpr std::array kPoolAttrs = {u8("mode"),
                                   AttrSpec{"kernel_h", AttrKind::kU32},
                                   AttrSpec{"kernel_w", AttrKind::kU32},
                                   AttrSpec{"stride_h", AttrKind::kU32},
                                   AttrSpec{"stride_w", AttrKind::kU32},
                                   AttrSpec{"padding_h", AttrKind::kU32},
                                   AttrSpec{"padding_w", AttrKind::kU32},
                                   u8("ceil"),
                                   u8("count_pad")};

Window pool_window(const Attrs& a) {
  return {{a.i(1), a.i(2)}, {a.i(3), a.i(4)}, {}, {a.i(5), a.i(6), a.i(5), a.i(6)},
          conv::kExplicit,  a.i(7) != 0};
}

Result<std::vector<TensorSpec>> infer_pool(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 4));
  CYB_TRY(rules::want_at_most(attrs, 0, 1, "mode"));
  for (std::size_t k = 0; k < 2; ++k) {  // else a window could hold padding alone
    if (attrs.i(5 + k) * 2 > attrs.i(1 + k))
      return fail(rules::bad_payload(kPoolAttrs[5 + k].name));
  }
  CYB_ASSIGN(std::vector<Dim> dims, pooled_dims(in[0], pool_window(attrs)));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_pool(const RefCall& call) {
  if (call.attrs.i(0) == 1) return average(call, pool_window(call.attrs), call.attrs.i(8) != 0);
  const Run run(call, pool_window(call.attrs));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    max_pool(run, x.data(), [&](std::size_t n, C v, std::size_t) { y[n] = v; });
    y.finish();
    return {};
  });
}

constexpr std::array kUnpoolAttrs = {list("kernel"), list("strides"), list("pads")};

/// (L - 1) s + k - pads, or the shape that input 2 gives.
Result<std::vector<TensorSpec>> infer_unpool(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, DType::kI64));
  CYB_TRY(rules::want_dims(in, 1, in[0].dims));
  if (in[0].rank() < 3)
    return fail(rules::bad_shape(dims_text(in[0].dims), "3 or more dimensions"));
  const Window w{attrs.list(0), attrs.list(1), {}, attrs.list(2), conv::kExplicit, false};
  CYB_TRY(conv::check_window(w, in[0].rank() - 2));
  std::vector<Dim> dims = in[0].dims;
  if (!rules::at(in, 2).absent) {
    CYB_TRY(rules::want_list(in, 2));
    const auto* shape = rules::value_of(in, 2);
    if (shape != nullptr && shape->size() != dims.size())
      return fail(rules::bad_shape(dims_text(in[2].dims), "one length per dimension"));
    dims = shape != nullptr ? *shape : std::vector<Dim>(dims.size(), Dim::anonymous());
    return rules::one(in[0].dtype, std::move(dims));
  }
  for (std::size_t a = 0; a < w.axes(); ++a) {
    const std::int64_t pads = w.pads.empty() ? 0 : w.pads[a] + w.pads[w.axes() + a];
    dims[2 + a] = dims[2 + a] * w.stride(a) + Dim(w.kernel[a] - w.stride(a) - pads);
    if (dims[2 + a].is_constant() && dims[2 + a].constant() < 0)
      return fail(rules::bad_payload("pads"));
  }
  return rules::one(in[0].dtype, std::move(dims));
}

/// Indices address the tensor that the pads and kernel imply (row-major over all dimensions); a
/// given shape holds it in its corner.
Result<void> reference_unpool(const RefCall& call) {
  const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
  Shape small = x;
  const Window w{call.attrs.list(0), call.attrs.list(1), {},
                 call.attrs.list(2), conv::kExplicit,    false};
  for (std::size_t a = 0; a < w.axes(); ++a) {
    const std::int64_t pads = w.pads.empty() ? 0 : w.pads[a] + w.pads[w.axes() + a];
    small[2 + a] = (x[2 + a] - 1) * w.stride(a) + w.kernel[a] - pads;
  }
  const std::size_t bytes = ref::element_bytes(call.inputs[0].dtype);
  std::memset(call.outputs[0].data, 0, static_cast<std::size_t>(y.count()) * bytes);
  const auto strides = ref::strides_of(y);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    std::int64_t rest = call.inputs[1].as<std::int64_t>()[i];
    if (rest < 0 || rest >= small.count())
      return fail(invalid_input("Op::MaxUnpool: an index out of range"));
    std::size_t at = 0;
    for (std::size_t d = y.rank(); d-- > 0;) {
      const std::int64_t k = rest % small[d];
      rest /= small[d];
      if (k >= y[d]) return fail(invalid_input("Op::MaxUnpool: an index outside the shape"));
      at += static_cast<std::size_t>(k) * strides[d];
    }
    std::memcpy(call.outputs[0].data + at * bytes,
                call.inputs[0].data + static_cast<std::size_t>(i) * bytes, bytes);
  }
  return {};
}

}  // namespace

OpImpl impl_MaxPool() {
  return {.attrs = kMaxAttrs, .infer = infer_max, .reference = reference_max};
}
OpImpl impl_AvgPool() {
  return {.attrs = kAvgAttrs, .infer = infer_average, .reference = reference_average};
}
OpImpl impl_LpPool() {
  return {.attrs = kLpAttrs, .infer = infer_lp, .reference = reference_lp};
}
OpImpl impl_Pool() {
  return {.attrs = kPoolAttrs, .infer = infer_pool, .reference = reference_pool};
}
OpImpl impl_MaxUnpool() {
  return {.attrs = kUnpoolAttrs, .infer = infer_unpool, .reference = reference_unpool};
}

}  // namespace cyb
