// PEFT tensors: base_model.model.<module>.lora_A.weight [r, K], lora_B.weight [N, r]; of an
// embedding lora_embedding_A [r, V], lora_embedding_B [E, r].
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "import/json_strict.hpp"
#include "import/lora/lora_import.hpp"
#include "import/lora/lora_pairs.hpp"
#include "import/lora/peft_config.hpp"
#include "import/safetensors/safetensors_file.hpp"

namespace cyb {
namespace {

using lora::Facts;
using lora::Half;
using lora::Halves;
using lora::Modules;

struct PeftName {
  std::string module;
  bool is_b = false, embedding = false;
};

struct Suffix {
  std::string_view text;
  bool is_b, embedding;
};
constexpr std::array kSuffixes = {
    Suffix{".lora_A.weight", false, false}, Suffix{".lora_B.weight", true, false},
    Suffix{".lora_embedding_A", false, true}, Suffix{".lora_embedding_B", true, true}};

Error refused(const char* code, std::string_view tensor, std::string_view what) {
  return lora_error(code, fmt::format("tensor {}: {}", json_quote(tensor), what));
}

Error unknown_name(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has(".lora_magnitude_vector")) return refused("L05", name, "DoRA is not supported");
  if (name.ends_with(".lora_A.bias") || name.ends_with(".lora_B.bias"))
    return refused("L05", name, "a bias on B is not supported");
  if (has(".ia3_") || has(".hada_") || has(".lokr_") || has(".oft_") || has(".vera_"))
    return refused("L04", name, "it belongs to no LoRA");
  if (has(".base_layer.")) {
    return refused("L06", name,
                   "the model's own weight beside the adapter is not read: save the adapter with "
                   "save_embedding_layers=False");
  }
  if (has(".modules_to_save.") || has(".token_adapter.") || has(".trainable_tokens_") ||
      name.ends_with(".weight") || name.ends_with(".bias")) {
    return refused("L06", name, "a whole weight in an adapter is not supported");
  }
  return refused("L07", name, "it is neither A nor B of a module");
}

Result<PeftName> parse_name(std::string_view name) {
  constexpr std::string_view kPrefix = "base_model.model.";
  for (const Suffix& suffix : kSuffixes) {
    if (!name.ends_with(suffix.text)) continue;
    const std::string_view path = name.substr(0, name.size() - suffix.text.size());
    if (!path.starts_with(kPrefix) || path.size() == kPrefix.size())
      return fail(refused("L07", name, "its name does not begin with base_model.model."));
    return PeftName{std::string(path.substr(kPrefix.size())), suffix.is_b, suffix.embedding};
  }
  return fail(unknown_name(name));
}

Result<Modules> read_modules(const safetensors::SafetensorsFile& file,
                             std::span<const std::byte> bytes) {
  Modules modules;
  bool any = false;
  for (const safetensors::TensorInfo& tensor : file.tensors)
    any = any || tensor.name.find("lora_") != std::string::npos;
  if (!any) {
    return fail(lora_error("L01",
                           "there is no A and no B in it: it is no LoRA adapter; a model is "
                           "given as MODEL"));
  }
  for (const safetensors::TensorInfo& tensor : file.tensors) {
    CYB_ASSIGN(const PeftName name, parse_name(tensor.name));
    const auto dtype = safetensors::dtype_of(tensor.dtype);
    if (!dtype || (*dtype != DType::kF32 && *dtype != DType::kF16 && *dtype != DType::kBf16))
      return fail(source_encoding(tensor.name, tensor.dtype));
    Half half{tensor.name, *dtype, tensor.shape, bytes.subspan(tensor.offset, tensor.size_bytes)};
    CYB_TRY(add_half(modules, name.module, name.is_b, name.embedding, std::move(half)));
  }
  return modules;
}

/// A source weight may be several of ours, or have its rows in another order: so has B.
Result<void> place_module(const LoraPair& whole, const Model& model, const Facts& facts,
                          LoraAdapter& adapter) {
  const LlamaStyleConfig& config = facts.config.architecture;
  for (const hf::TensorUse& use : hf::tensor_uses(whole.source + ".weight", facts.config)) {
    LoraPair pair = whole;
    CYB_ASSIGN(pair.tensor, weight_of(model, facts, use.canonical, whole.source));
    const std::vector<RowRun> runs = hf::moved_rows(use.how, config);
    if (!runs.empty() && pair.place == LoraPlace::kProduct) {
      if (pair.n_out != hf::grouped_rows(config)) {
        return fail(lora_error(
            "L09", fmt::format("{}: B has {} rows, the model {}", json_quote(whole.source),
                               pair.n_out, hf::grouped_rows(config))));
      }
      pair.b = lora::rows_of(whole.b, whole.rank, runs);
      pair.n_out = static_cast<std::int64_t>(pair.b.size()) / whole.rank;
    }
    CYB_TRY(lora::place_pair(std::move(pair), model, adapter));
  }
  return {};
}

Error not_named(std::string_view module) {
  return lora_error(
      "L02", fmt::format("adapter_config.json: the modules that it names (\"target_modules\", "
                         "\"exclude_modules\", \"layers_to_transform\") do not include {}, whose A "
                         "and B are in the file: PEFT would leave them out",
                         json_quote(module)));
}

}  // namespace

Result<LoraAdapter> parse_peft_adapter(std::string_view config_text,
                                       std::span<const std::byte> tensors, const Model& model) {
  CYB_ASSIGN(const nlohmann::json json, parse_json(config_text, "adapter_config.json"));
  CYB_ASSIGN(const lora::PeftConfig config, lora::read_peft_config(json));
  CYB_ASSIGN(const auto file, safetensors::SafetensorsFile::parse(tensors));
  CYB_ASSIGN(const Modules modules, read_modules(file, tensors));
  CYB_ASSIGN(const Facts facts, lora::facts_of(model));
  LoraAdapter adapter;
  adapter.format = "PEFT";
  for (const auto& [module, halves] : modules) {
    CYB_ASSIGN(const bool named, config.targets.names(module));
    if (!named) return fail(not_named(module));
    CYB_ASSIGN(LoraPair pair, lora::read_pair(module, halves));
    CYB_ASSIGN(const double rank, config.rank_of(module));
    CYB_ASSIGN(const double alpha, config.alpha_of(module));
    if (rank != static_cast<double>(pair.rank)) {
      return fail(lora_error("L09", fmt::format("{}: A has rank {}, adapter_config.json says {}",
                                                json_quote(module), pair.rank, rank)));
    }
    pair.scale = alpha / (config.rslora ? std::sqrt(rank) : rank);
    CYB_TRY(place_module(pair, model, facts, adapter));
  }
  Blake3 hash;
  hash.update(config_text);
  hash.update(tensors);
  adapter.content = hash.finish();
  return adapter;
}

}  // namespace cyb
