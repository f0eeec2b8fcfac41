// Products of two activations in f32: BatchMatmul a [.., M, K] b [.., K, N] and Matmul with a W
// [.., N, K] that is not packed at load. B is put into blocks of 16 columns as it comes.
#include <algorithm>
#include <cstring>

#include "backends/cpu/step.hpp"
#include "ops/linear/product.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kBlockColumns = 16;
constexpr std::size_t kColumnBytes = 192 * 1024;  // packed columns of one item stay in the cache
constexpr std::size_t kRowsOfItem = 96;

class ProductStep final : public PlainStep {
 public:
  ProductStep(const Step& step, linear::MatmulShape shape, Build& build)
      : s_(std::move(shape)),
        a_(step.inputs[0]),
        b_(step.inputs[1]),
        y_(step.outputs[0]),
        counter_(build.counter()) {
    const std::size_t all = (s_.n + kBlockColumns - 1) / kBlockColumns;
    const std::size_t fits = kColumnBytes / (s_.k * kBlockColumns * sizeof(float));
    blocks_ = std::clamp<std::size_t>(fits, 1, all);
    const std::size_t batches = s_.a_offsets.size();
    if (build.n_threads > 1 && batches < 2 * build.n_threads)
      blocks_ = std::clamp<std::size_t>(all / (2 * build.n_threads), 1, blocks_);
    cuts_ = (all + blocks_ - 1) / blocks_;
    build.want_thread((blocks_ * s_.k + kRowsOfItem) * kBlockColumns * sizeof(float));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    auto* columns = reinterpret_cast<float*>(run.thread_scratch[thread]);
    const std::size_t items = s_.a_offsets.size() * cuts_;
    for (std::size_t i;
         (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
      item(run, i / cuts_, i % cuts_ * blocks_ * kBlockColumns, columns);
    }
  }

 private:
  /// [k][16] of columns [first, first + n).
  void pack(const float* b, std::size_t first, std::size_t n, float* to) const noexcept {
    for (std::size_t k = 0; k < s_.k; ++k, to += kBlockColumns) {
      const float* row = b + k * s_.n + first;
      if (n == kBlockColumns) {
        std::memcpy(to, row, kBlockColumns * sizeof(float));
      } else {
        for (std::size_t j = 0; j < kBlockColumns; ++j) to[j] = j < n ? row[j] : 0.0f;
      }
    }
  }

  void item(const Run& run, std::size_t batch, std::size_t first, float* columns) const noexcept {
    const std::size_t n = std::min(blocks_ * kBlockColumns, s_.n - first);
    const float* b = run.f32(b_) + s_.b_offsets[batch];
    for (std::size_t j = 0; j < n; j += kBlockColumns)
      pack(b, first + j, std::min(kBlockColumns, n - j), columns + j * s_.k);
    const std::size_t whole = n / kBlockColumns * kBlockColumns;
    float* rest = columns + blocks_ * s_.k * kBlockColumns;
    for (std::size_t row = 0; row < s_.m; row += kRowsOfItem) {
      float* y = run.out(y_) + (batch * s_.m + row) * s_.n + first;
      TileJob job{.a = run.f32(a_) + s_.a_offsets[batch] + row * s_.k,
                  .packed = false,
                  .a_panel = kTileRows * s_.k,
                  .a_row = s_.k,
                  .b = columns,
                  .b_block = s_.k * kBlockColumns,
                  .rows = std::min(kRowsOfItem, s_.m - row),
                  .n_blocks = whole / kBlockColumns,
                  .k = s_.k,
                  .c = y,
                  .c_row = s_.n,
                  .row_bias = nullptr};
      if (whole != 0) run.k->tile(job);
      if (whole == n) continue;
      job.b = columns + whole * s_.k;
      job.n_blocks = 1;
      job.c = rest;
      job.c_row = kBlockColumns;
      run.k->tile(job);
      for (std::size_t r = 0; r < job.rows; ++r) {
        std::memcpy(y + r * s_.n + whole, rest + r * kBlockColumns, (n - whole) * sizeof(float));
      }
    }
  }

  linear::MatmulShape s_;
  Operand a_, b_, y_;
  std::size_t blocks_, cuts_ = 1, counter_;
};

}  // namespace

Result<StepPtr> make_product_step(const Step& step, Build& build) {
  if (step.outputs[0].shape.count() == 0) return StepPtr();
  linear::MatmulShape shape(step.inputs[0].shape, step.inputs[1].shape);
  if (shape.k == 0) return StepPtr();
  return std::make_unique<ProductStep>(step, std::move(shape), build);
}

}  // namespace cyb::cpu
