// Convolutions of 1 to 3 axes over channels-last tensors [B, axes..., C]. An item of work is a run
// of pixels and a range of output channels; what is fused into the convolution runs on it while it
// is in the cache. No cut changes a bit.
#include <algorithm>

#include "backends/cpu/conv_epilogue.hpp"
#include "backends/cpu/direct_taps.hpp"
#include "backends/cpu/layout.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kPixels = 96;             // of an item, at most
constexpr std::size_t kFewPixels = 24;          // rather cut the outputs
constexpr std::size_t kNearFloats = 48 * 1024;  // of an item's input in the second cache
constexpr std::size_t kItems = 4;               // a thread wants

/// How a convolution is cut into items.
struct Cuts {
  std::size_t pixels, n_pixels;  // of an item; cuts of a plane
  std::size_t blocks, n_blocks;  // of 16 outputs of an item; cuts of a group

  Cuts(const conv::Problem& p, unsigned n_threads) {
    const std::size_t size = p.out_size(), planes = p.batch * p.groups;
    const std::size_t all = (p.out_channels + kDirectOutputs - 1) / kDirectOutputs;
    const std::size_t wanted = n_threads == 1 ? 1 : kItems * n_threads;
    const std::size_t share = (wanted + planes - 1) / planes;
    const std::size_t few = std::max<std::size_t>(size / kFewPixels, 1);
    n_pixels = std::max((size + kPixels - 1) / kPixels, std::min(share, few));
    // Cuts of equal length: a remainder is one thread's alone.
    n_pixels = n_threads == 1 ? n_pixels : std::min(round_up(n_pixels, n_threads), size);
    pixels = (size + n_pixels - 1) / n_pixels;
    n_pixels = (size + pixels - 1) / pixels;
    n_blocks = n_pixels * planes >= wanted || n_threads == 1
                   ? 1
                   : std::min(all, (wanted + n_pixels * planes - 1) / (n_pixels * planes));
    blocks = (all + n_blocks - 1) / n_blocks;
    n_blocks = (all + blocks - 1) / blocks;
  }
};

/// Weights as [group][block of 16 outputs][k][16].
struct Panels {
  const float* data;
  std::size_t block;  // floats
  std::shared_ptr<const Buffer> keep = nullptr;
};

/// One channel in and out of each of several groups.
bool is_depthwise(const conv::Problem& p) {
  return p.groups > 1 && p.in_channels == 1 && p.out_channels == 1;
}
conv::Problem one_group(conv::Problem p) {
  if (!is_depthwise(p)) return p;
  p.in_channels = p.out_channels = std::exchange(p.groups, 1);
  return p;
}

class DirectConvStep final : public PlainStep {
 public:
  DirectConvStep(const Step& step, const conv::Problem& problem, ConvEpilogue epilogue,
                 Panels panels, Build& build)
      : p_(one_group(problem)),
        depthwise_(is_depthwise(problem)),
        cuts_(p_, build.n_threads),
        taps_(problem),
        epilogue_(std::move(epilogue)),
        panels_(std::move(panels)),
        x_(step.inputs[0]),
        y_(step.outputs[0]),
        counter_(build.counter()) {
    tiles_ = DirectTaps::tiles_of(cuts_.pixels);
    tables_ = round_up(tiles_ * sizeof(DirectTile), 64) +
              round_up(taps_.pointers(tiles_) * sizeof(float*), 64);
    build.want_thread(tables_ + epilogue_.scratch_bytes());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t items = p_.batch * p_.groups * cuts_.n_pixels * cuts_.n_blocks;
    for (std::size_t i;
         (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
      const std::size_t rest = i / cuts_.n_blocks;
      item(run, {rest / cuts_.n_pixels, rest % cuts_.n_pixels * cuts_.pixels, i % cuts_.n_blocks},
           run.thread_scratch[thread]);
    }
  }

 private:
  /// A (sample, group), its first pixel and the cut of its outputs.
  struct Item {
    std::size_t plane, pixel, cut;
  };

  void item(const Run& run, const Item& at, std::byte* scratch) const noexcept {
    const std::size_t sample = at.plane / p_.groups, group = at.plane % p_.groups;
    const std::size_t n = std::min(cuts_.pixels, p_.out_size() - at.pixel);
    const std::size_t x_pixel = p_.groups * p_.in_channels, y_pixel = p_.groups * p_.out_channels;
    auto* tiles = reinterpret_cast<DirectTile*>(scratch);
    auto** rows =
        reinterpret_cast<const float**>(scratch + round_up(tiles_ * sizeof(DirectTile), 64));
    taps_.fill(run.f32(x_) + sample * p_.in_size() * x_pixel + group * p_.in_channels, at.pixel, n,
               tiles, rows);
    const std::size_t first = at.cut * cuts_.blocks * kDirectOutputs;
    const std::size_t n_outputs = std::min(cuts_.blocks * kDirectOutputs, p_.out_channels - first);
    const std::size_t pixel = sample * p_.out_size() + at.pixel;  // of the whole output
    const std::size_t channel = group * p_.out_channels + first;
    const std::span<const DirectTile> all{tiles, DirectTaps::tiles_of(n)};
    float* y = run.out(y_) + pixel * y_pixel + channel;
    depthwise_ ? by_channel(run, all, {first, n_outputs}, y)
               : sums(run, all, group, {first, n_outputs}, y);
    if (!epilogue_.has_ops()) return;
    std::byte* room = scratch + tables_;
    if (n_outputs == y_pixel) return epilogue_.apply(run, room, pixel * y_pixel, n * y_pixel);
    for (std::size_t i = 0; i < n; ++i)
      epilogue_.apply(run, room, (pixel + i) * y_pixel + channel, n_outputs);
  }

  /// As many of n outputs as are summed together: 32, or what leaves no small rest.
  static std::size_t some(std::size_t n) {
    constexpr std::size_t kTwo = 2 * kDirectOutputs;
    return n > kTwo && n < kTwo + kDirectOutputs ? kDirectOutputs : std::min(n, kTwo);
  }

  /// Outputs [outputs.first, + outputs.second) of a group. The sums of a few outputs are finished
  /// before the next ones, where the item's input stays near meanwhile; else a slice of it does.
  void sums(const Run& run, std::span<const DirectTile> tiles, std::size_t group,
            std::pair<std::size_t, std::size_t> outputs, float* y) const noexcept {
    const std::vector<DirectSlice>& slices = taps_.slices();
    const bool near = cuts_.pixels * p_.in_channels <= kNearFloats;
    for (std::size_t i = 0; i < (near ? 1 : slices.size()); ++i) {
      std::size_t n = 0;
      for (std::size_t o = 0; o < outputs.second; o += n) {
        n = some(outputs.second - o);
        const Outputs some_outputs{group, outputs.first + o, n, y + o};
        for (std::size_t k = i; k < (near ? slices.size() : i + 1); ++k)
          slice(run, tiles, some_outputs, k);
      }
    }
  }

  struct Outputs {
    std::size_t group, first, n;  // of a group
    float* y;
  };
  void slice(const Run& run, std::span<const DirectTile> tiles, const Outputs& o,
             std::size_t at) const noexcept {
    const DirectSlice& s = taps_.slices()[at];
    const std::size_t blocks = (p_.out_channels + kDirectOutputs - 1) / kDirectOutputs;
    const std::size_t channel = o.group * p_.out_channels + o.first;
    run.k->direct({.w = panels_.data +
                        (o.group * blocks + o.first / kDirectOutputs) * panels_.block +
                        (s.first_tap * p_.in_channels + s.first_channel) * kDirectOutputs,
                   .w_block = panels_.block,
                   .tiles = tiles.data(),
                   .n_tiles = tiles.size(),
                   .offsets = taps_.offsets(),
                   .merge = taps_.merge(),
                   .first_tap = s.first_tap,
                   .n_taps = s.n_taps,
                   .first_channel = s.first_channel,
                   .n_channels = s.n_channels,
                   .y = o.y,
                   .y_pixel = p_.groups * p_.out_channels,
                   .n_outputs = o.n,
                   .first = at == 0,
                   .last = at + 1 == taps_.slices().size(),
                   .scale = epilogue_.scale() == nullptr ? nullptr : epilogue_.scale() + channel,
                   .bias = epilogue_.bias() == nullptr ? nullptr : epilogue_.bias() + channel,
                   .relu = epilogue_.relu()});
  }

  void by_channel(const Run& run, std::span<const DirectTile> tiles,
                  std::pair<std::size_t, std::size_t> outputs, float* y) const noexcept {
    const std::size_t first = outputs.first;
    const float *scale = epilogue_.scale(), *bias = epilogue_.bias();
    run.k->depthwise({.w = panels_.data + first,
                      .w_block = round_up(p_.out_channels, kDirectOutputs),
                      .tiles = tiles.data(),
                      .n_tiles = tiles.size(),
                      .offsets = taps_.offsets(),
                      .merge = 1,
                      .first_tap = 0,
                      .n_taps = p_.volume(),
                      .first_channel = first,
                      .n_channels = 1,
                      .y = y,
                      .y_pixel = p_.out_channels,
                      .n_outputs = outputs.second,
                      .first = true,
                      .last = true,
                      .scale = scale == nullptr ? nullptr : scale + first,
                      .bias = bias == nullptr ? nullptr : bias + first,
                      .relu = epilogue_.relu()});
  }

  conv::Problem p_;
  bool depthwise_;
  Cuts cuts_;
  DirectTaps taps_;
  ConvEpilogue epilogue_;
  Panels panels_;
  Operand x_, y_;
  std::size_t counter_, tiles_ = 0, tables_ = 0;
};

}  // namespace

Result<Buffer> direct_panels(const float* w, const conv::Problem& p) {
  const std::size_t blocks = (p.out_channels + kDirectOutputs - 1) / kDirectOutputs;
  const std::size_t taps = p.volume(), k = taps * p.in_channels;
  CYB_ASSIGN(Buffer buffer,
             Buffer::allocate(p.groups * blocks * k * kDirectOutputs * sizeof(float), "cpu"));
  float* to = buffer.as<float>();
  for (std::size_t i = 0; i < p.groups * blocks; ++i, to += k * kDirectOutputs) {
    const std::size_t first = i % blocks * kDirectOutputs;
    const std::size_t n = std::min(kDirectOutputs, p.out_channels - first);
    const float* rows = w + (i / blocks * p.out_channels + first) * k;
    for (std::size_t c = 0; c < p.in_channels; ++c) {
      for (std::size_t t = 0; t < taps; ++t) {
        float* lanes = to + (t * p.in_channels + c) * kDirectOutputs;
        for (std::size_t o = 0; o < kDirectOutputs; ++o)
          lanes[o] = o < n ? rows[o * k + c * taps + t] : 0.0f;
      }
    }
  }
  return buffer;
}

namespace {

/// [tap][channels, whole blocks] of a weight [channels, 1, taps].
Result<Buffer> depthwise_panels(const float* w, const conv::Problem& p) {
  const std::size_t taps = p.volume(), width = round_up(p.groups, kDirectOutputs);
  CYB_ASSIGN(Buffer buffer, Buffer::allocate(taps * width * sizeof(float), "cpu"));
  for (std::size_t t = 0; t < taps; ++t) {
    for (std::size_t c = 0; c < width; ++c)
      buffer.as<float>()[t * width + c] = c < p.groups ? w[c * taps + t] : 0.0f;
  }
  return buffer;
}

}  // namespace

Result<StepPtr> make_direct_step(const Step& step, Build& build) {
  CYB_ASSIGN(const conv::Problem problem, conv_problem(step));
  const CpuWeight& w = *cpu_weight(step.inputs[1]);
  const float* bias = step.inputs.size() > 2 && step.inputs[2].kind != Operand::Kind::kNone
                          ? cpu_weight(step.inputs[2])->vector()
                          : nullptr;
  ConvEpilogue epilogue(step, bias, problem.groups * problem.out_channels);
  if (is_winograd(problem)) return make_winograd_step(step, problem, std::move(epilogue), build);
  CYB_ASSIGN(auto panels, w.derived({CpuWeight::Derived::kDirect, problem.groups,
                                     problem.out_channels, problem.in_channels * problem.volume()},
                                    [&] {
                                      return is_depthwise(problem)
                                                 ? depthwise_panels(w.vector(), problem)
                                                 : direct_panels(w.vector(), problem);
                                    }));
  const auto* data = reinterpret_cast<const float*>(panels->data());
  const std::size_t block = problem.in_channels * problem.volume() * kDirectOutputs;
  return std::make_unique<DirectConvStep>(step, problem, std::move(epilogue),
                                          Panels{data, block, std::move(panels)}, build);
}

namespace {

bool is_fixed_f32(const Operand& x) {
  return x.dtype == DType::kF32 && x.rows == RowKind::kFixed && x.past_axis < 0;
}

/// [block of 16 columns][k][16] of b [K, N].
Result<Buffer> column_panels(const float* b, std::size_t k, std::size_t n) {
  const std::size_t blocks = (n + kDirectOutputs - 1) / kDirectOutputs;
  CYB_ASSIGN(Buffer buffer, Buffer::allocate(blocks * k * kDirectOutputs * sizeof(float), "cpu"));
  float* to = buffer.as<float>();
  for (std::size_t at = 0; at < n; at += kDirectOutputs) {
    for (std::size_t t = 0; t < k; ++t, to += kDirectOutputs)
      std::copy_n(b + t * n + at, std::min(kDirectOutputs, n - at), to);
  }
  return buffer;
}

Result<StepPtr> make_stored_product(const Step& step, Build& build) {
  const CpuWeight& w = *cpu_weight(step.inputs[1]);
  const auto k = static_cast<std::size_t>(step.inputs[1].shape[0]),
             n = static_cast<std::size_t>(step.inputs[1].shape[1]);
  conv::Problem problem{{}, 1, 1, k, n};
  conv::Axis& rows = problem.axes[2];
  rows.in = rows.out = step.inputs[0].shape.count() / step.inputs[0].shape.back();
  CYB_ASSIGN(auto panels, w.derived({CpuWeight::Derived::kColumns, 1, n, k},
                                    [&] { return column_panels(w.vector(), k, n); }));
  const auto* data = reinterpret_cast<const float*>(panels->data());
  return std::make_unique<DirectConvStep>(step, problem, ConvEpilogue(step, nullptr, n),
                                          Panels{data, k * kDirectOutputs, std::move(panels)},
                                          build);
}

}  // namespace

bool is_direct_product(const Step& step, const Build& build) {
  if (step.op.tag == OpTag::kBatchMatmul) {
    const Operand &a = step.inputs[0], &b = step.inputs[1];
    return is_fixed_f32(a) && a.shape.rank() >= 2 && a.shape.count() > 0 && b.shape.rank() == 2 &&
           b.shape.count() > 0 && b.dtype == DType::kF32 && b.kind == Operand::Kind::kWeight &&
           cpu_weight(b)->vector() != nullptr;
  }
  if (step.op.tag != OpTag::kMatmul || build.plan == nullptr || build.plan->token_step)
    return false;
  const Operand &x = step.inputs[0], &w = step.inputs[1];
  const bool stored = step.inputs.size() < 3 || step.inputs[2].kind == Operand::Kind::kNone ||
                      (step.inputs[2].kind == Operand::Kind::kWeight &&
                       cpu_weight(step.inputs[2])->vector() != nullptr);
  return stored && is_fixed_f32(x) && x.shape.count() > 0 && step.outputs[0].shape.count() > 0 &&
         w.kind == Operand::Kind::kWeight && cpu_weight(w)->has_panels() &&
         cpu_weight(w)->format() == PanelFormat::kF32;
}

Result<StepPtr> make_direct_product(const Step& step, Build& build) {
  if (step.op.tag == OpTag::kBatchMatmul) return make_stored_product(step, build);
  const CpuWeight& w = *cpu_weight(step.inputs[1]);
  conv::Problem problem{{}, 1, 1, w.n_in(), w.n_out()};
  conv::Axis& rows = problem.axes[2];
  rows.in = rows.out = step.inputs[0].shape.count() / step.inputs[0].shape.back();
  const float* bias = step.inputs.size() > 2 && step.inputs[2].kind != Operand::Kind::kNone
                          ? cpu_weight(step.inputs[2])->vector()
                          : nullptr;
  return std::make_unique<DirectConvStep>(
      step, problem, ConvEpilogue(step, bias, w.n_out()),
      Panels{reinterpret_cast<const float*>(w.panel(0)), w.panel_size() / sizeof(float)}, build);
}

}  // namespace cyb::cpu
