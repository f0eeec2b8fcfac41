// CpuWeight: a weight in place (gathers, f32 vectors), as an f32 copy (other vectors), or as panels
// (matrix products).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

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

  /// Rearrangements that are in use count too.
  std::uint64_t own_bytes() const noexcept override;

  /// The tensor as the model stores it.
  TensorView source() const noexcept { return {dtype(), shape(), bytes_.data()}; }
  /// f32 values of a vector weight; null for others.
  const float* vector() const noexcept { return vector_; }

  /// A rearrangement of a vector weight seen as `groups` matrices [n_out, n_in].
  struct Derived {
    enum Kind : std::uint8_t { kDirect, kWinograd, kColumns } kind;
    std::size_t groups, n_out, n_in;
    bool operator==(const Derived&) const = default;
  };
  /// Made by `make` once and kept as long as somebody uses it. Errors: those of `make`.
  Result<std::shared_ptr<const Buffer>> derived(const Derived& key,
                                                const std::function<Result<Buffer>()>& make) const;
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
  mutable std::mutex derived_mutex_;
  mutable std::vector<std::pair<Derived, std::weak_ptr<const Buffer>>> derived_;
};

}  // namespace cyb::cpu
