// Page layout and copies of the KV store.
#include "backends/cpu/kv_store.hpp"

#include <cstring>

#include "base/checked.hpp"

namespace cyb::cpu {

Result<std::unique_ptr<KvStore>> CpuKvStore::create(const KvLayout& layout, std::uint32_t n_pages) {
  const bool quantised = layout.dtype == DType::kQ8 || layout.dtype == DType::kQ4;
  if (layout.dtype != DType::kF16 && layout.dtype != DType::kF32 && !quantised) {
    return fail(unsupported_op("KvCache", "cpu", dtype_name(layout.dtype)));
  }
  if (layout.page_tokens != kPageTokens)
    return fail(internal_error("cpu keeps KV pages of 16 positions"));
  std::unique_ptr<CpuKvStore> store(new CpuKvStore);
  store->layout_ = layout;
  store->n_pages_ = n_pages;
  std::uint64_t at = 0;
  for (const KvLayerShape& shape : layout.layers) {
    const std::uint64_t element = store->f32() ? 4 : 2;
    const std::uint64_t padded = (std::uint64_t{shape.head_dim} + 15) / 16 * 16;
    Layer layer{};
    layer.k_head_bytes = std::uint64_t{shape.head_dim} * kPageTokens * element;
    layer.v_head_bytes = padded * kPageTokens * element;
    if (quantised) {
      layer.k_head_bytes = layer.v_head_bytes = KvCodes{layout.dtype, shape.head_dim}.head_bytes();
    }
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

Result<void> CpuKvStore::read_page(std::uint32_t page, std::span<std::byte> to) const {
  if (page >= n_pages_ || to.size() != page_bytes_) return fail(internal_error("no such KV page"));
  std::memcpy(to.data(), memory_.data() + page * page_bytes_, page_bytes_);
  return {};
}

Result<void> CpuKvStore::write_page(std::uint32_t page, std::span<const std::byte> from) {
  if (page >= n_pages_ || from.size() != page_bytes_)
    return fail(internal_error("no such KV page"));
  std::memcpy(memory_.data() + page * page_bytes_, from.data(), page_bytes_);
  return {};
}

void CpuKvStore::write(const KernelTable& kernels, const Slot& at, const float* k, const float* v,
                       std::uint16_t* scratch) noexcept {
  const std::size_t dim = layout_.layers[at.layer].head_dim, padded = (dim + 15) / 16 * 16;
  std::byte* k_page = this->k(at.page, at.layer, at.head);
  std::byte* v_page = this->v(at.page, at.layer, at.head);
  if (quantised()) {
    codes(at.layer).write_k(k, at.slot, k_page);
    codes(at.layer).write_v(v, at.slot, v_page);
    return;
  }
  if (f32()) {
    auto* to = reinterpret_cast<float*>(k_page) + at.slot;
    for (std::size_t d = 0; d < dim; ++d) to[kPageTokens * d] = k[d];
    std::memcpy(reinterpret_cast<float*>(v_page) + at.slot * padded, v, dim * sizeof(float));
    return;
  }
  kernels.to_f16(k, dim, scratch);
  auto* to = reinterpret_cast<std::uint16_t*>(k_page) + at.slot;
  for (std::size_t d = 0; d < dim; ++d) to[kPageTokens * d] = scratch[d];
  kernels.to_f16(v, dim, reinterpret_cast<std::uint16_t*>(v_page) + at.slot * padded);
}

const float* CpuKvStore::read_k(const KernelTable& kernels, const Slot& at, float* to) noexcept {
  const std::byte* page = k(at.page, at.layer, at.head);
  if (f32()) return reinterpret_cast<const float*>(page);
  if (quantised()) {
    codes(at.layer).read_k(page, to);
  } else {
    kernels.from_f16(reinterpret_cast<const std::uint16_t*>(page),
                     layout_.layers[at.layer].head_dim * kPageTokens, to);
  }
  return to;
}

const float* CpuKvStore::read_v(const KernelTable& kernels, const Slot& at, float* to) noexcept {
  const std::byte* page = v(at.page, at.layer, at.head);
  const std::size_t padded = (layout_.layers[at.layer].head_dim + 15) / 16 * 16;
  if (f32()) return reinterpret_cast<const float*>(page);
  if (quantised()) {
    codes(at.layer).read_v(page, padded, to);
  } else {
    kernels.from_f16(reinterpret_cast<const std::uint16_t*>(page), padded * kPageTokens, to);
  }
  return to;
}

}  // namespace cyb::cpu
