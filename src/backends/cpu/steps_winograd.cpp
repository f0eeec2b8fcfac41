// Convolutions of 3x3 windows by Winograd's F(2x2, 3x3): 16 products in place of 36 for four
// outputs. An item of work is a run of windows: transform, 16 products, transform back. Windows
// with values that are not finite are summed tap by tap.
#include <algorithm>
#include <cmath>

#include "backends/cpu/conv_epilogue.hpp"
#include "backends/cpu/layout.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kPositions = 16;
constexpr std::size_t kNearFloats = 4096;  // of inputs and outputs of a position that stay near
constexpr std::size_t kMaxWindows = 48;    // of an item
constexpr std::size_t kLargeWeights = 128 * 128;  // products of a position: more of them only where
constexpr std::size_t kManyWindows = 64;          // a weight is used often

class WinogradStep final : public PlainStep {
 public:
  WinogradStep(const Step& step, const conv::Problem& problem, ConvEpilogue epilogue,
               std::shared_ptr<const Buffer> weights, Build& build)
      : p_(problem),
        epilogue_(std::move(epilogue)),
        weights_(std::move(weights)),
        x_(step.inputs[0]),
        w_(step.inputs[1]),
        y_(step.outputs[0]),
        zeros_(p_.in_channels, 0.0f),
        columns_((static_cast<std::size_t>(p_.axes[2].out) + 1) / 2),
        counter_(build.counter()) {
    const std::size_t rows = (static_cast<std::size_t>(p_.axes[1].out) + 1) / 2;
    all_ = columns_ * rows;
    const std::size_t near = kNearFloats / (p_.in_channels + p_.out_channels);
    const std::size_t most = std::clamp(round_up(near, kTilePixels), kTilePixels, kMaxWindows);
    n_items_ =
        round_up((all_ + most - 1) / most, p_.batch >= build.n_threads ? 1 : build.n_threads);
    windows_ = (all_ + n_items_ - 1) / n_items_;
    n_items_ = (all_ + windows_ - 1) / windows_;
    for (std::size_t p = 0; p < kPositions; ++p)
      offsets_.push_back(static_cast<std::ptrdiff_t>(p * windows_ * p_.in_channels));
    build.want_thread(room(nullptr).bytes + epilogue_.scratch_bytes());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    for (std::size_t i; (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) <
                        p_.batch * n_items_;) {
      const std::size_t first = i % n_items_ * windows_;
      item(run, i / n_items_, first, std::min(windows_, all_ - first),
           room(run.thread_scratch[thread]));
    }
  }

 private:
  struct Room {
    float *v, *m;        // [position][window][channels], of inputs and outputs
    const float** rows;  // [windows] of v
    DirectTile* tiles;
    std::byte* rest;    // of the fused ops
    std::size_t bytes;  // up to there
  };
  Room room(std::byte* base) const noexcept {
    Room r{};
    Carver carver(base);
    r.v = carver.take<float>(kPositions * windows_ * p_.in_channels);
    r.m = carver.take<float>(kPositions * windows_ * p_.out_channels);
    r.rows = carver.take<const float*>(windows_ + kTilePixels);
    r.tiles = carver.take<DirectTile>(windows_);
    r.rest = carver.take<std::byte>(0);
    r.bytes = carver.bytes();
    return r;
  }

  void item(const Run& run, std::size_t sample, std::size_t first, std::size_t n,
            const Room& r) const noexcept {
    const float* x = run.f32(x_) + sample * p_.in_size() * p_.in_channels;
    for (std::size_t i = 0; i < n; ++i) transform(run, x, first + i, r.v + i * p_.in_channels);
    products(run, n, r);
    for (std::size_t i = 0; i < n; ++i) put(run, sample, first + i, r.m + i * p_.out_channels);
    if (epilogue_.has_ops()) fused(run, sample, first, n, r.rest);
  }

  void transform(const Run& run, const float* x, std::size_t window, float* v) const noexcept {
    const auto top = static_cast<std::int64_t>(window / columns_ * 2) - p_.axes[1].before;
    const auto left = static_cast<std::int64_t>(window % columns_ * 2) - p_.axes[2].before;
    const float* pixels[16];
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) {
        const bool inside = conv::inside(p_.axes[1], top + i) && conv::inside(p_.axes[2], left + j);
        const std::int64_t at = (top + i) * p_.axes[2].in + left + j;
        pixels[4 * i + j] =
            inside ? x + at * static_cast<std::int64_t>(p_.in_channels) : zeros_.data();
      }
    }
    run.k->winograd_in(pixels, p_.in_channels, v, windows_ * p_.in_channels);
  }

  void products(const Run& run, std::size_t n, const Room& r) const noexcept {
    const std::size_t n_tiles = (n + kTilePixels - 1) / kTilePixels;
    const float** row = r.rows;
    for (std::size_t t = 0, w = 0; t < n_tiles; ++t) {
      const std::size_t size = n / n_tiles + (t < n % n_tiles ? 1 : 0);
      r.tiles[t] = {row, static_cast<std::uint32_t>(size), true};
      for (std::size_t i = 0; i < size; ++i) *row++ = r.v + w++ * p_.in_channels;
    }
    const std::size_t block = p_.in_channels * kDirectOutputs;
    const std::size_t blocks = (p_.out_channels + kDirectOutputs - 1) / kDirectOutputs;
    const auto* weights = reinterpret_cast<const float*>(weights_->data());
    constexpr std::size_t kChain = 256;
    for (std::size_t p = 0; p < kPositions; ++p) {
      for (std::size_t c = 0; c < p_.in_channels; c += kChain) {
        const std::size_t n_channels = std::min(kChain, p_.in_channels - c);
        run.k->direct({.w = weights + p * blocks * block + c * kDirectOutputs,
                       .w_block = block,
                       .tiles = r.tiles,
                       .n_tiles = n_tiles,
                       .offsets = offsets_.data(),
                       .merge = 1,
                       .first_tap = p,
                       .n_taps = 1,
                       .first_channel = c,
                       .n_channels = n_channels,
                       .y = r.m + p * windows_ * p_.out_channels,
                       .y_pixel = p_.out_channels,
                       .n_outputs = p_.out_channels,
                       .first = c == 0,
                       .last = false,
                       .scale = nullptr,
                       .bias = nullptr,
                       .relu = false});
      }
    }
  }

  /// Outputs of a window; the second row or column may be outside.
  void put(const Run& run, std::size_t sample, std::size_t window, const float* m) const noexcept {
    const std::size_t top = window / columns_ * 2, left = window % columns_ * 2;
    const auto height = static_cast<std::size_t>(p_.axes[1].out),
               width = static_cast<std::size_t>(p_.axes[2].out);
    float* plane = run.out(y_) + sample * p_.out_size() * p_.out_channels;
    float* y[4];
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = top + i / 2, column = left + i % 2;
      y[i] = row < height && column < width ? plane + (row * width + column) * p_.out_channels
                                            : nullptr;
    }
    const bool finite = run.k->winograd_out({.m = m,
                                             .m_position = windows_ * p_.out_channels,
                                             .y = y,
                                             .n_outputs = p_.out_channels,
                                             .scale = epilogue_.scale(),
                                             .bias = epilogue_.bias(),
                                             .relu = epilogue_.relu()});
    if (finite) return;
    const float* x = run.f32(x_) + sample * p_.in_size() * p_.in_channels;
    for (std::size_t i = 0; i < 4; ++i) {
      if (y[i] != nullptr) by_taps(run, x, top + i / 2, left + i % 2, y[i]);
    }
  }

  void by_taps(const Run& run, const float* x, std::size_t row, std::size_t column,
               float* y) const noexcept {
    for (std::size_t o = 0; o < p_.out_channels; ++o) {
      const float* w = run.f32(w_) + o * p_.in_channels * 9;
      float sum = 0.0f;
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        const std::int64_t r = conv::tap(p_.axes[1], static_cast<std::int64_t>(row), tap / 3);
        const std::int64_t q = conv::tap(p_.axes[2], static_cast<std::int64_t>(column), tap % 3);
        if (!conv::inside(p_.axes[1], r) || !conv::inside(p_.axes[2], q)) continue;
        const float* pixel =
            x + (r * p_.axes[2].in + q) * static_cast<std::int64_t>(p_.in_channels);
        for (std::size_t c = 0; c < p_.in_channels; ++c)
          sum = std::fma(pixel[c], w[c * 9 + static_cast<std::size_t>(tap)], sum);
      }
      if (epilogue_.scale() != nullptr) {
        sum = std::fma(sum, epilogue_.scale()[o], epilogue_.bias()[o]);
      } else if (epilogue_.bias() != nullptr) {
        sum += epilogue_.bias()[o];
      }
      y[o] = epilogue_.relu() && sum < 0.0f ? 0.0f : sum;
    }
  }

  /// The other fused ops, line by line of the outputs.
  void fused(const Run& run, std::size_t sample, std::size_t first, std::size_t n,
             std::byte* scratch) const noexcept {
    const auto height = static_cast<std::size_t>(p_.axes[1].out),
               width = static_cast<std::size_t>(p_.axes[2].out);
    for (std::size_t end = first + n; first < end;) {
      const std::size_t row = first / columns_, from = first % columns_;
      const std::size_t to = std::min(columns_, from + end - first);
      first += to - from;
      const std::size_t left = 2 * from, right = std::min(2 * to, width);
      for (std::size_t line = 2 * row; line < std::min(2 * row + 2, height); ++line) {
        const std::size_t pixel = sample * p_.out_size() + line * width + left;
        epilogue_.apply(run, scratch, pixel * p_.out_channels, (right - left) * p_.out_channels);
      }
    }
  }

  conv::Problem p_;
  ConvEpilogue epilogue_;
  std::shared_ptr<const Buffer> weights_;
  Operand x_, w_, y_;
  std::vector<float> zeros_;  // a pixel outside
  std::vector<std::ptrdiff_t> offsets_;
  std::size_t columns_, all_ = 0, n_items_ = 0, windows_ = 0;  // windows of a plane, of an item
  std::size_t counter_;
};

/// G w G^T of a 3x3 window, row-major.
void transform_weight(const float* w, double (&u)[16]) {
  double t[4][3];
  for (int j = 0; j < 3; ++j) {
    const double a = w[j], b = w[3 + j], c = w[6 + j];
    t[0][j] = a;
    t[1][j] = (a + b + c) / 2;
    t[2][j] = (a - b + c) / 2;
    t[3][j] = c;
  }
  for (int i = 0; i < 4; ++i) {
    u[4 * i] = t[i][0];
    u[4 * i + 1] = (t[i][0] + t[i][1] + t[i][2]) / 2;
    u[4 * i + 2] = (t[i][0] - t[i][1] + t[i][2]) / 2;
    u[4 * i + 3] = t[i][2];
  }
}

/// [position][block of 16 outputs][channel][16].
Result<Buffer> winograd_weights(const float* w, const conv::Problem& p) {
  const std::size_t blocks = (p.out_channels + kDirectOutputs - 1) / kDirectOutputs;
  const std::size_t position = blocks * p.in_channels * kDirectOutputs;
  CYB_ASSIGN(Buffer buffer, Buffer::allocate(kPositions * position * sizeof(float), "cpu"));
  for (std::size_t o = 0; o < p.out_channels; ++o) {
    for (std::size_t c = 0; c < p.in_channels; ++c) {
      double u[kPositions];
      transform_weight(w + (o * p.in_channels + c) * 9, u);
      float* to = buffer.as<float>() + (o / kDirectOutputs * p.in_channels + c) * kDirectOutputs +
                  o % kDirectOutputs;
      for (std::size_t i = 0; i < kPositions; ++i) to[i * position] = static_cast<float>(u[i]);
    }
  }
  return buffer;
}

}  // namespace

bool is_winograd(const conv::Problem& p) {
  const auto three = [](const conv::Axis& a) {
    return a.kernel == 3 && a.stride == 1 && a.dilation == 1 && a.out >= 4;
  };
  const conv::Axis& z = p.axes[0];
  if (p.groups != 1 || !three(p.axes[1]) || !three(p.axes[2]) || z.kernel != 1 || z.in != 1 ||
      z.out != 1)
    return false;
  const std::size_t products = p.in_channels * p.out_channels;
  const auto windows =
      static_cast<std::size_t>((p.axes[1].out + 1) / 2 * ((p.axes[2].out + 1) / 2));
  return p.in_channels % 16 == 0 && p.out_channels >= 16 &&
         (products <= kLargeWeights || windows >= kManyWindows);
}

Result<StepPtr> make_winograd_step(const Step& step, const conv::Problem& problem,
                                   ConvEpilogue epilogue, Build& build) {
  const CpuWeight& w = *cpu_weight(step.inputs[1]);
  CYB_ASSIGN(auto weights, w.derived({CpuWeight::Derived::kWinograd, 1, problem.out_channels,
                                      problem.in_channels},
                                     [&] { return winograd_weights(w.vector(), problem); }));
  return std::make_unique<WinogradStep>(step, problem, std::move(epilogue), std::move(weights),
                                        build);
}

}  // namespace cyb::cpu
