// DynamicLstm with stored weights: x of a line is rounded to bytes at once, h at every step, and
// the sums of products are the reference's integers. A thread takes whole lines.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/steps_elements.hpp"
#include "backends/cpu/steps_recurrent.hpp"

namespace cyb::cpu {
namespace {

enum Input : std::size_t { kX, kW, kR, kWScale, kWZero, kRScale, kRZero, kBias, kH0, kC0 };

constexpr std::size_t kTimes = 32;  // steps whose products with x are made at once

/// A stored weight [d, K, 4h] as panels, one set a direction; its scales are read in the run.
struct PairWeights {
  std::vector<Buffer> directions;
  std::size_t k = 0;
  Operand scale;  // [d] or [d, 4h]

  std::size_t n_pairs() const noexcept { return (k + 1) / 2; }
};

class DynamicLstmStep final : public PlainStep {
 public:
  DynamicLstmStep(const Step& step, const RecurrentShape& shape, PairWeights w, PairWeights r,
                  Build& build)
      : s_(shape),
        w_(std::move(w)),
        r_(std::move(r)),
        x_(step.inputs[kX]),
        bias_(operand_or_none(step, kBias)),
        h0_(operand_or_none(step, kH0)),
        c0_(operand_or_none(step, kC0)),
        outputs_(step.outputs) {
    Carver count(nullptr);
    carve(count);
    build.want_thread(count.bytes());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    Carver carver(run.thread_scratch[thread]);
    const Room room = carve(carver);
    for (Share s(s_.lines(), thread, run.n_threads); s.begin < s.end; ++s.begin)
      line(run, s.begin, room);
  }

 private:
  struct Room {
    std::int32_t *x_words, *h_words;  // [kTimes][pairs of I], [pairs of h]
    std::int32_t *x_sums, *h_sums;    // [kTimes][4h], [4h], whole blocks
    std::uint8_t* bytes;              // [max(I, h)]
    float *bias, *gates, *h, *c;
  };
  /// How numbers became bytes.
  struct Scale {
    float scale;
    std::int32_t zero;
  };

  std::size_t gates() const noexcept { return 4 * s_.hidden; }
  std::size_t padded() const noexcept { return round_up(gates(), kPairColumns); }

  Room carve(Carver& carver) const noexcept {
    const std::size_t n = s_.hidden;
    return {carver.take<std::int32_t>(kTimes * w_.n_pairs()),
            carver.take<std::int32_t>(r_.n_pairs()),
            carver.take<std::int32_t>(kTimes * padded()),
            carver.take<std::int32_t>(padded()),
            carver.take<std::uint8_t>(std::max(s_.width, n)),
            carver.take<float>(2 * gates()),
            carver.take<float>(gates()),
            carver.take<float>(n),
            carver.take<float>(n)};
  }

  /// One scale and zero for `rows` rows of `n` numbers, as the op's reference finds them.
  static Scale scale_of(const KernelTable& k, const float* x, std::size_t rows, std::size_t n,
                        std::size_t step) noexcept {
    float low = 0.0f, high = 0.0f;
    for (std::size_t r = 0; r < rows; ++r, x += step) {
      float low_high[2] = {0.0f, 0.0f};
      if (!k.integers.range(x, n, low_high)) {
        low_high[0] = low_high[1] = 0.0f;
        for (std::size_t i = 0; i < n; ++i) {
          low_high[0] = std::fmin(low_high[0], x[i]);
          low_high[1] = std::fmax(low_high[1], x[i]);
        }
      }
      low = std::min(low, low_high[0]);
      high = std::max(high, low_high[1]);
    }
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const float zero = std::nearbyint(std::clamp(0.0f - low / scale, 0.0f, 255.0f));
    return {scale, static_cast<std::int32_t>(zero)};
  }

  /// n numbers as bytes less their zero, two int16 a word.
  static void round(const KernelTable& k, const Scale& s, const float* x, std::size_t n,
                    std::uint8_t* bytes, std::int32_t* words) noexcept {
    const std::int32_t zero_low_high[3] = {s.zero, 0, 255};
    k.integers.quantise(x, n, s.scale, zero_low_high, bytes);
    auto* to = reinterpret_cast<std::int16_t*>(words);
    for (std::size_t i = 0; i < n; ++i)
      to[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(bytes[i]) - s.zero);
    if (n % 2 != 0) to[n] = 0;
  }

  void multiply(const KernelTable& k, const PairWeights& w, std::size_t dir,
                const std::int32_t* words, std::size_t rows, std::int32_t* sums) const noexcept {
    k.integers.pairs({.a = words,
                      .rows = rows,
                      .n_pairs = w.n_pairs(),
                      .b = w.directions[dir].as<std::int32_t>(),
                      .n_outputs = gates(),
                      .y = sums,
                      .y_row = padded()});
  }

  /// to += sums times the scales.
  void add_scaled(const Run& run, const PairWeights& w, std::size_t dir, float scale,
                  const std::int32_t* sums, float* to) const noexcept {
    const float* scales = run.f32(w.scale);
    if (w.scale.shape.rank() == 1) {
      for (std::size_t j = 0; j < gates(); ++j)
        to[j] += static_cast<float>(sums[j]) * (scale * scales[dir]);
    } else {
      for (std::size_t j = 0; j < gates(); ++j)
        to[j] += static_cast<float>(sums[j]) * (scale * scales[dir * gates() + j]);
    }
  }

  void line(const Run& run, std::size_t line, const Room& room) const noexcept {
    const KernelTable& k = *run.k;
    const std::size_t n = s_.hidden, dir = line / s_.batch, state = s_.state_at(line);
    load_state(run, bias_, dir * 2 * gates(), 2 * gates(), room.bias);
    k.add(room.bias, room.bias + gates(), gates(), room.bias);
    load_state(run, h0_, state, n, room.h);
    load_state(run, c0_, state, n, room.c);
    const float* x = run.f32(x_) + s_.x_at(line, 0);
    const Scale x_scale = scale_of(k, x, s_.length, s_.width, s_.x_step());
    for (std::size_t done = 0; done < s_.length; done += kTimes) {
      const std::size_t steps = std::min(kTimes, s_.length - done);
      for (std::size_t i = 0; i < steps; ++i) {
        round(k, x_scale, x + s_.time(line, done + i) * s_.x_step(), s_.width, room.bytes,
              room.x_words + i * w_.n_pairs());
      }
      multiply(k, w_, dir, room.x_words, steps, room.x_sums);
      for (std::size_t i = 0; i < steps; ++i) {
        const Scale h_scale = scale_of(k, room.h, 1, n, n);
        round(k, h_scale, room.h, n, room.bytes, room.h_words);
        multiply(k, r_, dir, room.h_words, 1, room.h_sums);
        std::copy_n(room.bias, gates(), room.gates);
        add_scaled(run, w_, dir, x_scale.scale, room.x_sums + i * padded(), room.gates);
        add_scaled(run, r_, dir, h_scale.scale, room.h_sums, room.gates);
        lstm_cell(k, n, room.gates, room.h, room.c);
        std::copy_n(room.h, n, run.out(outputs_[0]) + s_.y_at(line, s_.time(line, done + i)));
      }
    }
    std::copy_n(room.h, n, run.out(outputs_[1]) + state);
    std::copy_n(room.c, n, run.out(outputs_[2]) + state);
  }

  RecurrentShape s_;
  PairWeights w_, r_;
  Operand x_, bias_, h0_, c0_;
  std::vector<Operand> outputs_;
};

/// Null panels where a part is not stored.
Result<PairWeights> pair_weights(const Step& step, std::size_t w, std::size_t scale) {
  const Operand &weight = step.inputs[w], &zero = step.inputs[scale + 1];
  const std::byte *bytes = stored_bytes(weight), *zeros = stored_bytes(zero);
  PairWeights out;
  if (bytes == nullptr || zeros == nullptr) return out;
  out.k = static_cast<std::size_t>(weight.shape[1]);
  out.scale = step.inputs[scale];
  const auto n = static_cast<std::size_t>(weight.shape[2]);
  const bool per_column = zero.shape.rank() == 2;
  for (std::size_t dir = 0; dir < static_cast<std::size_t>(weight.shape[0]); ++dir) {
    const ByteMatrix matrix{bytes + dir * out.k * n,
                            weight.dtype,
                            out.k,
                            n,
                            zeros + dir * (per_column ? n : 1),
                            per_column};
    CYB_ASSIGN(Buffer panels, pair_panels(matrix));
    out.directions.push_back(std::move(panels));
  }
  return out;
}

}  // namespace

Result<StepPtr> make_dynamic_lstm(const Step& step, Build& build) {
  const Operand& x = step.inputs[kX];
  if (step.outputs[0].shape.count() == 0 || x.shape[2] == 0) return StepPtr();
  CYB_ASSIGN(PairWeights w, pair_weights(step, kW, kWScale));
  CYB_ASSIGN(PairWeights r, pair_weights(step, kR, kRScale));
  if (w.directions.empty() || r.directions.empty()) return StepPtr();
  for (const Buffer& panels : w.directions) build.kept_bytes += panels.size();
  for (const Buffer& panels : r.directions) build.kept_bytes += panels.size();
  const RecurrentShape shape{static_cast<std::size_t>(x.shape[0]),
                             static_cast<std::size_t>(x.shape[1]),
                             static_cast<std::size_t>(x.shape[2]),
                             r.k,
                             w.directions.size(),
                             step.op.attrs.i(1) == 1,
                             false};
  return std::make_unique<DynamicLstmStep>(step, shape, std::move(w), std::move(r), build);
}

}  // namespace cyb::cpu
