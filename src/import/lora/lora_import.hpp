// LoRA adapters of other programs: a PEFT folder (adapter_config.json, adapter_model.safetensors)
// or a GGUF file. What is read is applied whole; everything else an adapter may hold is refused by
// name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/model.hpp"
#include "paths/lora.hpp"

namespace cyb {

/// `path`: a PEFT folder, its adapter_model.safetensors, or a GGUF file. Errors: Io, L codes
/// (docs/errors.md), JSON, SAFETENSORS and GGUF for damaged files, SourceEncoding.
Result<std::shared_ptr<const LoraAdapter>> read_adapter(const std::string& path,
                                                        const Model& model);

/// The same of bytes: `config` is the text of adapter_config.json.
Result<LoraAdapter> parse_peft_adapter(std::string_view config, std::span<const std::byte> tensors,
                                       const Model& model);
Result<LoraAdapter> parse_gguf_adapter(std::span<const std::byte> bytes, const Model& model);

/// True for a folder that holds an adapter and no model, and for an adapter's safetensors file.
bool is_adapter_source(const std::string& path);

/// L12: an adapter where a model is wanted.
Error adapter_is_no_model(std::string_view path);

}  // namespace cyb
