// A and B of uneven sizes, so that a wrong scale or order shows.
#include "support/lora_files.hpp"

#include <cstring>
#include <filesystem>

namespace cyb::test {
namespace {

StoredTensor tensor(const std::string& name, std::vector<std::int64_t> shape,
                    const std::vector<float>& values) {
  StoredTensor out{name, "F32", std::move(shape), std::vector<std::byte>(values.size() * 4)};
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

bool is_adapted(const StoredTensor& tensor) {
  const auto has = [&](const char* part) { return tensor.name.find(part) != std::string::npos; };
  return tensor.shape.size() == 2 && tensor.name.ends_with(".weight") && !has("embed") &&
         !has("wte") && !has("wpe") && !has("norm") && !has("mtp_layers");
}

}  // namespace

LoraModule lora_module(const std::string& name, std::int64_t out, std::int64_t in,
                       std::int64_t rank) {
  LoraModule module{name, out, in, rank, {}, {}};
  module.a = recipe_weights("lora:" + name + ".a", {rank, in});
  module.b = recipe_weights("lora:" + name + ".b", {out, rank});
  return module;
}

std::vector<LoraModule> tiny_lora_modules(const std::string& model, std::int64_t rank) {
  std::vector<LoraModule> out;
  for (const StoredTensor& tensor : tiny_tensors(model)) {
    if (!is_adapted(tensor)) continue;
    const std::string module = tensor.name.substr(0, tensor.name.size() - 7);
    const bool turned = model == "gpt2" && module != "lm_head";
    out.push_back(
        lora_module(module, tensor.shape[turned ? 1 : 0], tensor.shape[turned ? 0 : 1], rank));
  }
  return out;
}

nlohmann::json lora_config(std::int64_t rank, double alpha) {
  return {{"peft_type", "LORA"}, {"task_type", "CAUSAL_LM"},
          {"r", rank},           {"lora_alpha", alpha},
          {"bias", "none"},      {"use_rslora", false},
          {"use_dora", false},   {"modules_to_save", nullptr}};
}

std::vector<StoredTensor> lora_tensors(const std::vector<LoraModule>& modules) {
  std::vector<StoredTensor> out;
  for (const LoraModule& m : modules) {
    out.push_back(tensor("base_model.model." + m.name + ".lora_A.weight", {m.rank, m.in}, m.a));
    out.push_back(tensor("base_model.model." + m.name + ".lora_B.weight", {m.out, m.rank}, m.b));
  }
  return out;
}

void write_lora(const std::string& folder, const nlohmann::json& config,
                const std::vector<StoredTensor>& tensors) {
  std::filesystem::create_directories(folder);
  write_file(folder + "/adapter_config.json", config.dump());
  write_safetensors(folder + "/adapter_model.safetensors", tensors);
}

void merge_lora(std::vector<StoredTensor>& tensors, const std::vector<LoraModule>& modules,
                double scale, bool turned) {
  for (const LoraModule& m : modules) {
    for (StoredTensor& t : tensors) {
      if (t.name != m.name + ".weight") continue;
      const bool swap = turned && m.name != "lm_head";
      auto* w = reinterpret_cast<float*>(t.bytes.data());
      for (std::int64_t o = 0; o < m.out; ++o) {
        for (std::int64_t i = 0; i < m.in; ++i) {
          double sum = 0;
          for (std::int64_t r = 0; r < m.rank; ++r) {
            sum += double{m.b[static_cast<std::size_t>(o * m.rank + r)]} *
                   double{m.a[static_cast<std::size_t>(r * m.in + i)]};
          }
          float& at = w[swap ? i * m.out + o : o * m.in + i];
          at = static_cast<float>(at + scale * sum);
        }
      }
    }
  }
}

}  // namespace cyb::test
