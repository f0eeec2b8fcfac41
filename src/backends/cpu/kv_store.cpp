// Page layout and copies of the KV store.
#include "backends/cpu/kv_store.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"

namespace cyb::cpu {
namespace {

constexpr std::uint64_t kSystemPage = 4096;  // what the system takes back

std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + kSystemPage - 1) / kSystemPage * kSystemPage;
}

}  // namespace

CpuKvStore::Layer CpuKvStore::lay_out(const KvLayerShape& shape, std::uint64_t at) const {
  const std::uint64_t element = f32() ? 4 : 2;
  const std::uint64_t padded = (std::uint64_t{shape.head_dim} + 15) / 16 * 16;
  Layer layer{};
  layer.k_head_bytes = std::uint64_t{shape.head_dim} * kPageTokens * element;
  layer.v_head_bytes = padded * kPageTokens * element;
  if (quantised()) {
    layer.k_head_bytes = layer.v_head_bytes = KvCodes{layout_.dtype, shape.head_dim}.head_bytes();
  }
  layer.k_offset = at;
  layer.v_offset = at + shape.n_kv_heads * layer.k_head_bytes;
  return layer;
}

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
  Region &full = store->full_, &windowed = store->windowed_;
  for (const KvLayerShape& shape : layout.layers) {
    Region& region = shape.window == 0 ? full : windowed;
    const Layer layer = store->lay_out(shape, region.stride);
    region.stride = (layer.v_offset + shape.n_kv_heads * layer.v_head_bytes + 63) / 64 * 64;
    store->layers_.push_back(layer);
  }
  windowed.stride = whole_pages(windowed.stride);
  const auto full_bytes = checked_mul(full.stride, n_pages);
  const auto windowed_bytes = checked_mul(windowed.stride, n_pages);
  const auto bytes = full_bytes && windowed_bytes && *full_bytes < ~kSystemPage
                         ? checked_add(whole_pages(*full_bytes), *windowed_bytes)
                         : std::nullopt;
  if (!bytes) return fail(out_of_memory("cpu", ~std::uint64_t{0}, available_memory_bytes()));
  windowed.base = windowed.stride == 0 ? 0 : whole_pages(*full_bytes);
  for (std::size_t i = 0; i < store->layers_.size(); ++i) {
    const Region& region = layout.layers[i].window == 0 ? full : windowed;
    store->layers_[i].base = region.base;
    store->layers_[i].stride = region.stride;
  }
  CYB_ASSIGN(store->memory_, Buffer::allocate(windowed.stride == 0 ? *full_bytes : *bytes, "cpu"));
  return std::unique_ptr<KvStore>(std::move(store));
}

Result<void> CpuKvStore::copy_page(std::uint32_t from, std::uint32_t to) {
  if (from >= n_pages_ || to >= n_pages_) return fail(internal_error("KV page out of range"));
  if (from == to) return {};
  for (const Region& region : {full_, windowed_}) {
    std::ranges::copy(part(region, from), part(region, to).begin());
  }
  return {};
}

Result<void> CpuKvStore::read_page(std::uint32_t page, std::span<std::byte> to) const {
  if (page >= n_pages_ || to.size() != page_bytes()) return fail(internal_error("no such KV page"));
  std::ranges::copy(part(full_, page), to.begin());
  std::ranges::copy(part(windowed_, page), to.subspan(full_.stride).begin());
  return {};
}

Result<void> CpuKvStore::write_page(std::uint32_t page, std::span<const std::byte> from) {
  if (page >= n_pages_ || from.size() != page_bytes())
    return fail(internal_error("no such KV page"));
  std::ranges::copy(from.first(full_.stride), part(full_, page).begin());
  std::ranges::copy(from.subspan(full_.stride), part(windowed_, page).begin());
  return {};
}

void CpuKvStore::forget_windowed(std::uint32_t page) noexcept {
  if (page < n_pages_) memory_.discard(windowed_.base + page * windowed_.stride, windowed_.stride);
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
