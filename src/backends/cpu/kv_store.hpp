// CpuKvStore: pages of 16 positions. Per layer of a page: K as [G][D][16] (16 keys fill the lanes),
// V as [G][16][Dp], Dp = D rounded up to 16. Anonymous memory: untouched pages cost nothing; stale
// bytes are never read as keys (attention masks by position).
#pragma once

#include <vector>

#include "backends/backend.hpp"
#include "backends/cpu/kernels/table.hpp"
#include "tensor/buffer.hpp"

namespace cyb::cpu {

class CpuKvStore final : public KvStore {
 public:
  static Result<std::unique_ptr<KvStore>> create(const KvLayout& layout, std::uint32_t n_pages);

  const KvLayout& layout() const noexcept override { return layout_; }
  std::uint32_t n_pages() const noexcept override { return n_pages_; }
  std::uint64_t page_bytes() const noexcept override { return page_bytes_; }
  Result<void> copy_page(std::uint32_t from, std::uint32_t to) override;

  bool f32() const noexcept { return layout_.dtype == DType::kF32; }
  std::size_t element_bytes() const noexcept { return f32() ? 4 : 2; }
  /// K of one head in one page: [D][16].
  std::byte* k(std::uint32_t page, std::uint32_t layer, std::uint32_t head) noexcept {
    const Layer& l = layers_[layer];
    return memory_.data() + page * page_bytes_ + l.k_offset + head * l.k_head_bytes;
  }
  /// V of one head in one page: [16][Dp].
  std::byte* v(std::uint32_t page, std::uint32_t layer, std::uint32_t head) noexcept {
    const Layer& l = layers_[layer];
    return memory_.data() + page * page_bytes_ + l.v_offset + head * l.v_head_bytes;
  }

 private:
  struct Layer {
    std::uint64_t k_offset, v_offset, k_head_bytes, v_head_bytes;
  };
  CpuKvStore() = default;

  KvLayout layout_;
  std::uint32_t n_pages_ = 0;
  std::uint64_t page_bytes_ = 0;
  std::vector<Layer> layers_;
  Buffer memory_;
};

}  // namespace cyb::cpu
