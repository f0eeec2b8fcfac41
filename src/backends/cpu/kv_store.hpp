// CpuKvStore: pages of 16 positions. Per layer of a page: K as [G][D][16] (16 keys fill the lanes),
// V as [G][16][Dp], Dp = D rounded up to 16, in f32 or f16; q8 and q4 as KvCodes says. Anonymous
// memory: untouched pages cost nothing; stale bytes are never read as keys (attention masks by
// position). Layers with a window lie apart from the others, so that their part of a page can go
// back to the system alone.
#pragma once

#include <vector>

#include "backends/backend.hpp"
#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/kv_codes.hpp"
#include "tensor/buffer.hpp"

namespace cyb::cpu {

class CpuKvStore final : public KvStore {
 public:
  static Result<std::unique_ptr<KvStore>> create(const KvLayout& layout, std::uint32_t n_pages);

  const KvLayout& layout() const noexcept override { return layout_; }
  std::uint32_t n_pages() const noexcept override { return n_pages_; }
  std::uint64_t page_bytes() const noexcept override { return full_.stride + windowed_.stride; }
  std::uint64_t windowed_bytes() const noexcept override { return windowed_.stride; }
  void forget_windowed(std::uint32_t page) noexcept override;
  Result<void> copy_page(std::uint32_t from, std::uint32_t to) override;

  Result<void> read_page(std::uint32_t page, std::span<std::byte> to) const override;
  Result<void> write_page(std::uint32_t page, std::span<const std::byte> from) override;

  bool f32() const noexcept { return layout_.dtype == DType::kF32; }
  /// Blocks instead of floats: a page is read through read_k() and read_v().
  bool quantised() const noexcept {
    return layout_.dtype == DType::kQ8 || layout_.dtype == DType::kQ4;
  }

  /// One position of one head.
  struct Slot {
    std::uint32_t page, layer, head;
    std::size_t slot;  // position in the page, 0..15
  };
  /// k, v [D]; `scratch`: D halves.
  void write(const KernelTable& kernels, const Slot& at, const float* k, const float* v,
             std::uint16_t* scratch) noexcept;
  /// K of one head in one page as f32 [D][16], in place or in `to`.
  const float* read_k(const KernelTable& kernels, const Slot& at, float* to) noexcept;
  /// V [16][Dp].
  const float* read_v(const KernelTable& kernels, const Slot& at, float* to) noexcept;

  /// K of one head in one page: [D][16] floats, or codes.
  std::byte* k(std::uint32_t page, std::uint32_t layer, std::uint32_t head) noexcept {
    const Layer& l = layers_[layer];
    return memory_.data() + l.base + page * l.stride + l.k_offset + head * l.k_head_bytes;
  }
  /// V of one head in one page: [16][Dp] floats, or codes.
  std::byte* v(std::uint32_t page, std::uint32_t layer, std::uint32_t head) noexcept {
    const Layer& l = layers_[layer];
    return memory_.data() + l.base + page * l.stride + l.v_offset + head * l.v_head_bytes;
  }

 private:
  /// Pages of the layers with a window, or of the others: page i at base + i * stride.
  struct Region {
    std::uint64_t base = 0, stride = 0;
  };
  struct Layer {
    std::uint64_t base, stride;  // those of its region
    std::uint64_t k_offset, v_offset, k_head_bytes, v_head_bytes;
  };
  CpuKvStore() = default;
  Layer lay_out(const KvLayerShape& shape, std::uint64_t at) const;
  std::span<std::byte> part(const Region& region, std::uint32_t page) noexcept {
    return memory_.bytes().subspan(region.base + page * region.stride, region.stride);
  }
  std::span<const std::byte> part(const Region& region, std::uint32_t page) const noexcept {
    return memory_.bytes().subspan(region.base + page * region.stride, region.stride);
  }
  KvCodes codes(std::uint32_t layer) const noexcept {
    return {layout_.dtype, layout_.layers[layer].head_dim};
  }

  KvLayout layout_;
  std::uint32_t n_pages_ = 0;
  Region full_, windowed_;
  std::vector<Layer> layers_;
  Buffer memory_;
};

}  // namespace cyb::cpu
