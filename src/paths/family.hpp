// Family: an architecture written once. bind() reads config and tensors into a FamilyModel, whose
// body() emits the forward pass.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "model/config.hpp"
#include "paths/emit.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {

class FamilyModel {
 public:
  virtual ~FamilyModel() = default;
  /// Emits ids -> output "logits" [rows, V].
  virtual Result<void> body(Emit& emit) const = 0;
  virtual std::vector<KvLayerShape> kv_layers() const = 0;
  virtual std::uint32_t vocab_size() const = 0;
  virtual std::uint32_t max_positions() const = 0;
  /// True if the body reads this tensor: what an importer may not leave unread.
  virtual bool uses_tensor(std::string_view name) const = 0;
};

/// Binds config and tensors. Errors: F31 (config key), F32 (missing tensor), F33 (shape),
/// InvalidConfig.
using BindFn = Result<std::unique_ptr<FamilyModel>> (*)(const ConfigTable& config,
                                                        const TensorSource& tensors);

struct FamilyRow {
  std::string_view model_type;
  std::string_view family;  // "llama"
  BindFn bind;
};

/// Null where the curated registry has no such model_type.
const FamilyRow* find_family(std::string_view model_type) noexcept;
std::span<const FamilyRow> all_families() noexcept;

}  // namespace cyb
