// Convolutions of 1 to 3 axes in f32, NCHW: patches of a tile of outputs become blocks of 16
// columns, which the weight's panels of rows multiply. Where a group has one channel the taps are
// summed directly (steps_depthwise.cpp). Every output is one sum in an order that its own shape
// decides.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/conv_pack.hpp"
#include "backends/cpu/step.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kPatchBytes = 192 * 1024;  // patches of a tile stay in the cache
constexpr std::size_t kMaxBlocks = 12;           // of a tile
constexpr std::size_t kItems = 4;                // items of work a thread wants

struct ConvShape {
  conv::Problem p;
  ConvPack pack;
  std::size_t k, blocks;        // 16-blocks of a tile
  std::size_t tiles, row_cuts;  // of a plane; of its rows of output channels
  std::size_t rows_of_cut;      // a multiple of kTileRows

  ConvShape(const conv::Problem& problem, unsigned n_threads)
      : p(problem), pack(problem), k(pack.k()) {
    const std::size_t all = (p.out_size() + kBlock - 1) / kBlock;
    const std::size_t planes = p.batch * p.groups, wanted = kItems * n_threads;
    const std::size_t fits = kPatchBytes / (k * kBlock * sizeof(float));
    const std::size_t share =
        n_threads == 1 ? all : std::max<std::size_t>(2, planes * all / wanted);
    blocks = std::clamp<std::size_t>(std::min({fits, all, share}), 1, kMaxBlocks);
    if (blocks > 1) blocks = blocks / 2 * 2;
    tiles = (all + blocks - 1) / blocks;
    const std::size_t groups_of_rows = (p.out_channels + kTileRows - 1) / kTileRows;
    row_cuts = n_threads == 1 || planes * tiles >= 2 * n_threads
                   ? 1
                   : std::min<std::size_t>(std::max<std::size_t>(groups_of_rows / 4, 1), n_threads);
    rows_of_cut = (groups_of_rows + row_cuts - 1) / row_cuts * kTileRows;
  }
  std::size_t tile() const noexcept { return blocks * kBlock; }
  std::size_t panel() const noexcept { return k * kTileRows; }
  std::size_t panels() const noexcept { return (p.out_channels + kTileRows - 1) / kTileRows; }
};

class ConvStep final : public CpuStep {
 public:
  ConvStep(const Step& step, const ConvShape& shape, std::shared_ptr<const Buffer> panels,
           Build& build)
      : s_(shape),
        panels_(std::move(panels)),
        x_(step.inputs[0]),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]),
        counter_(build.counter()) {
    const std::size_t floats =
        s_.tile() * s_.k + kPackSlack + round_up(s_.p.out_channels, kTileRows) * kBlock;
    build.want_thread(floats * sizeof(float) + 128);
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    auto* patches = reinterpret_cast<float*>(run.thread_scratch[thread]);
    const std::size_t items = s_.p.batch * s_.p.groups * s_.tiles * s_.row_cuts;
    for (std::size_t i;
         (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
      const std::size_t cut = i % s_.row_cuts, tile = i / s_.row_cuts % s_.tiles;
      item(run, {i / s_.row_cuts / s_.tiles, tile * s_.tile(), cut * s_.rows_of_cut}, patches);
    }
  }

 private:
  /// A (sample, group), its first output and its first channel.
  struct Item {
    std::size_t plane, first, channel;
  };

  void item(const Run& run, const Item& at, float* patches) const noexcept {
    const std::size_t size = s_.p.out_size(), n = std::min(s_.tile(), size - at.first);
    if (at.channel >= s_.p.out_channels) return;
    const std::size_t x_at = at.plane * s_.p.in_channels * s_.p.in_size();
    const float* x = run.f32(x_) + x_at;
    for (std::size_t i = 0; i < n; i += kBlock) {
      s_.pack.block(x, run.elements(x_) - x_at, at.first + i, std::min(kBlock, n - i),
                    patches + i * s_.k);
    }
    const std::size_t group = at.plane % s_.p.groups;
    const float* bias = bias_.kind == Operand::Kind::kNone
                            ? nullptr
                            : run.f32(bias_) + group * s_.p.out_channels + at.channel;
    const auto* weights = reinterpret_cast<const float*>(panels_->data()) +
                          (group * s_.panels() + at.channel / kTileRows) * s_.panel();
    TileJob job{.a = weights,
                .packed = true,
                .a_panel = s_.panel(),
                .a_row = 1,
                .b = patches,
                .b_block = s_.k * kBlock,
                .rows = std::min(s_.rows_of_cut, s_.p.out_channels - at.channel),
                .n_blocks = n / kBlock,
                .k = s_.k,
                .c = run.out(y_) + (at.plane * s_.p.out_channels + at.channel) * size + at.first,
                .c_row = size,
                .row_bias = bias};
    if (job.n_blocks != 0) run.k->tile(job);
    const std::size_t whole = n / kBlock * kBlock;
    if (whole == n) return;
    float* rest = patches + s_.tile() * s_.k + kPackSlack;
    float* y = job.c + whole;
    job.b = patches + whole * s_.k;
    job.n_blocks = 1;
    job.c = rest;
    job.c_row = kBlock;
    run.k->tile(job);
    for (std::size_t r = 0; r < job.rows; ++r)
      std::memcpy(y + r * size, rest + r * kBlock, (n - whole) * sizeof(float));
  }

  ConvShape s_;
  std::shared_ptr<const Buffer> panels_;
  Operand x_, bias_, y_;
  std::size_t counter_;
};

conv::Window window_of(const Op& op) {
  return {{}, op.attrs.list(0), op.attrs.list(1), op.attrs.list(2), op.attrs.i(4), false};
}

/// A padded tap meets a zero, which is nothing only where the weight is finite.
bool all_finite(const float* values, std::size_t n) {
  return std::all_of(values, values + n, [](float v) { return std::isfinite(v); });
}

}  // namespace

Result<StepPtr> make_conv_step(const Step& step, Build& build) {
  const Operand& w = step.inputs[1];
  const auto groups = static_cast<std::size_t>(step.op.attrs.i(3));
  conv::Window window = window_of(step.op);
  CYB_ASSIGN(window.kernel, conv::kernel_of(TensorSpec::of(w.dtype, w.shape)));
  const conv::Problem problem =
      conv::problem_of(step.inputs[0].shape, w.shape, step.outputs[0].shape, window, groups);
  if (problem.in_channels == 1 && problem.out_channels == 1)
    return make_depthwise_step(step, problem, build);
  if (w.kind != Operand::Kind::kWeight || cpu_weight(w)->vector() == nullptr) return StepPtr();
  if (step.outputs[0].shape.count() == 0) return StepPtr();
  const ConvShape shape(problem, build.n_threads);
  if (!all_finite(cpu_weight(w)->vector(), groups * problem.out_channels * shape.k))
    return StepPtr();
  CYB_ASSIGN(std::shared_ptr<const Buffer> panels,
             cpu_weight(w)->row_panels(groups, problem.out_channels, shape.k));
  return std::make_unique<ConvStep>(step, shape, std::move(panels), build);
}

}  // namespace cyb::cpu
