// WeightTable: one Weight per (tensor, use); constants own their values because backends may use
// them in place.
#include "paths/weight_table.hpp"

#include <algorithm>

#include "paths/tensor_source.hpp"

namespace cyb {

WeightTable::WeightTable(std::shared_ptr<const Model> model, std::shared_ptr<Backend> backend,
                         std::shared_ptr<const PackCache> cache)
    : model_(std::move(model)), backend_(std::move(backend)), cache_(std::move(cache)) {}

std::string WeightTable::pack_key(std::string_view name, WeightUse use) {
  return std::string(name) + "/" + std::to_string(static_cast<int>(use));
}

WeightSource WeightTable::source_of(const Model& model, const TensorEntry& entry) {
  return {entry.name, entry.dtype, entry.shape, model.tensor_bytes(entry)};
}

Result<const Weight*> WeightTable::get(std::string_view name, WeightUse use) {
  const std::string key = pack_key(name, use);
  if (const auto it = weights_.find(key); it != weights_.end()) return it->second.get();
  if (const auto it = weights_by_value_.find(key); it != weights_by_value_.end()) return it->second;
  if (const auto it = added_.find(name); it != added_.end()) {
    const Added& added = it->second;
    const WeightSource source{it->first, DType::kF32, added.shape,
                              std::as_bytes(std::span(added.values))};
    CYB_ASSIGN(std::unique_ptr<Weight> weight, backend_->load_weight(source, use, {}));
    return weights_.emplace(key, std::move(weight)).first->second.get();
  }
  const TensorEntry* entry = model_->find_tensor(name);
  if (entry == nullptr) return fail(missing_tensor(name, model_->model_type()));
  if (use == WeightUse::kVector && entry->dtype != DType::kF32) {
    CYB_ASSIGN(std::vector<float> values, ModelTensors(*model_).read_f32(name));
    CYB_ASSIGN(const Weight* weight,
               add_constant(std::string(name), entry->shape, std::move(values)));
    weights_by_value_.emplace(key, weight);
    return weight;
  }
  const WeightSource source = source_of(*model_, *entry);
  std::span<const std::byte> packed;
  if (cache_ != nullptr) {
    if (const std::uint64_t size = backend_->packed_bytes(source, use); size != 0) {
      packed = cache_->find(key, size);
    }
  }
  auto loaded = backend_->load_weight(source, use, packed);
  if (!loaded) return fail(std::move(loaded).error().in("tensor \"" + std::string(name) + "\""));
  count(source, use, (*loaded)->own_bytes(), packed.size());
  return weights_.emplace(key, *std::move(loaded)).first->second.get();
}

/// A matrix that was packed is not read where it is stored any more.
void WeightTable::count(const WeightSource& source, WeightUse use, std::uint64_t own,
                        std::uint64_t cached) {
  cached_bytes_ += cached;
  const bool gathers =
      (static_cast<unsigned>(use) & static_cast<unsigned>(WeightUse::kGather)) != 0;
  if (own != 0 && !gathers) {
    model_->release(source.bytes);
  } else if (model_->is_mapped(source.bytes) && mapped_.insert(source.name).second) {
    mapped_bytes_ += source.bytes.size();
  }
}

Result<const Weight*> WeightTable::add_constant(std::string name, const Shape& shape,
                                                std::vector<float> values) {
  auto constant = std::make_unique<Constant>();
  constant->values = std::move(values);
  const WeightSource source{std::move(name), DType::kF32, shape,
                            std::as_bytes(std::span(constant->values))};
  CYB_ASSIGN(constant->weight, backend_->load_weight(source, WeightUse::kVector, {}));
  constants_.push_back(std::move(constant));
  return constants_.back()->weight.get();
}

Result<void> WeightTable::add_tensor(std::string name, const Shape& shape,
                                     std::vector<float> values) {
  if (values.size() != static_cast<std::size_t>(shape.count()))
    return fail(internal_error("an added tensor of another size than its shape"));
  if (!added_.emplace(std::move(name), Added{shape, std::move(values)}).second)
    return fail(internal_error("a tensor was added twice"));
  return {};
}

std::optional<TensorSpec> WeightTable::find(std::string_view name) const {
  if (const auto it = added_.find(name); it != added_.end())
    return TensorSpec::of(DType::kF32, it->second.shape);
  return ModelTensors(*model_).find(name);
}

std::uint64_t WeightTable::own_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const auto& [key, weight] : weights_) total += weight->own_bytes();
  total -= std::min(total, cached_bytes_);
  total += model_->copied_bytes();
  for (const auto& [name, added] : added_) total += added.values.size() * sizeof(float);
  for (const auto& constant : constants_) {
    total += constant->weight->own_bytes() + constant->values.size() * sizeof(float);
  }
  return total;
}

}  // namespace cyb
