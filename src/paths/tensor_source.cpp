// ModelTensors: specs and decoded values straight from the mapping.
#include "paths/tensor_source.hpp"

namespace cyb {

std::optional<TensorSpec> ModelTensors::find(std::string_view name) const {
  const TensorEntry* entry = model_.find_tensor(name);
  if (entry == nullptr) return std::nullopt;
  return TensorSpec::of(entry->dtype, entry->shape);
}

Result<std::vector<float>> ModelTensors::read_f32(std::string_view name) const {
  const TensorEntry* entry = model_.find_tensor(name);
  if (entry == nullptr) return fail(missing_tensor(name, model_.model_type()));
  const FormatInfo& format = format_info(entry->dtype);
  if (format.decode == nullptr) {
    return fail(not_built("decoding of " + std::string(format.name) + " tensors"));
  }
  std::vector<float> out(static_cast<std::size_t>(entry->shape.count()));
  format.decode(model_.tensor_bytes(*entry).data(), out.data(), out.size());
  return out;
}

}  // namespace cyb
