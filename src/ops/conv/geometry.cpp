// Lengths and pads of sliding windows, and the plain convolution.
#include "ops/conv/geometry.hpp"

#include <algorithm>

namespace cyb::conv {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;

bool in_range(const List& values, std::int64_t lowest) {
  return std::ranges::all_of(values,
                             [lowest](std::int64_t v) { return v >= lowest && v <= kMost; });
}

/// floor((length + add) / step) + 1, symbols included.
Dim windows(const Dim& length, std::int64_t add, std::int64_t step) {
  const std::int64_t rest = length.constant() + add;
  const std::int64_t floor = rest >= 0 ? rest / step : -((-rest + step - 1) / step);
  if (length.is_constant()) return floor + 1;
  const auto symbols = (length - Dim(length.constant())).divided_by(step);
  return symbols ? *symbols + Dim(floor + 1) : Dim::anonymous();
}

}  // namespace

Result<void> check_window(const Window& w, std::size_t axes) {
  if (axes < 1 || axes > 3 || w.kernel.size() != axes || !in_range(w.kernel, 1))
    return fail(rules::bad_payload("kernel"));
  const auto fits = [axes](const List& list, std::size_t each) {
    return list.empty() || list.size() == axes * each;
  };
  if (!fits(w.strides, 1) || !in_range(w.strides, 1)) return fail(rules::bad_payload("strides"));
  if (!fits(w.dilations, 1) || !in_range(w.dilations, 1))
    return fail(rules::bad_payload("dilations"));
  if (!fits(w.pads, 2) || !in_range(w.pads, 0)) return fail(rules::bad_payload("pads"));
  if (w.auto_pad > kValid) return fail(rules::bad_payload("auto_pad"));
  return {};
}

Result<Dim> output_dim(const Window& w, std::size_t a, const Dim& length) {
  if (length.is_anonymous()) return length;
  if (w.auto_pad == kSameUpper || w.auto_pad == kSameLower) return windows(length, -1, w.stride(a));
  const bool padded = w.auto_pad == kExplicit && !w.pads.empty();
  const std::int64_t before = padded ? w.pads[a] : 0, after = padded ? w.pads[w.axes() + a] : 0;
  std::int64_t room = before + after - w.span(a);
  if (length.is_constant() && length.constant() + room < 0) {
    return fail(
        rules::bad_shape(length.text({}), "room for a window of " + std::to_string(w.span(a))));
  }
  if (w.ceil) room += w.stride(a) - 1;
  Dim out = windows(length, room, w.stride(a));
  // A window that begins in the padding behind the input is left out.
  if (w.ceil && out.is_constant() && length.is_constant() &&
      (out.constant() - 1) * w.stride(a) >= length.constant() + before) {
    out = out.constant() - 1;
  }
  return out;
}

Axes axes_of(const Window& w, std::span<const std::int64_t> in, std::span<const std::int64_t> out) {
  Axes axes{};
  for (std::size_t a = 0; a < w.axes(); ++a) {
    Axis& axis = axes[3 - w.axes() + a];
    axis = {in[a], out[a], w.kernel[a], w.stride(a), w.dilation(a), 0, 0};
    if (w.auto_pad == kExplicit && !w.pads.empty()) {
      axis.before = w.pads[a];
      axis.after = w.pads[w.axes() + a];
    }
    if (w.auto_pad == kSameUpper || w.auto_pad == kSameLower) {
      const std::int64_t total =
          std::max<std::int64_t>((out[a] - 1) * w.stride(a) + w.span(a) - in[a], 0);
      axis.before = w.auto_pad == kSameUpper ? total / 2 : total - total / 2;
      axis.after = total - axis.before;
    }
  }
  return axes;
}

Result<List> kernel_of(const TensorSpec& weight) {
  List kernel;
  for (std::size_t d = 2; d < weight.rank(); ++d) {
    if (!weight.dims[d].is_constant())
      return fail(rules::bad_shape(dims_text(weight.dims), "a constant kernel"));
    kernel.push_back(weight.dims[d].constant());
  }
  return kernel;
}

Result<std::vector<TensorSpec>> infer_conv(Specs in, Window window, std::int64_t groups) {
  CYB_TRY(rules::want_min_rank(in, 0, 3));
  CYB_TRY(rules::want_rank(in, 1, in[0].rank()));
  if (in[0].rank() > 5)
    return fail(rules::bad_shape(dims_text(in[0].dims), "at most 5 dimensions"));
  CYB_ASSIGN(const List kernel, kernel_of(in[1]));
  if (!window.kernel.empty() && window.kernel != kernel) {
    return fail(rules::bad_shape(dims_text(in[1].dims), "the kernel of the attributes"));
  }
  window.kernel = kernel;
  CYB_TRY(check_window(window, in[0].rank() - 2));
  const Dim &channels = in[0].dims[1], &o = in[1].dims[0];
  const bool divides = groups >= 1 && (!o.is_constant() || o.constant() % groups == 0);
  if (!divides) return fail(rules::bad_payload("groups"));
  if (!rules::merge(in[1].dims[1] * groups, channels)) {
    return fail(rules::bad_shape(dims_text(in[1].dims), "channels / groups of input 0"));
  }
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_dims(in, 2, std::span(&o, 1)));
  std::vector<Dim> dims = {in[0].dims[0], o};
  for (std::size_t a = 0; a < kernel.size(); ++a) {
    CYB_ASSIGN(Dim out, output_dim(window, a, in[0].dims[2 + a]));
    dims.push_back(std::move(out));
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Problem problem_of(const Shape& x, const Shape& w, const Shape& y, const Window& window,
                   std::size_t groups) {
  Window full = window;
  full.kernel.assign(w.dims().begin() + 2, w.dims().end());
  return {axes_of(full, x.dims().subspan(2), y.dims().subspan(2)), ref::extent(x, 0), groups,
          ref::extent(w, 1), ref::extent(w, 0) / groups};
}

Result<void> run_conv(const RefCall& call, const Window& window, std::int64_t groups) {
  const Problem p = problem_of(call.inputs[0].shape, call.inputs[1].shape, call.outputs[0].shape,
                               window, static_cast<std::size_t>(groups));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), w(call.inputs[1]), b(ref::input(call, 2));
    ref::Outputs<C> y(call.outputs[0]);
    convolve(p, x.data(), w.data(), call.pool,
             [&](std::size_t at, std::size_t o, C sum) { y[at] = b.present() ? sum + b[o] : sum; });
    y.finish();
    return {};
  });
}

}  // namespace cyb::conv
