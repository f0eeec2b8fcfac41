// TensorSource: the tensors of a model as a family sees them at bind time: specs by name, and small
// tensors as f32.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/model.hpp"
#include "ops/dim.hpp"

namespace cyb {

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Dtype and shape; nullopt when the model has no such tensor.
  virtual std::optional<TensorSpec> find(std::string_view name) const = 0;
  /// All values decoded to f32. Errors: MissingTensor.
  virtual Result<std::vector<float>> read_f32(std::string_view name) const = 0;
};

/// Tensors of an opened model. Borrows `model`.
class ModelTensors final : public TensorSource {
 public:
  explicit ModelTensors(const Model& model) : model_(model) {}
  std::optional<TensorSpec> find(std::string_view name) const override;
  Result<std::vector<float>> read_f32(std::string_view name) const override;

 private:
  const Model& model_;
};

}  // namespace cyb
