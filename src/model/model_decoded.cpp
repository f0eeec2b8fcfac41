// Models with some tensors held as f32, decoded on first use under the mutex of what is lazy.
#include <algorithm>
#include <limits>

#include "model/model.hpp"
#include "model/model_impl.hpp"
#include "model/scale.hpp"

namespace cyb {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::shared_ptr<const Model> Model::with_decoded(
    std::shared_ptr<const Model> model, const std::function<bool(const TensorEntry&)>& wanted) {
  return Impl::held(std::move(model), wanted, false);
}

std::shared_ptr<const Model> Model::with_measured(
    std::shared_ptr<const Model> model, const std::function<bool(const TensorEntry&)>& wanted) {
  return Impl::held(std::move(model), wanted, true);
}

std::shared_ptr<const Model> Model::Impl::held(
    std::shared_ptr<const Model> model, const std::function<bool(const TensorEntry&)>& wanted,
    bool measures) {
  std::vector<TensorEntry> tensors = model->tensors();
  bool any = false;
  for (TensorEntry& entry : tensors) {
    const auto size = cyb::tensor_bytes(DType::kF32, entry.shape);
    const bool can = entry.dtype != DType::kF32 && size &&
                     format_info(entry.dtype).decode != nullptr && wanted(entry);
    if (!can) continue;
    entry.dtype = DType::kF32;
    entry.size_bytes = *size;
    any = true;
  }
  if (!any) return model;
  std::shared_ptr<Model> out(new Model);
  const Impl& from = *model->impl_;
  Impl& to = *out->impl_;
  to.file = from.file;
  to.path = from.path;
  to.bytes = from.bytes;
  to.split = from.split;
  to.stated = from.stated;
  to.name = from.name;
  to.model_type = from.model_type;
  to.config = from.config;
  to.chat = from.chat;
  to.by_name = from.by_name;
  to.misaligned = from.misaligned;
  to.tensors = std::move(tensors);
  to.base = std::move(model);
  to.measures = measures;
  return out;
}

std::span<const std::byte> Model::Impl::measured_bytes(const TensorEntry& entry) const noexcept {
  const auto size = static_cast<std::size_t>(entry.size_bytes);
  const auto found = measured.find(entry.offset);
  if (found != measured.end()) return found->second.bytes().first(size);
  // A smaller space than a mapping would be memory.
  auto space = Buffer::reserve(std::max(entry.size_bytes, std::uint64_t{1} << 20), "weights");
  if (!space) return {};
  copied_bytes += entry.size_bytes;
  return measured.emplace(entry.offset, *std::move(space)).first->second.bytes().first(size);
}

std::span<const std::byte> Model::Impl::decoded_bytes(const TensorEntry& entry) const noexcept {
  const TensorEntry& stored = *base->find_tensor(entry.name);
  const auto size = static_cast<std::size_t>(entry.size_bytes);
  if (size == 0) return {};
  const std::lock_guard lock(lazy_mutex);
  if (measures) return measured_bytes(entry);
  const auto found = copies.find(entry.offset);
  if (found != copies.end()) return {found->second.get(), size};
  const std::span<const std::byte> source = base->tensor_bytes(stored);
  if (source.empty() || size > std::numeric_limits<std::size_t>::max() - kAlignment) return {};
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  AlignedBytes copy(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (copy == nullptr) return {};
  auto* values = reinterpret_cast<float*>(copy.get());
  format_info(stored.dtype).decode(source.data(), values, size / sizeof(float));
  const TensorEntry* scale = base->find_tensor(entry.name + ".scale");
  if (scale != nullptr && has_scale_sibling(stored.dtype)) {
    const std::span<const std::byte> factors = base->tensor_bytes(*scale);
    if (factors.empty()) return {};
    apply_scale(entry.shape, scale->shape, reinterpret_cast<const float*>(factors.data()), 0,
                std::span(values, size / sizeof(float)));
  }
  base->release(source);  // read once
  copied_bytes += size;
  return {copies.emplace(entry.offset, std::move(copy)).first->second.get(), size};
}

}  // namespace cyb
