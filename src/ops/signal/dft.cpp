// Dft (tag 429), Stft (430), Window (431), MelWeightMatrix (432): sums by definition in f64, with
// angles reduced modulo the length before sine and cosine, rounded once.
#include <algorithm>
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr double kTwoPi = 0x1.921FB54442D18p+2;
constexpr std::int64_t kMaxLength = std::int64_t{1} << 31;

struct Complex {
  double re = 0.0, im = 0.0;
};

/// e^(2 pi i k / n), k = 0..n-1.
std::vector<math::SinCos> circle(std::size_t n) {
  std::vector<math::SinCos> out(n);
  for (std::size_t k = 0; k < n; ++k)
    out[k] = math::sincos_f64(kTwoPi * static_cast<double>(k) / static_cast<double>(n));
  return out;
}

/// Bin k of the transform of x (zero padded or cut to n = turns.size()); the sign of the exponent
/// is -1 forward, +1 inverse.
Complex bin(std::span<const Complex> x, std::span<const math::SinCos> turns, std::size_t k,
            bool inverse) {
  Complex sum;
  const std::size_t n = turns.size();
  for (std::size_t t = 0; t < std::min(x.size(), n); ++t) {
    const math::SinCos& w = turns[k * t % n];
    const double sine = inverse ? w.sin : -w.sin;
    sum.re += x[t].re * w.cos - x[t].im * sine;
    sum.im += x[t].re * sine + x[t].im * w.cos;
  }
  return sum;
}

constexpr std::array kDftAttrs = {AttrSpec{"inverse", AttrKind::kU8},
                                  AttrSpec{"onesided", AttrKind::kU8}};

struct DftPlan {
  std::size_t axis, length;  // transform length
  std::int64_t out;          // along the axis
  std::int64_t parts;        // 1 real, 2 complex
};

Result<DftPlan> plan_dft(const Attrs& attrs, std::int64_t given_axis,
                         std::optional<std::int64_t> given, const TensorSpec& x) {
  CYB_ASSIGN(const std::size_t axis, rules::axis(given_axis, x.rank(), "axis"));
  if (axis + 1 == x.rank() || !x.dims[axis].is_constant()) return fail(rules::bad_payload("axis"));
  const bool inverse = attrs.i(0) != 0, onesided = attrs.i(1) != 0;
  const std::int64_t n = x.dims[axis].constant();
  const std::int64_t length = given ? *given : (inverse && onesided ? 2 * (n - 1) : n);
  if (length < 1 || length > kMaxLength) return fail(invalid_input("Op::Dft: a bad length"));
  const bool half = onesided && !inverse;
  return DftPlan{axis, static_cast<std::size_t>(length), half ? length / 2 + 1 : length,
                 onesided && inverse ? 1 : 2};
}

Result<std::vector<TensorSpec>> infer_dft(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (!in[k].absent) CYB_TRY(rules::want_list(in, k));
  }
  const bool has_length = !rules::at(in, 1).absent, has_axis = !rules::at(in, 2).absent;
  const auto length = rules::constants_of(in, 1), axis = rules::constants_of(in, 2);
  std::vector<Dim> dims = in[0].dims;
  dims.back() = attrs.i(0) != 0 && attrs.i(1) != 0 ? 1 : 2;
  if (has_axis && !axis) {
    std::fill(dims.begin(), dims.end() - 1, Dim::anonymous());
    return rules::one(in[0].dtype, std::move(dims));
  }
  CYB_ASSIGN(const std::size_t a, rules::axis(has_axis ? (*axis)[0] : -2, in[0].rank(), "axis"));
  if ((has_length && !length) || !in[0].dims[a].is_constant()) {
    dims[a] = Dim::anonymous();
  } else {
    CYB_ASSIGN(const DftPlan p,
               plan_dft(attrs, static_cast<std::int64_t>(a),
                        has_length ? std::optional((*length)[0]) : std::nullopt, in[0]));
    dims[a] = p.out;
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Complex element(const TensorView& x, std::size_t at, std::size_t parts) {
  return {ref::number_at(x, at * parts), parts == 2 ? ref::number_at(x, at * parts + 1) : 0.0};
}

/// The half spectrum continued by conjugates to n bins.
void mirror(std::vector<Complex>& line, std::size_t n) {
  line.resize(n / 2 + 1);
  line.resize(n);
  for (std::size_t k = n / 2 + 1; k < n; ++k) line[k] = {line[n - k].re, -line[n - k].im};
  line[0].im = 0.0;
  if (n % 2 == 0) line[n / 2].im = 0.0;
}

Result<void> reference_dft(const RefCall& call) {
  const TensorView &x = call.inputs[0], length = ref::input(call, 1), axis = ref::input(call, 2);
  CYB_ASSIGN(const DftPlan p,
             plan_dft(call.attrs, axis.present() ? ref::integer_at(axis, 0) : -2,
                      length.present() ? std::optional(ref::integer_at(length, 0)) : std::nullopt,
                      TensorSpec::of(x.dtype, x.shape)));
  const bool inverse = call.attrs.i(0) != 0, onesided = call.attrs.i(1) != 0;
  const auto parts = static_cast<std::size_t>(x.shape.back());
  const Shape signal(x.shape.dims().first(x.shape.rank() - 1));
  const ref::AxisView in(signal, p.axis);
  const auto turns = circle(p.length);
  const auto out_n = static_cast<std::size_t>(p.out), out_parts = static_cast<std::size_t>(p.parts);
  const double scale = inverse ? 1.0 / static_cast<double>(p.length) : 1.0;
  return ref::visit_real(x.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    std::vector<Complex> line(in.n);
    for (std::size_t l = 0; l < in.lines(); ++l) {
      line.resize(in.n);
      for (std::size_t t = 0; t < in.n; ++t) line[t] = element(x, in.base(l) + t * in.inner, parts);
      if (inverse && onesided) mirror(line, p.length);
      for (std::size_t k = 0; k < out_n; ++k) {
        const Complex c = bin(line, turns, k, inverse);
        const std::size_t at = ((l / in.inner * out_n + k) * in.inner + l % in.inner) * out_parts;
        y[at] = static_cast<C>(c.re * scale);
        if (out_parts == 2) y[at + 1] = static_cast<C>(c.im * scale);
      }
    }
    y.finish();
    return {};
  });
}

constexpr std::array kStftAttrs = {AttrSpec{"onesided", AttrKind::kU8}};

/// frame length: input 3's, else the window's.
std::optional<std::int64_t> frame_length(Specs in) {
  if (const auto frame = rules::constants_of(in, 3); frame && frame->size() == 1)
    return (*frame)[0];
  if (!rules::at(in, 3).absent || rules::at(in, 2).absent) return std::nullopt;
  return rules::length_of(in, 2);
}

Result<std::vector<TensorSpec>> infer_stft(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_list(in, 1));
  const bool has_window = !rules::at(in, 2).absent, has_frame = !rules::at(in, 3).absent;
  if (has_window) CYB_TRY(rules::want_rank(in, 2, 1));
  if (has_frame) CYB_TRY(rules::want_list(in, 3));
  if (!has_window && !has_frame)
    return fail(rules::bad_count(in.size(), "a window or a frame length"));
  const auto frame = frame_length(in);
  const auto step = rules::constants_of(in, 1);
  if (frame && (*frame < 1 || *frame > kMaxLength))
    return fail(invalid_input("Op::Stft: a bad frame length"));
  if (step && (step->size() != 1 || (*step)[0] < 1))
    return fail(invalid_input("Op::Stft: a bad step"));
  if (frame && has_window && certainly_differ(in[2].dims[0], Dim(*frame))) {
    return fail(rules::bad_shape(dims_text(in[2].dims), "the frame length"));
  }
  Dim frames = Dim::anonymous();
  if (frame && step && in[0].dims[1].is_constant()) {
    if (in[0].dims[1].constant() < *frame)
      return fail(rules::bad_shape(dims_text(in[0].dims), "room for a frame"));
    frames = (in[0].dims[1].constant() - *frame) / (*step)[0] + 1;
  }
  const Dim bins = frame ? Dim(attrs.i(0) != 0 ? *frame / 2 + 1 : *frame) : Dim::anonymous();
  return rules::one(in[0].dtype, {in[0].dims[0], frames, bins, 2});
}

Result<void> reference_stft(const RefCall& call) {
  const TensorView &x = call.inputs[0], window = ref::input(call, 2), frame = ref::input(call, 3);
  const std::int64_t step = ref::integer_at(call.inputs[1], 0);
  const std::int64_t n = frame.present() ? ref::integer_at(frame, 0) : window.shape.count();
  const auto length = ref::extent(x.shape, 1), parts = ref::extent(x.shape, 2),
             size = static_cast<std::size_t>(n);
  const std::size_t frames = ref::extent(call.outputs[0].shape, 1),
                    bins = ref::extent(call.outputs[0].shape, 2);
  const auto turns = circle(size);
  return ref::visit_real(x.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    std::vector<Complex> line(size);
    for (std::size_t f = 0; f < ref::extent(x.shape, 0) * frames; ++f) {
      const std::size_t begin = f / frames * length + f % frames * static_cast<std::size_t>(step);
      for (std::size_t t = 0; t < size; ++t) {
        const double w = window.present() ? ref::number_at(window, t) : 1.0;
        const Complex v = element(x, begin + t, parts);
        line[t] = {v.re * w, v.im * w};
      }
      for (std::size_t k = 0; k < bins; ++k) {
        const Complex c = bin(line, turns, k, false);
        y[(f * bins + k) * 2] = static_cast<C>(c.re);
        y[(f * bins + k) * 2 + 1] = static_cast<C>(c.im);
      }
    }
    y.finish();
    return {};
  });
}

constexpr std::array kWindowAttrs = {AttrSpec{"kind", AttrKind::kU8},
                                     AttrSpec{"periodic", AttrKind::kU8},
                                     AttrSpec{"dtype", AttrKind::kU8}};

Result<DType> number_dtype(const Attrs& attrs, std::size_t k) {
  const auto dtype = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(k)));
  if (!dtype || !rules::is_number(*dtype)) return fail(rules::bad_payload("dtype"));
  return *dtype;
}

Result<std::vector<TensorSpec>> infer_window(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 2, "kind"));
  CYB_ASSIGN(const DType dtype, number_dtype(attrs, 2));
  CYB_TRY(rules::want_list(in, 0));
  const auto* size = rules::value_of(in, 0);
  if (size == nullptr) return rules::one(dtype, {Dim::anonymous()});
  const bool one =
      size->size() == 1 && !((*size)[0].is_constant() &&
                             ((*size)[0].constant() < 0 || (*size)[0].constant() > kMaxLength));
  if (!one) return fail(rules::bad_shape(dims_text(*size), "one length"));
  return rules::one(dtype, {(*size)[0]});
}

Result<void> reference_window(const RefCall& call) {
  static constexpr std::array<std::array<double, 3>, 3> kTerms = {
      {{0.5, 0.5, 0.0}, {25.0 / 46.0, 21.0 / 46.0, 0.0}, {0.42, 0.5, 0.08}}};
  const auto& a = kTerms[static_cast<std::size_t>(call.attrs.i(0))];
  const auto n = static_cast<std::size_t>(call.outputs[0].shape.count());
  const double period = static_cast<double>(n) - (call.attrs.i(1) != 0 ? 0.0 : 1.0);
  return ref::visit_number(call.outputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < n; ++i) {
      const double angle = period > 0.0 ? kTwoPi * static_cast<double>(i) / period : 0.0;
      y[i] = static_cast<C>(a[0] - a[1] * math::sincos_f64(angle).cos +
                            a[2] * math::sincos_f64(2.0 * angle).cos);
    }
    y.finish();
    return {};
  });
}

constexpr std::array kMelAttrs = {AttrSpec{"dtype", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_mel(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const DType dtype, number_dtype(attrs, 0));
  for (std::size_t k = 0; k < 3; ++k) CYB_TRY(rules::want_list(in, k));
  for (std::size_t k = 3; k < 5; ++k) CYB_TRY(rules::want_real(in, k));
  const auto mels = rules::constants_of(in, 0), length = rules::constants_of(in, 1);
  const auto bad = [](const auto& v) {
    return v && (v->size() != 1 || (*v)[0] < 1 || (*v)[0] > kMaxLength);
  };
  if (bad(mels) || bad(length)) return fail(invalid_input("Op::MelWeightMatrix: a bad length"));
  return rules::one(dtype, {length ? Dim((*length)[0] / 2 + 1) : Dim::anonymous(),
                            mels ? Dim((*mels)[0]) : Dim::anonymous()});
}

/// Bins of the mel edges: 2595 log10(1 + f/700) in equal steps.
std::vector<std::int64_t> mel_edges(const RefCall& call, std::size_t mels) {
  const double low = ref::number_at(call.inputs[3], 0), high = ref::number_at(call.inputs[4], 0);
  const auto length = static_cast<double>(ref::integer_at(call.inputs[1], 0)),
             rate = static_cast<double>(ref::integer_at(call.inputs[2], 0));
  const double ln10 = math::log_f64(10.0);
  const auto mel = [&](double f) { return 2595.0 * math::log1p_f64(f / 700.0) / ln10; };
  const double step = (mel(high) - mel(low)) / static_cast<double>(mels + 2);
  std::vector<std::int64_t> edges;
  for (std::size_t i = 0; i < mels + 2; ++i) {
    const double hz =
        700.0 * math::expm1_f64((mel(low) + static_cast<double>(i) * step) / 2595.0 * ln10);
    edges.push_back(static_cast<std::int64_t>(std::floor((length + 1.0) * hz / rate)));
  }
  return edges;
}

Result<void> reference_mel(const RefCall& call) {
  const Shape& out = call.outputs[0].shape;
  const auto mels = ref::extent(out, 1);
  const double top = ref::number_at(call.inputs[4], 0), rate = ref::number_at(call.inputs[2], 0);
  const bool sane =
      rate > 0.0 && top >= 0.0 && top < 1e9 && ref::number_at(call.inputs[3], 0) >= 0.0;
  if (!sane) return fail(invalid_input("Op::MelWeightMatrix: bad frequencies"));
  const std::vector<std::int64_t> edges = mel_edges(call, mels);
  return ref::visit_number(call.outputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto j = static_cast<std::int64_t>(i / mels);
      const std::size_t m = i % mels;
      const std::int64_t left = edges[m], centre = edges[m + 1], right = edges[m + 2];
      double v = 0.0;
      if (j >= left && j <= centre && centre > left)
        v = static_cast<double>(j - left) / static_cast<double>(centre - left);
      if (centre == left && j == centre) v = 1.0;
      if (j >= centre && j < right)
        v = static_cast<double>(right - j) / static_cast<double>(right - centre);
      y[i] = static_cast<C>(v);
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_Dft() {
  return {.attrs = kDftAttrs, .infer = infer_dft, .reference = reference_dft};
}
OpImpl impl_Stft() {
  return {.attrs = kStftAttrs, .infer = infer_stft, .reference = reference_stft};
}
OpImpl impl_Window() {
  return {.attrs = kWindowAttrs, .infer = infer_window, .reference = reference_window};
}
OpImpl impl_MelWeightMatrix() {
  return {.attrs = kMelAttrs, .infer = infer_mel, .reference = reference_mel};
}

}  // namespace cyb
