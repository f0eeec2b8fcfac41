// Adapters of a one-layer llama: bytes that begin as GGUF are a GGUF adapter; others are the text
// of an adapter_config.json, a NUL byte, and a safetensors file. What is taken becomes branches
// beside the weights, all of them finite.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "import/lora/lora_import.hpp"
#include "model/writer.hpp"
#include "paths/weight_table.hpp"

namespace {

using cyb::Shape;

void add(cyb::ModelDraft& draft, const std::string& name, const Shape& shape) {
  draft.tensors.push_back({name, cyb::DType::kF32, shape, [shape](const cyb::ByteSink& sink) {
                             const std::vector<float> values(
                                 static_cast<std::size_t>(shape.count()), 0.5f);
                             return sink(std::as_bytes(std::span(values)));
                           }});
}

/// Hidden 8, 2 heads of 4, 1 KV head, ffn 8, vocabulary 8, tied.
std::shared_ptr<const cyb::Model> make_model() {
  cyb::ModelDraft draft;
  draft.name = "fuzz";
  draft.card = "# fuzz\n";
  draft.config.set("model_type", "llama");
  cyb::ConfigTable& arch = draft.config.table("architecture");
  arch.set("num_attention_heads", 2);
  arch.set("num_key_value_heads", 1);
  arch.set("head_dim", 4);
  arch.set("tie_word_embeddings", true);
  draft.config.table("tokenizer").set("type", "none");
  add(draft, "model.embed_tokens.weight", {8, 8});
  const std::string layer = "model.layers.0.";
  for (const char* part :
       {"self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    add(draft, layer + part + ".weight", {8, 8});
  add(draft, layer + "self_attn.k_proj.weight", {4, 8});
  add(draft, layer + "self_attn.v_proj.weight", {4, 8});
  const std::string path =
      (std::filesystem::temp_directory_path() / ("cyb-lora-fuzz-" + std::to_string(getpid())))
          .string();
  if (!cyb::write_model(path, draft)) std::abort();
  auto opened = cyb::Model::open(path);
  std::filesystem::remove(path);
  if (!opened) std::abort();
  return *std::move(opened);
}

cyb::Result<cyb::LoraAdapter> read(std::span<const std::byte> bytes, const cyb::Model& model) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("GGUF")) return cyb::parse_gguf_adapter(bytes, model);
  const std::size_t end = std::min(text.find('\0'), text.size());
  return cyb::parse_peft_adapter(text.substr(0, end),
                                 bytes.subspan(std::min(end + 1, bytes.size())), model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const cyb::Model> model = make_model();
  static const std::shared_ptr<cyb::Backend> backend = *cyb::create_backend("reference", {});
  auto adapter = read(std::as_bytes(std::span(data, size)), *model);
  if (!adapter) return 0;
  for (const cyb::LoraPair& pair : adapter->pairs) {
    const auto finite = [](float v) { return std::isfinite(v); };
    if (!std::ranges::all_of(pair.a, finite) || !std::ranges::all_of(pair.b, finite)) std::abort();
    if (pair.a.size() != static_cast<std::size_t>(pair.rank * pair.n_in)) std::abort();
    if (pair.b.size() != static_cast<std::size_t>(pair.rank * pair.n_out)) std::abort();
  }
  cyb::WeightTable weights(model, backend);
  const auto shared = std::make_shared<const cyb::LoraAdapter>(*std::move(adapter));
  const std::vector<cyb::LoraUse> uses = {{shared, 1.0}, {shared, -0.5}};
  const auto terms = cyb::add_adapters(uses, weights);
  if (!terms && terms.error().code() != "L10") std::abort();
  return 0;
}
