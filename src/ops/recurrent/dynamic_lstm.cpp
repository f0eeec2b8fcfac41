// DynamicLstm (tag 448): an LSTM whose weights are 8-bit integers and whose activations are rounded
// to 8 bits as they come: x of a sequence at once, h of a sequence at every step (scale and zero as
// DynamicQuantizeLinear finds them). Gate order i, o, f, c. Formula: onnxruntime's
// DynamicQuantizeLSTM, which quantises a whole batch at once: equal for one sequence.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/quant/quantise.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kAttrs = {AttrSpec{"hidden", AttrKind::kU32},
                               AttrSpec{"direction", AttrKind::kU8}};

enum Input : std::size_t { kX, kW, kR, kWScale, kWZero, kRScale, kRZero, kBias, kH0, kC0 };

std::int64_t directions(const Attrs& attrs) {
  return attrs.i(1) == 2 ? 2 : 1;
}

/// [d] or [d, 4h].
Result<void> want_per_gate(Specs in, std::size_t k, const Dim& d, const Dim& gates) {
  if (in[k].rank() == 1) return rules::want_dims(in, k, std::array{d});
  return rules::want_dims(in, k, std::array{d, gates});
}

Result<void> want_weight(Specs in, std::size_t w, std::size_t scale, std::array<Dim, 3> dims) {
  if (in[w].dtype != DType::kI8 && in[w].dtype != DType::kU8)
    return fail(rules::bad_dtype(w, in[w].dtype));
  CYB_TRY(rules::want_dims(in, w, dims));
  CYB_TRY(rules::want_dtype(in, scale, DType::kF32));
  CYB_TRY(rules::want_dtype(in, scale + 1, in[w].dtype));
  CYB_TRY(want_per_gate(in, scale, dims[0], dims[2]));
  return want_per_gate(in, scale + 1, dims[0], dims[2]);
}

Result<std::vector<TensorSpec>> infer_dynamic(const Attrs& attrs, Specs in) {
  const std::int64_t hidden = attrs.i(0);
  if (hidden < 1 || hidden > (std::int64_t{1} << 24)) return fail(rules::bad_payload("hidden"));
  CYB_TRY(rules::want_at_most(attrs, 1, 2, "direction"));
  CYB_TRY(rules::want_dtype(in, kX, DType::kF32));
  CYB_TRY(rules::want_rank(in, kX, 3));
  CYB_TRY(rules::want_rank(in, kW, 3));
  CYB_TRY(rules::want_rank(in, kR, 3));
  const Dim d = directions(attrs), h = hidden, gates = 4 * hidden;
  const Dim &length = in[kX].dims[0], &batch = in[kX].dims[1], &width = in[kX].dims[2];
  CYB_TRY(want_weight(in, kW, kWScale, {d, width, gates}));
  CYB_TRY(want_weight(in, kR, kRScale, {d, h, gates}));
  const std::vector<Dim> state = {d, batch, h};
  for (std::size_t k = kBias; k < in.size(); ++k) {
    if (in[k].absent) continue;
    CYB_TRY(rules::want_dtype(in, k, DType::kF32));
    CYB_TRY(rules::want_dims(in, k, k == kBias ? std::vector{d, Dim(8 * hidden)} : state));
  }
  return std::vector{TensorSpec{DType::kF32, {length, d, batch, h}}, TensorSpec{DType::kF32, state},
                     TensorSpec{DType::kF32, state}};
}

/// Values less their zero point, and the scale.
struct Rounded {
  std::vector<std::int32_t> values;
  float scale = 1;
};

/// `rows` of `width` numbers, `stride` apart, as u8 with one scale and zero.
void round_rows(const float* x, std::size_t rows, std::size_t width, std::size_t stride,
                Rounded& out) {
  float low = 0, high = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < width; ++k) {
      low = std::fmin(low, x[r * stride + k]);
      high = std::fmax(high, x[r * stride + k]);
    }
  }
  out.scale = high == low ? 1.0F : (high - low) / 255.0F;
  const auto zero =
      static_cast<std::int64_t>(std::nearbyint(std::clamp(0.0F - low / out.scale, 0.0F, 255.0F)));
  out.values.resize(rows * width);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const float v = x[i / width * stride + i % width];
    out.values[i] = static_cast<std::int32_t>(quant::quantise<std::uint8_t>(v, out.scale, zero)) -
                    static_cast<std::int32_t>(zero);
  }
}

/// One direction of W or R: [K, 4h] less its zero points, and the scale of each column.
struct Weights {
  std::size_t gates;
  std::vector<std::int32_t> values;
  std::vector<float> scales;

  Weights(const RefCall& call, std::size_t w, std::size_t scale, std::size_t dir) {
    const TensorView &view = call.inputs[w], &s = call.inputs[scale], &z = call.inputs[scale + 1];
    gates = ref::extent(view.shape, 2);
    const std::size_t n = ref::extent(view.shape, 1) * gates;
    const auto place = [&](const TensorView& of, std::size_t column) {
      return of.shape.rank() == 1 ? dir : dir * gates + column;
    };
    std::vector<std::int32_t> zeros(gates);
    for (std::size_t j = 0; j < gates; ++j) {
      scales.push_back(s.as<float>()[place(s, j)]);
      zeros[j] = static_cast<std::int32_t>(ref::integer_at(z, place(z, j)));
    }
    values.resize(n);
    for (std::size_t i = 0; i < n; ++i)
      values[i] = static_cast<std::int32_t>(ref::integer_at(view, dir * n + i)) - zeros[i % gates];
  }

  /// out[j] += scale · Σ_k x[k]·w[k, j], the sum in integers.
  void add_product(const std::int32_t* x, std::size_t k_count, float x_scale,
                   std::vector<std::int32_t>& sums, float* out) const {
    std::ranges::fill(sums, 0);
    for (std::size_t k = 0; k < k_count; ++k) {
      const std::int32_t* row = values.data() + k * gates;
      const auto a = static_cast<std::uint32_t>(x[k]);
      for (std::size_t j = 0; j < gates; ++j) {  // wraps, as integer products do everywhere
        sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) +
                                            a * static_cast<std::uint32_t>(row[j]));
      }
    }
    for (std::size_t j = 0; j < gates; ++j)
      out[j] += static_cast<float>(sums[j]) * (x_scale * scales[j]);
  }
};

float sigmoid(float x) {
  return static_cast<float>(math::sigmoid_f64(static_cast<double>(x)));
}
float tanh_of(float x) {
  return static_cast<float>(math::tanh_f64(static_cast<double>(x)));
}

/// c = f·c + i·c~; h = o·tanh(c).
void cell(const std::vector<float>& gates, std::vector<float>& h, std::vector<float>& c) {
  const std::size_t n = h.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float in = sigmoid(gates[i]), out = sigmoid(gates[n + i]),
                forget = sigmoid(gates[2 * n + i]), candidate = tanh_of(gates[3 * n + i]);
    c[i] = forget * c[i] + in * candidate;
    h[i] = out * tanh_of(c[i]);
  }
}

Result<void> reference_dynamic(const RefCall& call) {
  const Shape& xs = call.inputs[kX].shape;
  const std::size_t length = ref::extent(xs, 0), batch = ref::extent(xs, 1),
                    width = ref::extent(xs, 2), n = call.attrs.u32(0),
                    dirs = static_cast<std::size_t>(directions(call.attrs));
  const auto* x = call.inputs[kX].as<float>();
  const TensorView bias = ref::input(call, kBias), h0 = ref::input(call, kH0),
                   c0 = ref::input(call, kC0);
  auto* y = call.outputs[0].as<float>();
  Rounded xq, hq;
  std::vector<float> gates(4 * n), h(n), c(n);
  std::vector<std::int32_t> sums(4 * n);
  for (std::size_t dir = 0; dir < dirs; ++dir) {
    const Weights w(call, kW, kWScale, dir), r(call, kR, kRScale, dir);
    const bool backward = dir == 1 || call.attrs.i(1) == 1;
    for (std::size_t s = 0; s < batch; ++s) {
      const std::size_t slot = (dir * batch + s) * n;
      const auto start = [&](const TensorView& from, std::vector<float>& to) {
        std::ranges::fill(to, 0.0F);
        if (from.present()) std::copy_n(from.as<float>() + slot, n, to.begin());
      };
      start(h0, h);
      start(c0, c);
      round_rows(x + s * width, length, width, batch * width, xq);
      for (std::size_t k = 0; k < length; ++k) {
        const std::size_t t = backward ? length - 1 - k : k;
        const float* b = bias.present() ? bias.as<float>() + dir * 8 * n : nullptr;
        for (std::size_t j = 0; j < 4 * n; ++j)
          gates[j] = b == nullptr ? 0.0F : b[j] + b[4 * n + j];
        w.add_product(xq.values.data() + t * width, width, xq.scale, sums, gates.data());
        round_rows(h.data(), 1, n, n, hq);
        r.add_product(hq.values.data(), n, hq.scale, sums, gates.data());
        cell(gates, h, c);
        std::copy_n(h.begin(), n, y + ((t * dirs + dir) * batch + s) * n);
      }
      std::copy_n(h.begin(), n, call.outputs[1].as<float>() + slot);
      std::copy_n(c.begin(), n, call.outputs[2].as<float>() + slot);
    }
  }
  return {};
}

}  // namespace

OpImpl impl_DynamicLstm() {
  return {.attrs = kAttrs, .infer = infer_dynamic, .reference = reference_dynamic};
}

}  // namespace cyb
