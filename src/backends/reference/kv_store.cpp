// Page layout and conversion of the reference's KV store.
#include "backends/reference/kv_store.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "base/half.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::reference {
namespace {

constexpr std::size_t kBlock = 32;

/// Of D values.
std::uint64_t row_bytes(DType dtype, std::uint32_t head_dim) noexcept {
  const FormatInfo& format = format_info(dtype);
  return (std::uint64_t{head_dim} + format.block_values - 1) / format.block_values *
         format.block_bytes;
}

void store_row(DType dtype, const float* from, std::byte* to, std::size_t n) noexcept {
  if (dtype == DType::kF32) {
    std::memcpy(to, from, n * sizeof(float));
    return;
  }
  if (dtype == DType::kF16) {
    auto* halves = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < n; ++i) halves[i] = f32_to_f16(from[i]);
    return;
  }
  for (std::size_t at = 0; at < n; at += kBlock, to += format_info(dtype).block_bytes) {
    std::array<float, kBlock> values{};
    std::copy_n(from + at, std::min(kBlock, n - at), values.begin());
    dtype == DType::kQ8 ? formats::encode_q8(values, to) : formats::encode_q4(values, to);
  }
}

void load_row(DType dtype, const std::byte* from, float* to, std::size_t n) noexcept {
  if (dtype == DType::kF32) {
    std::memcpy(to, from, n * sizeof(float));
    return;
  }
  if (dtype == DType::kF16) {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
    for (std::size_t i = 0; i < n; ++i) to[i] = f16_to_f32(halves[i]);
    return;
  }
  const FormatInfo& format = format_info(dtype);
  for (std::size_t at = 0; at < n; at += kBlock, from += format.block_bytes) {
    std::array<float, kBlock> values;
    format.decode(from, values.data(), kBlock);
    std::copy_n(values.begin(), std::min(kBlock, n - at), to + at);
  }
}

}  // namespace

Result<std::unique_ptr<ReferenceKvStore>> ReferenceKvStore::create(
    std::shared_ptr<DeviceMemory> memory, const KvLayout& layout, std::uint32_t n_pages) {
  const DType kinds[] = {DType::kF32, DType::kF16, DType::kQ8, DType::kQ4};
  if (std::ranges::find(kinds, layout.dtype) == std::end(kinds)) {
    return fail(invalid_config("kv dtype", "the reference stores f32, f16, q8 or q4"));
  }
  if (layout.page_tokens == 0) return fail(invalid_config("kv page_tokens", "must be at least 1"));
  std::unique_ptr<ReferenceKvStore> store(new ReferenceKvStore);
  store->layout_ = layout;
  store->n_pages_ = n_pages;
  std::uint64_t offset = 0;
  for (const KvLayerShape& layer : layout.layers) {
    store->layer_offsets_.push_back(offset);
    offset += std::uint64_t{2} * layer.n_kv_heads * layout.page_tokens *
              row_bytes(layout.dtype, layer.head_dim);
  }
  store->page_bytes_ = offset;
  const auto total = checked_mul(offset, n_pages);
  if (!total) return fail(out_of_memory("kv cache", UINT64_MAX, 0));
  CYB_ASSIGN(store->block_, memory->allocate(*total, "kv cache"));
  store->memory_ = std::move(memory);
  return store;
}

Result<void> ReferenceKvStore::copy_page(std::uint32_t from, std::uint32_t to) {
  if (from >= n_pages_ || to >= n_pages_) return fail(internal_error("kv page out of range"));
  if (from == to) return {};
  memory_->execute([&] {
    std::memcpy(block_->data() + to * page_bytes_, block_->data() + from * page_bytes_,
                page_bytes_);
  });
  return {};
}

Result<void> ReferenceKvStore::read_page(std::uint32_t page, std::span<std::byte> to) const {
  if (page >= n_pages_ || to.size() != page_bytes_) return fail(internal_error("no such kv page"));
  memory_->execute(
      [&] { std::memcpy(to.data(), block_->data() + page * page_bytes_, page_bytes_); });
  return {};
}

Result<void> ReferenceKvStore::write_page(std::uint32_t page, std::span<const std::byte> from) {
  if (page >= n_pages_ || from.size() != page_bytes_)
    return fail(internal_error("no such kv page"));
  memory_->execute(
      [&] { std::memcpy(block_->data() + page * page_bytes_, from.data(), page_bytes_); });
  return {};
}

std::byte* ReferenceKvStore::row(const KvRows& rows, std::uint32_t position, std::uint32_t g,
                                 unsigned which) const noexcept {
  const KvLayerShape& shape = layout_.layers[rows.layer];
  const std::uint32_t page = rows.pages[position / layout_.page_tokens];
  const std::size_t in_page = position % layout_.page_tokens;
  const std::size_t head = (std::size_t{which} * shape.n_kv_heads + g) * layout_.page_tokens;
  return block_->data() + page * page_bytes_ + layer_offsets_[rows.layer] +
         (head + in_page) * row_bytes(layout_.dtype, shape.head_dim);
}

void ReferenceKvStore::write(const KvRows& rows, const float* k, const float* v) noexcept {
  const KvLayerShape& shape = layout_.layers[rows.layer];
  for (std::uint32_t g = 0; g < shape.n_kv_heads; ++g) {
    for (std::uint32_t i = 0; i < rows.n; ++i) {
      const std::size_t at = (std::size_t{g} * rows.n + i) * shape.head_dim;
      store_row(layout_.dtype, k + at, row(rows, rows.begin + i, g, 0), shape.head_dim);
      store_row(layout_.dtype, v + at, row(rows, rows.begin + i, g, 1), shape.head_dim);
    }
  }
}

void ReferenceKvStore::read(const KvRows& rows, float* k, float* v) const noexcept {
  const KvLayerShape& shape = layout_.layers[rows.layer];
  for (std::uint32_t g = 0; g < shape.n_kv_heads; ++g) {
    for (std::uint32_t i = 0; i < rows.n; ++i) {
      const std::size_t at = (std::size_t{g} * rows.n + i) * shape.head_dim;
      load_row(layout_.dtype, row(rows, rows.begin + i, g, 0), k + at, shape.head_dim);
      load_row(layout_.dtype, row(rows, rows.begin + i, g, 1), v + at, shape.head_dim);
    }
  }
}

}  // namespace cyb::reference
