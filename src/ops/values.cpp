// f32 views and the reference order of summation.
#include "ops/values.hpp"

#include <algorithm>

#include "base/half.hpp"
#include "base/thread_pool.hpp"

namespace cyb::ref {

float dot(const float* a, const float* b, std::size_t n) noexcept {
  Lanes acc{};
  std::size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) acc[l] = acc[l] + a[k + l] * b[k + l];
  }
  for (std::size_t l = 0; k + l < n; ++l) acc[l] = acc[l] + a[k + l] * b[k + l];
  return fold(acc);
}

float sum(const float* x, std::size_t n) noexcept {
  Lanes acc{};
  std::size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) acc[l] = acc[l] + x[k + l];
  }
  for (std::size_t l = 0; k + l < n; ++l) acc[l] = acc[l] + x[k + l];
  return fold(acc);
}

Values::Values(const TensorView& view) {
  if (!view.present()) return;
  size_ = static_cast<std::size_t>(view.shape.count());
  if (view.dtype == DType::kF32) {
    data_ = view.as<float>();
    return;
  }
  own_ = std::make_unique_for_overwrite<float[]>(std::max<std::size_t>(size_, 1));
  format_info(view.dtype).decode(view.data, own_.get(), size_);
  data_ = own_.get();
}

Results::Results(const MutableTensorView& view) : view_(view) {
  if (view.dtype == DType::kF32) {
    data_ = view.as<float>();
    return;
  }
  const auto n = static_cast<std::size_t>(view.shape.count());
  own_ = std::make_unique_for_overwrite<float[]>(std::max<std::size_t>(n, 1));
  data_ = own_.get();
}

void Results::finish() noexcept {
  if (own_ == nullptr) return;
  const auto n = static_cast<std::size_t>(view_.shape.count());
  auto* out = view_.as<std::uint16_t>();
  for (std::size_t i = 0; i < n; ++i) out[i] = f32_to_f16(data_[i]);
}

Rows::Rows(const TensorView& matrix) noexcept : matrix_(matrix) {
  length_ = static_cast<std::size_t>(matrix.shape.back());
  count_ = 1;
  for (std::size_t i = 0; i + 1 < matrix.shape.rank(); ++i) {
    count_ *= static_cast<std::size_t>(matrix.shape[i]);
  }
  const FormatInfo& format = format_info(matrix.dtype);
  row_bytes_ = length_ / format.block_values * format.block_bytes;
}

const float* Rows::read(std::size_t r, float* scratch) const noexcept {
  const std::byte* row = matrix_.data + r * row_bytes_;
  if (matrix_.dtype == DType::kF32) return reinterpret_cast<const float*>(row);
  format_info(matrix_.dtype).decode(row, scratch, length_);
  return scratch;
}

void parallel(ThreadPool* pool, std::size_t n, std::size_t work,
              const std::function<void(std::size_t, std::size_t)>& body) {
  constexpr std::size_t kWorthIt = 1 << 16;
  if (pool == nullptr || pool->size() == 1 || work < kWorthIt) {
    body(0, n);
    return;
  }
  auto task = [&](unsigned thread, unsigned n_threads) noexcept {
    const std::size_t begin = n * thread / n_threads, end = n * (thread + 1) / n_threads;
    if (begin < end) body(begin, end);
  };
  pool->run(task);
}

}  // namespace cyb::ref
