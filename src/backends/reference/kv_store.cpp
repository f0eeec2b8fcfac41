// Page layout and conversion of the reference's KV store.
#include "backends/reference/kv_store.hpp"

#include <cstring>

#include "base/checked.hpp"
#include "base/half.hpp"

namespace cyb::reference {
namespace {

void store_row(DType dtype, const float* from, std::byte* to, std::size_t n) noexcept {
  if (dtype == DType::kF32) {
    std::memcpy(to, from, n * sizeof(float));
    return;
  }
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  for (std::size_t i = 0; i < n; ++i) halves[i] = f32_to_f16(from[i]);
}

void load_row(DType dtype, const std::byte* from, float* to, std::size_t n) noexcept {
  if (dtype == DType::kF32) {
    std::memcpy(to, from, n * sizeof(float));
    return;
  }
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  for (std::size_t i = 0; i < n; ++i) to[i] = f16_to_f32(halves[i]);
}

}  // namespace

Result<std::unique_ptr<ReferenceKvStore>> ReferenceKvStore::create(
    std::shared_ptr<DeviceMemory> memory, const KvLayout& layout, std::uint32_t n_pages) {
  if (layout.dtype != DType::kF32 && layout.dtype != DType::kF16) {
    return fail(invalid_config("kv dtype", "the reference stores f32 or f16"));
  }
  if (layout.page_tokens == 0) return fail(invalid_config("kv page_tokens", "must be at least 1"));
  std::unique_ptr<ReferenceKvStore> store(new ReferenceKvStore);
  store->layout_ = layout;
  store->n_pages_ = n_pages;
  store->element_bytes_ = format_info(layout.dtype).block_bytes;
  std::uint64_t offset = 0;
  for (const KvLayerShape& layer : layout.layers) {
    store->layer_offsets_.push_back(offset);
    offset += std::uint64_t{2} * layer.n_kv_heads * layer.head_dim * layout.page_tokens *
              store->element_bytes_;
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

std::byte* ReferenceKvStore::row(const KvRows& rows, std::uint32_t position, std::uint32_t g,
                                 unsigned which) const noexcept {
  const KvLayerShape& shape = layout_.layers[rows.layer];
  const std::uint32_t page = rows.pages[position / layout_.page_tokens];
  const std::size_t in_page = position % layout_.page_tokens;
  const std::size_t head = (std::size_t{which} * shape.n_kv_heads + g) * layout_.page_tokens;
  return block_->data() + page * page_bytes_ + layer_offsets_[rows.layer] +
         (head + in_page) * shape.head_dim * element_bytes_;
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
