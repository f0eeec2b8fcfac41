// LoraApply: out = y + (alpha / r) (x A^T) B^T in f32, A and B as panels. A share takes its own
// rows from x to out; of few rows every share makes x A^T itself and takes its panels of B. A row's
// sums depend on shapes alone.
#include <algorithm>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kChunkRows = 36;  // of x A^T at once: whole groups of kTileRows
constexpr std::size_t kFewRows = 4;

class LoraStep final : public PlainStep {
 public:
  LoraStep(const Step& step, Build& build)
      : y_(step.inputs[0]),
        x_(step.inputs[1]),
        out_(step.outputs[0]),
        a_(cpu_weight(step.inputs[2])),
        b_(cpu_weight(step.inputs[3])),
        rank_(a_->n_out()),
        low_row_(a_->n_panels() * kPanelRows),
        factor_(step.op.attrs.f(1) / static_cast<float>(rank_)) {
    build.want_thread(scratch(nullptr).bytes);
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t rows = run.rows(x_);
    const Scratch s = scratch(run.thread_scratch[thread]);
    if (rows <= kFewRows) {
      if (rows != 0) chunk(run, 0, rows, Share(b_->n_panels(), thread, run.n_threads), s);
      return;
    }
    const std::size_t groups = (rows + kTileRows - 1) / kTileRows;
    const Share mine(groups, thread, run.n_threads);
    const std::size_t end = std::min(mine.end * kTileRows, rows);
    for (std::size_t first = mine.begin * kTileRows; first < end; first += kChunkRows)
      chunk(run, first, std::min(kChunkRows, end - first), Share(b_->n_panels(), 0, 1), s);
  }

 private:
  struct Scratch {
    float *low, *tile;  // [kChunkRows, low_row_], [kChunkRows, 16]
    std::size_t bytes;
  };

  Scratch scratch(std::byte* base) const noexcept {
    Carver carver(base);
    auto* low = carver.take<float>(kChunkRows * low_row_);
    auto* tile = carver.take<float>(kChunkRows * kPanelRows);
    return {low, tile, carver.bytes()};
  }

  static TileJob job(const float* a, std::size_t a_row, const CpuWeight& weight, std::size_t panel,
                     std::size_t rows) noexcept {
    return {.a = a,
            .packed = false,
            .a_panel = kTileRows * a_row,
            .a_row = a_row,
            .b = reinterpret_cast<const float*>(weight.panel(panel)),
            .b_block = 0,
            .rows = rows,
            .n_blocks = 1,
            .k = weight.n_in(),
            .c = nullptr,
            .c_row = 0,
            .row_bias = nullptr};
  }

  /// Rows [first, first + rows), the columns of these panels of B.
  void chunk(const Run& run, std::size_t first, std::size_t rows, Share panels,
             const Scratch& s) const noexcept {
    const std::size_t k = a_->n_in(), n = b_->n_out();
    for (std::size_t p = 0; p < a_->n_panels(); ++p) {
      TileJob low = job(run.f32(x_) + first * k, k, *a_, p, rows);
      low.c = s.low + p * kPanelRows;
      low.c_row = low_row_;
      run.k->tile(low);
    }
    for (std::size_t p = panels.begin; p < panels.end; ++p) {
      TileJob up = job(s.low, low_row_, *b_, p, rows);
      up.c = s.tile;
      up.c_row = kPanelRows;
      run.k->tile(up);
      const std::size_t column = p * kPanelRows, width = std::min(kPanelRows, n - column);
      for (std::size_t t = 0; t < rows; ++t) {
        const float *from = s.tile + t * kPanelRows, *y = run.f32(y_) + (first + t) * n + column;
        float* out = run.out(out_) + (first + t) * n + column;
        for (std::size_t i = 0; i < width; ++i) out[i] = y[i] + factor_ * from[i];
      }
    }
  }

  Operand y_, x_, out_;
  const CpuWeight *a_, *b_;
  std::size_t rank_, low_row_;
  float factor_;
};

}  // namespace

Result<StepPtr> make_lora_step(const Step& step, Build& build) {
  for (const std::size_t k : {std::size_t{2}, std::size_t{3}}) {
    if (step.inputs[k].kind != Operand::Kind::kWeight) return StepPtr();
    const CpuWeight& weight = *cpu_weight(step.inputs[k]);
    if (!weight.has_panels() || weight.format() != PanelFormat::kF32) return StepPtr();
  }
  return std::make_unique<LoraStep>(step, build);
}

}  // namespace cyb::cpu
