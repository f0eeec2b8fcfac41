// LoRA adapters for tests: PEFT folders of any modules, whose A and B are functions of their names.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/tiny_checkpoint.hpp"

namespace cyb::test {

/// One adapted module: A [r, in], B [out, r] in f32.
struct LoraModule {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  std::int64_t out = 0, in = 0, rank = 0;
  std::vector<float> a, b;
};

LoraModule lora_module(const std::string& name, std::int64_t out, std::int64_t in,
                       std::int64_t rank);
/// All matrices of a tiny checkpoint but tables, as its own file names them.
std::vector<LoraModule> tiny_lora_modules(const std::string& model, std::int64_t rank);

/// What PEFT writes for rank `rank` and `alpha`, with nothing else on.
nlohmann::json lora_config(std::int64_t rank, double alpha);
std::vector<StoredTensor> lora_tensors(const std::vector<LoraModule>& modules);
void write_lora(const std::string& folder, const nlohmann::json& config,
                const std::vector<StoredTensor>& tensors);

/// W + scale B A for each module whose weight is among the tensors; `turned`: stored [in, out].
void merge_lora(std::vector<StoredTensor>& tensors, const std::vector<LoraModule>& modules,
                double scale, bool turned);

}  // namespace cyb::test
