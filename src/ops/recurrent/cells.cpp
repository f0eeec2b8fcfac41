// ONNX's recurrent layers: Rnn (tag 426), Gru (427), LstmFull (428), and Lstm (301). x [L,B,I] (or
// [B,L,I] with batch_first), W [d,g·h,I], R [d,g·h,h], b [d,2g·h]?, lengths [B]?, h0 [d,B,h]?.
#include <algorithm>
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Activation : std::int64_t {
  kRelu,
  kTanh,
  kSigmoid,
  kAffine,
  kLeaky,
  kThresholded,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
  kLast = kSoftplus
};

struct Function {
  std::int64_t kind;
  double alpha, beta;
  double operator()(double x) const {
    switch (kind) {
      case kRelu:
        return x < 0.0 ? 0.0 : x;
      case kTanh:
        return math::tanh_f64(x);
      case kSigmoid:
        return math::sigmoid_f64(x);
      case kAffine:
        return alpha * x + beta;
      case kLeaky:
        return x < 0.0 ? alpha * x : x;
      case kThresholded:
        return x > alpha ? x : 0.0;
      case kScaledTanh:
        return alpha * math::tanh_f64(beta * x);
      case kHardSigmoid:
        return std::fmin(std::fmax(alpha * x + beta, 0.0), 1.0);
      case kElu:
        return x > 0.0 ? x : alpha * math::expm1_f64(x);
      case kSoftsign:
        return x / (1.0 + std::fabs(x));
      default:
        return math::softplus_f64(x);
    }
  }
};

enum class Cell : std::uint8_t { kRnn, kGru, kLstm };

struct Layer {
  Cell cell;
  std::size_t gates, functions;  // of one direction
};
constexpr Layer kRnnLayer{Cell::kRnn, 1, 1}, kGruLayer{Cell::kGru, 3, 2},
    kLstmLayer{Cell::kLstm, 4, 3};

struct Options {
  std::size_t hidden, directions;
  bool reverse_first, batch_first, flag;  // flag: linear_before_reset or input_forget
  double clip;
  std::vector<Function> functions;
};

constexpr std::array kRnnAttrs = {AttrSpec{"hidden", AttrKind::kU32},
                                  AttrSpec{"direction", AttrKind::kU8},
                                  AttrSpec{"activations", AttrKind::kU32List},
                                  AttrSpec{"alpha_beta", AttrKind::kBytes},
                                  AttrSpec{"clip", AttrKind::kF32},
                                  AttrSpec{"batch_first", AttrKind::kU8}};
constexpr std::array kGruAttrs = {kRnnAttrs[0],
                                  kRnnAttrs[1],
                                  kRnnAttrs[2],
                                  kRnnAttrs[3],
                                  kRnnAttrs[4],
                                  kRnnAttrs[5],
                                  AttrSpec{"linear_before_reset", AttrKind::kU8}};
constexpr std::array kLstmAttrs = {kRnnAttrs[0],
                                   kRnnAttrs[1],
                                   kRnnAttrs[2],
                                   kRnnAttrs[3],
                                   kRnnAttrs[4],
                                   kRnnAttrs[5],
                                   AttrSpec{"input_forget", AttrKind::kU8}};

/// Defaults: Tanh; Sigmoid, Tanh; Sigmoid, Tanh, Tanh.
std::vector<Function> default_functions(const Layer& layer, std::size_t directions) {
  std::vector<Function> out;
  for (std::size_t i = 0; i < directions * layer.functions; ++i) {
    const bool gate = layer.functions > 1 && i % layer.functions == 0;
    out.push_back({gate ? kSigmoid : kTanh, 0.0, 0.0});
  }
  return out;
}

float pair_value(const std::vector<std::byte>& bytes, std::size_t k) {
  float v = 0;
  if ((k + 1) * sizeof(float) <= bytes.size())
    std::memcpy(&v, bytes.data() + k * sizeof(float), sizeof(float));
  return v;
}

Result<Options> options_of(const Layer& layer, const Attrs& attrs) {
  if (attrs.i(0) < 1 || attrs.i(0) > (std::int64_t{1} << 24))
    return fail(rules::bad_payload("hidden"));
  CYB_TRY(rules::want_at_most(attrs, 1, 2, "direction"));
  Options o{static_cast<std::size_t>(attrs.i(0)),
            attrs.i(1) == 2 ? 2u : 1u,
            attrs.i(1) == 1,
            attrs.i(5) != 0,
            attrs.values.size() > 6 && attrs.i(6) != 0,
            static_cast<double>(attrs.f(4)),
            {}};
  const auto& kinds = attrs.list(2);
  o.functions = default_functions(layer, o.directions);
  if (kinds.empty()) return o;
  if (kinds.size() != o.functions.size()) return fail(rules::bad_payload("activations"));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] > kLast) return fail(rules::bad_payload("activations"));
    o.functions[i] = {kinds[i], static_cast<double>(pair_value(attrs.bytes(3), 2 * i)),
                      static_cast<double>(pair_value(attrs.bytes(3), 2 * i + 1))};
  }
  return o;
}

/// Which input is what; absent ones are past the end.
struct Slots {
  std::size_t bias = 3, lengths = 4, h0 = 5, c0 = 6, peepholes = 7;
};

Result<std::vector<TensorSpec>> infer_layer(const Layer& layer, const Options& o, Specs in,
                                            const Slots& slots) {
  CYB_TRY(rules::want_real(in, 0));
  for (std::size_t k = 0; k < 3; ++k) {
    CYB_TRY(rules::want_rank(in, k, 3));
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
  }
  const Dim d = static_cast<std::int64_t>(o.directions), h = static_cast<std::int64_t>(o.hidden);
  const auto gates = static_cast<std::int64_t>(layer.gates);
  const Dim &length = in[0].dims[o.batch_first ? 1 : 0], &batch = in[0].dims[o.batch_first ? 0 : 1];
  CYB_TRY(rules::want_dims(in, 1, std::array{d, h * gates, in[0].dims[2]}));
  CYB_TRY(rules::want_dims(in, 2, std::array{d, h * gates, h}));
  const auto given = [&](std::size_t k) { return !rules::at(in, k).absent; };
  for (std::size_t k = 3; k < in.size(); ++k) {
    if (!in[k].absent && k != slots.lengths) CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
  }
  const std::vector<Dim> state =
      o.batch_first ? std::vector{batch, d, h} : std::vector{d, batch, h};
  if (given(slots.bias)) CYB_TRY(rules::want_dims(in, slots.bias, std::array{d, h * (2 * gates)}));
  if (given(slots.lengths)) {
    CYB_TRY(rules::want_index(in, slots.lengths));
    CYB_TRY(rules::want_dims(in, slots.lengths, std::array{batch}));
  }
  if (given(slots.h0)) CYB_TRY(rules::want_dims(in, slots.h0, state));
  const bool lstm = layer.cell == Cell::kLstm;
  if (lstm && given(slots.c0)) CYB_TRY(rules::want_dims(in, slots.c0, state));
  if (lstm && given(slots.peepholes))
    CYB_TRY(rules::want_dims(in, slots.peepholes, std::array{d, h * 3}));
  const std::vector<Dim> y =
      o.batch_first ? std::vector{batch, length, d, h} : std::vector{length, d, batch, h};
  std::vector out = {TensorSpec{in[0].dtype, y}, TensorSpec{in[0].dtype, state}};
  if (lstm) out.push_back(TensorSpec{in[0].dtype, state});
  return out;
}

/// One direction's parameters and one sequence's state.
template <class C>
struct Direction {
  const Options& o;
  const Layer& layer;
  const C *w, *r, *b, *p;  // b, p may be null
  std::size_t input_width;
  std::span<const Function> f;

  /// W x + bias of gate row `row`.
  C input_part(std::size_t row, const C* x) const {
    ref::Sum<C> sum;
    for (std::size_t k = 0; k < input_width; ++k) sum.add(x[k] * w[row * input_width + k]);
    return b != nullptr ? sum.value() + b[row] : sum.value();
  }
  C recurrent_part(std::size_t row, const C* h) const {
    ref::Sum<C> sum;
    for (std::size_t k = 0; k < o.hidden; ++k) sum.add(h[k] * r[row * o.hidden + k]);
    return b != nullptr ? sum.value() + b[layer.gates * o.hidden + row] : sum.value();
  }
  C apply(std::size_t which, C v) const {
    auto x = static_cast<double>(v);
    if (o.clip > 0.0) x = std::fmin(std::fmax(x, -o.clip), o.clip);
    return static_cast<C>(f[which](x));
  }
};

template <class C>
void rnn_step(const Direction<C>& d, const C* x, std::vector<C>& h) {
  std::vector<C> next(h.size());
  for (std::size_t i = 0; i < h.size(); ++i)
    next[i] = d.apply(0, d.input_part(i, x) + d.recurrent_part(i, h.data()));
  h = std::move(next);
}

/// z, r, h: H = (1 - z)·h~ + z·H.
template <class C>
void gru_step(const Direction<C>& d, const C* x, std::vector<C>& h) {
  const std::size_t n = h.size();
  std::vector<C> z(n), r(n), reset(n), next(n);
  for (std::size_t i = 0; i < n; ++i) {
    z[i] = d.apply(0, d.input_part(i, x) + d.recurrent_part(i, h.data()));
    r[i] = d.apply(0, d.input_part(n + i, x) + d.recurrent_part(n + i, h.data()));
    reset[i] = r[i] * h[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    const C from_x = d.input_part(2 * n + i, x);
    const C from_h = d.o.flag ? r[i] * d.recurrent_part(2 * n + i, h.data())
                              : d.recurrent_part(2 * n + i, reset.data());
    const C candidate = d.apply(1, from_x + from_h);
    next[i] = (C{1} - z[i]) * candidate + z[i] * h[i];
  }
  h = std::move(next);
}

/// i, o, f, c with peepholes: C = f·C + i·c~; H = o·g(C).
template <class C>
void lstm_step(const Direction<C>& d, const C* x, std::vector<C>& h, std::vector<C>& c) {
  const std::size_t n = h.size();
  std::vector<C> next(n);
  const auto gate = [&](std::size_t g, std::size_t i) {
    return d.input_part(g * n + i, x) + d.recurrent_part(g * n + i, h.data());
  };
  const auto peep = [&](std::size_t g, std::size_t i, C cell) {
    return d.p != nullptr ? d.p[g * n + i] * cell : C{0};
  };
  for (std::size_t i = 0; i < n; ++i) {
    const C in = d.apply(0, gate(0, i) + peep(0, i, c[i]));
    const C forget = d.o.flag ? C{1} - in : d.apply(0, gate(2, i) + peep(2, i, c[i]));
    const C candidate = d.apply(1, gate(3, i));
    const C cell = forget * c[i] + in * candidate;
    const C out = d.apply(0, gate(1, i) + peep(1, i, cell));
    c[i] = cell;
    next[i] = out * d.apply(2, cell);
  }
  h = std::move(next);
}

template <class C>
Result<void> run_layer(const RefCall& call, const Layer& layer, const Options& o,
                       const Slots& slots) {
  const Shape& xs = call.inputs[0].shape;
  const std::size_t length = ref::extent(xs, o.batch_first ? 1 : 0),
                    batch = ref::extent(xs, o.batch_first ? 0 : 1), width = ref::extent(xs, 2),
                    n = o.hidden, dirs = o.directions;
  const ref::Elements<C> x(call.inputs[0]), w(call.inputs[1]), r(call.inputs[2]),
      b(ref::input(call, slots.bias)), h0(ref::input(call, slots.h0)),
      c0(ref::input(call, slots.c0)), p(ref::input(call, slots.peepholes));
  const std::vector<std::int64_t> lengths = ref::integers(ref::input(call, slots.lengths));
  const bool lstm = layer.cell == Cell::kLstm;
  ref::Outputs<C> y(call.outputs[0]), yh(call.outputs[1]), yc(call.outputs[lstm ? 2 : 1]);
  std::fill_n(y.data(), y.size(), C{0});
  for (std::size_t line = 0; line < dirs * batch; ++line) {
    const std::size_t dir = line / batch, s = line % batch;
    const std::size_t rows = layer.gates * n;
    const Direction<C> d{o,
                         layer,
                         w.data() + dir * rows * width,
                         r.data() + dir * rows * n,
                         b.present() ? b.data() + dir * 2 * rows : nullptr,
                         lstm && p.present() ? p.data() + dir * 3 * n : nullptr,
                         width,
                         std::span(o.functions).subspan(dir * layer.functions, layer.functions)};
    const std::size_t slot = (o.batch_first ? s * dirs + dir : line) * n;
    std::vector<C> h(n), c(n);
    if (h0.present()) std::copy_n(h0.data() + slot, n, h.begin());
    if (lstm && c0.present()) std::copy_n(c0.data() + slot, n, c.begin());
    const auto steps = lengths.empty() ? length
                                       : static_cast<std::size_t>(std::clamp<std::int64_t>(
                                             lengths[s], 0, static_cast<std::int64_t>(length)));
    const bool backward = dir == 1 || o.reverse_first;
    for (std::size_t k = 0; k < steps; ++k) {
      const std::size_t t = backward ? steps - 1 - k : k;
      const C* row = x.data() + (o.batch_first ? s * length + t : t * batch + s) * width;
      if (layer.cell == Cell::kRnn) rnn_step(d, row, h);
      if (layer.cell == Cell::kGru) gru_step(d, row, h);
      if (lstm) lstm_step(d, row, h, c);
      const std::size_t at =
          o.batch_first ? (s * length + t) * dirs + dir : (t * dirs + dir) * batch + s;
      std::copy_n(h.begin(), n, y.data() + at * n);
    }
    std::copy_n(h.begin(), n, yh.data() + slot);
    if (lstm) std::copy_n(c.begin(), n, yc.data() + slot);
  }
  y.finish();
  yh.finish();
  if (lstm) yc.finish();
  return {};
}

template <const Layer& L>
Result<std::vector<TensorSpec>> infer_onnx(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const Options o, options_of(L, attrs));
  return infer_layer(L, o, in, {});
}

template <const Layer& L>
Result<void> reference_onnx(const RefCall& call) {
  CYB_ASSIGN(const Options o, options_of(L, call.attrs));
  return ref::visit_real(call.inputs[0].dtype,
                         [&]<class C>(ref::Type<C>) { return run_layer<C>(call, L, o, {}); });
}

constexpr std::array kPlainAttrs = {AttrSpec{"hidden", AttrKind::kU32},
                                    AttrSpec{"bidirectional", AttrKind::kU8}};
constexpr Slots kPlainSlots{3, 99, 4, 5, 99};

Result<Options> plain_options(const Attrs& attrs) {
  if (attrs.i(0) < 1 || attrs.i(0) > (std::int64_t{1} << 24))
    return fail(rules::bad_payload("hidden"));
  const std::size_t directions = attrs.i(1) != 0 ? 2 : 1;
  return Options{static_cast<std::size_t>(attrs.i(0)),     directions, false, false, false, 0.0,
                 default_functions(kLstmLayer, directions)};
}

Result<std::vector<TensorSpec>> infer_plain(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const Options o, plain_options(attrs));
  return infer_layer(kLstmLayer, o, in, kPlainSlots);
}

Result<void> reference_plain(const RefCall& call) {
  CYB_ASSIGN(const Options o, plain_options(call.attrs));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) {
    return run_layer<C>(call, kLstmLayer, o, kPlainSlots);
  });
}

}  // namespace

OpImpl impl_Rnn() {
  return {
      .attrs = kRnnAttrs, .infer = infer_onnx<kRnnLayer>, .reference = reference_onnx<kRnnLayer>};
}
OpImpl impl_Gru() {
  return {
      .attrs = kGruAttrs, .infer = infer_onnx<kGruLayer>, .reference = reference_onnx<kGruLayer>};
}
OpImpl impl_LstmFull() {
  return {.attrs = kLstmAttrs,
          .infer = infer_onnx<kLstmLayer>,
          .reference = reference_onnx<kLstmLayer>};
}
OpImpl impl_Lstm() {
  return {.attrs = kPlainAttrs, .infer = infer_plain, .reference = reference_plain};
}

}  // namespace cyb
