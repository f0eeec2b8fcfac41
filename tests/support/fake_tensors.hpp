// A TensorSource of shapes alone, and the config and tensors of a two-layer LlamaStyle model in the
// shape of published ones.
#pragma once

#include <map>
#include <string>

#include "model/config.hpp"
#include "paths/tensor_source.hpp"
#include "support/llama_layout.hpp"

namespace cyb::test {

class FakeTensors final : public TensorSource {
 public:
  std::optional<TensorSpec> find(std::string_view name) const override {
    const auto it = shapes.find(std::string(name));
    if (it == shapes.end()) return std::nullopt;
    return TensorSpec::of(DType::kF32, it->second);
  }
  Result<std::vector<float>> read_f32(std::string_view name) const override {
    const auto it = shapes.find(std::string(name));
    if (it == shapes.end()) return fail(missing_tensor(name, "test"));
    return std::vector<float>(static_cast<std::size_t>(it->second.count()), 2.0f);
  }

  std::map<std::string, Shape> shapes;
};

struct FakeModel {
  ConfigTable config;
  FakeTensors tensors;

  FakeModel() {
    config.set("model_type", "llama");
    const LlamaSizes sizes{64, 4, 2, 16, 2, 128, 256, 128, false};
    ConfigTable& a = config.table("architecture");
    set_llama_sizes(a, sizes);
    a.set("rms_norm_eps", 1e-6);
    a.set("tie_word_embeddings", false);
    for (auto& [name, shape] : llama_tensors(sizes)) tensors.shapes.emplace(name, shape);
  }

  ConfigTable& architecture() { return config.table("architecture"); }
};

}  // namespace cyb::test
