// KV pages of the reference: per page and layer K [G, page_tokens, D], then V likewise; f32, or
// f16, q8 or q4 rounded on write (rows of whole blocks). KvAccess is what steps use: rows of one
// sequence as f32 [G, n, D].
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.hpp"
#include "backends/reference/device_memory.hpp"

namespace cyb::reference {

/// Positions [begin, begin + n) of one sequence, whose pages are listed from position 0 on.
struct KvRows {
  std::uint32_t layer = 0;
  std::span<const std::uint32_t> pages;
  std::uint32_t begin = 0, n = 0;
};

class KvAccess {
 public:
  virtual ~KvAccess() = default;
  virtual const KvLayout& access_layout() const noexcept = 0;
  virtual std::uint32_t access_pages() const noexcept = 0;
  /// k, v [G, n, D].
  virtual void write(const KvRows& rows, const float* k, const float* v) noexcept = 0;
  virtual void read(const KvRows& rows, float* k, float* v) const noexcept = 0;
};

class ReferenceKvStore final : public KvStore, public KvAccess {
 public:
  /// Errors: InvalidConfig (dtype, page size), OutOfMemory.
  static Result<std::unique_ptr<ReferenceKvStore>> create(std::shared_ptr<DeviceMemory> memory,
                                                          const KvLayout& layout,
                                                          std::uint32_t n_pages);

  const KvLayout& layout() const noexcept override { return layout_; }
  std::uint32_t n_pages() const noexcept override { return n_pages_; }
  std::uint64_t page_bytes() const noexcept override { return page_bytes_; }
  Result<void> copy_page(std::uint32_t from, std::uint32_t to) override;
  Result<void> read_page(std::uint32_t page, std::span<std::byte> to) const override;
  Result<void> write_page(std::uint32_t page, std::span<const std::byte> from) override;

  const KvLayout& access_layout() const noexcept override { return layout_; }
  std::uint32_t access_pages() const noexcept override { return n_pages_; }
  void write(const KvRows& rows, const float* k, const float* v) noexcept override;
  void read(const KvRows& rows, float* k, float* v) const noexcept override;

 private:
  ReferenceKvStore() = default;
  /// First element of head g of K (which = 0) or V (1) at `position`.
  std::byte* row(const KvRows& rows, std::uint32_t position, std::uint32_t g,
                 unsigned which) const noexcept;

  std::shared_ptr<DeviceMemory> memory_;
  std::unique_ptr<DeviceBlock> block_;
  KvLayout layout_;
  std::uint32_t n_pages_ = 0;
  std::uint64_t page_bytes_ = 0;
  std::vector<std::uint64_t> layer_offsets_;  // bytes inside a page
};

}  // namespace cyb::reference
