// CpuWeight: a weight in place (gathers, f32 vectors), as an f32 copy (other vectors), or as panels
// (matrix products).
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "backends/backend.hpp"
#include "backends/cpu/panels.hpp"
#include "tensor/buffer.hpp"

namespace cyb::cpu {

class CpuWeight final : public Weight {
 public:
  /// Bytes of panels for this source and use; 0 where none are needed. Errors: ShapeMismatch,
  /// UnsupportedOp, WeightFormat.
  static Result<std::uint64_t> packed_size(const WeightSource& source, WeightUse use);
  /// Packs with all threads of `pool`.
  static Result<void> pack(const WeightSource& source, std::span<std::byte> out, ThreadPool& pool);
  static Result<std::unique_ptr<Weight>> load(const WeightSource& source, WeightUse use,
                                              std::span<const std::byte> packed, ThreadPool& pool);

  std::uint64_t own_bytes() const noexcept override { return own_bytes_; }

  /// The tensor as the model stores it.
  TensorView source() const noexcept { return {dtype(), shape(), bytes_.data()}; }
  /// f32 values of a vector weight; null for others.
  const float* vector() const noexcept { return vector_; }

  /// Panels of kTileRows rows, [n_in][kTileRows] each, of a vector weight seen as `groups` matrices
  /// [n_out, n_in] one after the other; rows past n_out are zeros. Made once and kept as long as
  /// somebody uses them. Errors: OutOfMemory.
  Result<std::shared_ptr<const Buffer>> row_panels(std::size_t groups, std::size_t n_out,
                                                   std::size_t n_in) const;

  bool has_panels() const noexcept { return panels_ != nullptr; }
  PanelFormat format() const noexcept { return format_; }
  std::size_t n_out() const noexcept { return n_out_; }
  std::size_t n_in() const noexcept { return n_in_; }
  std::size_t n_panels() const noexcept { return cpu::n_panels(n_out_); }
  std::size_t panel_size() const noexcept { return panel_size_; }
  const std::uint8_t* panel(std::size_t p) const noexcept { return panels_ + p * panel_size_; }

 private:
  explicit CpuWeight(const WeightSource& source) : Weight(source), bytes_(source.bytes) {}
  Result<void> make_vector();

  std::span<const std::byte> bytes_;
  const float* vector_ = nullptr;
  const std::uint8_t* panels_ = nullptr;
  PanelFormat format_ = PanelFormat::kF32;
  std::size_t n_out_ = 0, n_in_ = 0, panel_size_ = 0;
  Buffer own_;
  std::uint64_t own_bytes_ = 0;
  mutable std::mutex grouped_mutex_;
  mutable std::weak_ptr<const Buffer> grouped_;  // of the last grouping asked for
  mutable std::array<std::size_t, 3> grouping_{};
};

}  // namespace cyb::cpu
