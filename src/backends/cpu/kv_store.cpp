// Page layout and copies of the KV store.
#include "backends/cpu/kv_store.hpp"

#include <cstring>

#include "base/checked.hpp"

namespace cyb::cpu {

Result<std::unique_ptr<KvStore>> CpuKvStore::create(const KvLayout& layout, std::uint32_t n_pages) {
  if (layout.dtype != DType::kF16 && layout.dtype != DType::kF32) {
    return fail(unsupported_op("KvCache", "cpu", dtype_name(layout.dtype)));
  }
  if (layout.page_tokens != kPageTokens)
    return fail(internal_error("cpu keeps KV pages of 16 positions"));
  std::unique_ptr<CpuKvStore> store(new CpuKvStore);
  store->layout_ = layout;
  store->n_pages_ = n_pages;
  std::uint64_t at = 0;
  for (const KvLayerShape& shape : layout.layers) {
    const std::uint64_t element = store->element_bytes();
    const std::uint64_t padded = (std::uint64_t{shape.head_dim} + 15) / 16 * 16;
    Layer layer{};
    layer.k_head_bytes = std::uint64_t{shape.head_dim} * kPageTokens * element;
    layer.v_head_bytes = padded * kPageTokens * element;
    layer.k_offset = at;
    layer.v_offset = at + shape.n_kv_heads * layer.k_head_bytes;
    at = (layer.v_offset + shape.n_kv_heads * layer.v_head_bytes + 63) / 64 * 64;
    store->layers_.push_back(layer);
  }
  store->page_bytes_ = at;
  const auto bytes = checked_mul(at, n_pages);
  if (!bytes) return fail(out_of_memory("cpu", ~std::uint64_t{0}, available_memory_bytes()));
  CYB_ASSIGN(store->memory_, Buffer::allocate(*bytes, "cpu"));
  return std::unique_ptr<KvStore>(std::move(store));
}

Result<void> CpuKvStore::copy_page(std::uint32_t from, std::uint32_t to) {
  if (from >= n_pages_ || to >= n_pages_) return fail(internal_error("KV page out of range"));
  if (from != to)
    std::memcpy(memory_.data() + to * page_bytes_, memory_.data() + from * page_bytes_,
                page_bytes_);
  return {};
}

}  // namespace cyb::cpu
