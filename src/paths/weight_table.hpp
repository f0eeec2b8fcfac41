// WeightTable: the weights of one model on one backend, loaded on first request, with an optional
// cache of packed panels.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "model/model.hpp"
#include "ops/dim.hpp"
#include "paths/lora.hpp"

namespace cyb {

/// Packed weights kept between starts. Implemented by the runtime; a table without one packs into
/// its own memory.
class PackCache {
 public:
  virtual ~PackCache() = default;
  /// Packed bytes of `key` ("name/use"), `size` long, valid as long as the cache; empty: not there.
  virtual std::span<const std::byte> find(std::string_view key, std::uint64_t size) const = 0;
};

class WeightTable {
 public:
  /// `cache` may be null; both it and the model are kept alive by the table.
  WeightTable(std::shared_ptr<const Model> model, std::shared_ptr<Backend> backend,
              std::shared_ptr<const PackCache> cache = nullptr);

  const Model& model() const noexcept { return *model_; }
  Backend& backend() const noexcept { return *backend_; }
  /// The weight for this use; the same pointer each time. Errors: MissingTensor, what the backend
  /// says.
  Result<const Weight*> get(std::string_view name, WeightUse use);
  /// A tensor computed at load (norm gain + 1, rope factors, a constant). The bytes are moved in.
  /// `name` is for messages; use kVector.
  Result<const Weight*> add_constant(std::string name, const Shape& shape,
                                     std::vector<float> values);
  /// An f32 tensor beside the model's, asked for by name in any use; it comes before one of the
  /// model. The bytes are moved in. Errors: Internal for a name added twice or another size.
  Result<void> add_tensor(std::string name, const Shape& shape, std::vector<float> values);
  /// Dtype and shape of a tensor of the model or an added one.
  std::optional<TensorSpec> find(std::string_view name) const;
  /// The branches that the forward has beside weights. Set before it is built.
  void set_lora(LoraTerms terms) { lora_ = std::move(terms); }
  const LoraTerms& lora() const noexcept { return lora_; }
  /// Bytes beside the model's mapping and the cache: packed or decoded by the backend, constants,
  /// added tensors, and what the model itself holds decoded.
  std::uint64_t own_bytes() const noexcept;
  /// Bytes of the cache that weights are read from.
  std::uint64_t cached_bytes() const noexcept { return cached_bytes_; }
  /// Bytes of the mapped file that stay in use: tensors that are read as they are stored.
  std::uint64_t mapped_bytes() const noexcept { return mapped_bytes_; }

  static std::string pack_key(std::string_view name, WeightUse use);
  static WeightSource source_of(const Model& model, const TensorEntry& entry);

 private:
  struct Constant {
    std::vector<float> values;
    std::unique_ptr<Weight> weight;
  };
  struct Added {
    Shape shape;
    std::vector<float> values;
  };
  std::shared_ptr<const Model> model_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<const PackCache> cache_;
  std::map<std::string, std::unique_ptr<Weight>, std::less<>> weights_;  // by pack_key
  std::map<std::string, const Weight*, std::less<>>
      weights_by_value_;  // decoded ones, owned by constants_
  std::vector<std::unique_ptr<Constant>> constants_;
  std::map<std::string, Added, std::less<>> added_;
  LoraTerms lora_;
  void count(const WeightSource& source, WeightUse use, std::uint64_t own, std::uint64_t cached);
  std::set<std::string, std::less<>> mapped_;  // tensors that mapped_bytes_ counts
  std::uint64_t mapped_bytes_ = 0, cached_bytes_ = 0;
};

}  // namespace cyb
