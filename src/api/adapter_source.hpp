// LoRA adapters as a user names them: a PEFT folder, its safetensors file or a GGUF file, with a
// weight.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/model.hpp"
#include "paths/lora.hpp"

namespace cyb::api {

struct AdapterName {
  std::string path;
  double weight = 1.0;
};

/// "PATH" or "PATH=WEIGHT". A path that exists is one, whatever it holds. Errors: InvalidInput for
/// what is neither.
Result<AdapterName> adapter_name(std::string_view text);

/// Reads each for `model`, in this order. Errors: as read_adapter.
Result<std::vector<LoraUse>> read_adapters(std::span<const AdapterName> names, const Model& model);

}  // namespace cyb::api
