// Sizes, activation, ids and the rest of a config.json; defaults are those of transformers 5.24.
#include "import/hf/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "import/hf/config_parts.hpp"
#include "import/hf/rope_config.hpp"
#include "import/safetensors/fp8_scales.hpp"

namespace cyb::hf {
namespace {

constexpr std::int64_t kMaxDim = 1 << 24, kMaxLayers = 1 << 16,
                       kMaxPositions = std::int64_t{1} << 30;

/// Keys that change nothing in inference with these classes. Generation settings in config.json are
/// not used by transformers 5 either.
constexpr std::array kHarmless = {
    "model_type", "torch_dtype", "dtype", "transformers_version", "use_cache", "initializer_range",
    "attention_dropout", "hidden_dropout", "pretraining_tp", "output_attentions",
    "output_hidden_states", "return_dict", "id2label", "label2id", "num_labels", "problem_type",
    "attn_implementation", "experts_implementation", "tokenizer_class", "task_specific_params",
    "finetuning_task", "torchscript", "prefix", "tie_encoder_decoder", "chunk_size_feed_forward",
    "remove_invalid_values", "rope_interleaved", "is_llama_config", "transformers.js_config",
    "max_window_layers", "sep_token_id", "auto_map", "decoder_start_token_id",
    "cache_implementation", "name_or_path", "embd_pdrop", "resid_pdrop", "attn_pdrop",
    "residual_dropout", "embedding_dropout",
    // generation settings
    "do_sample", "temperature", "top_k", "top_p", "typical_p", "num_beams", "num_beam_groups",
    "num_return_sequences", "max_length", "min_length", "max_new_tokens", "early_stopping",
    "repetition_penalty", "length_penalty", "diversity_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
    "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
    "return_dict_in_generate", "output_scores"};

/// A size with the class's default, which is stated when it is used.
Result<std::int64_t> size_or(ConfigReader& config, std::string_view key, std::int64_t fallback,
                             std::int64_t max, ImportReport& report) {
  CYB_ASSIGN(const std::optional<std::int64_t> value, config.integer(key, 1, max));
  if (value) return *value;
  report.assumptions.push_back(
      fmt::format("{} is {} (transformers' default)", config.shown(key), fallback));
  return fallback;
}

Result<void> read_heads(ConfigReader& config, const ModelType& defaults, LlamaStyleConfig& c,
                        ImportReport& report) {
  const bool gpt2 = defaults.kind == Kind::kGpt2;
  CYB_ASSIGN(c.n_heads, size_or(config, gpt2 ? "n_head" : "num_attention_heads", defaults.heads,
                                kMaxLayers, report));
  if (gpt2 && c.hidden_size % c.n_heads != 0)
    return config.refuse("n_head", fmt::format("{} does not divide {}", c.n_heads, c.hidden_size));
  if (gpt2) {
    c.n_kv_heads = c.n_heads;
    c.head_dim = c.hidden_size / c.n_heads;
    return c.head_dim % 2 == 0 ? Result<void>() : config.refuse("n_head", "gives an odd head size");
  }
  const std::int64_t kv_default =
      defaults.kv_heads == 0 || config.has("num_key_value_heads") ? c.n_heads : defaults.kv_heads;
  CYB_ASSIGN(const std::optional<std::int64_t> kv,
             config.integer("num_key_value_heads", 1, kMaxLayers));
  c.n_kv_heads = kv.value_or(kv_default);
  if (c.n_heads % c.n_kv_heads != 0) {
    return config.refuse("num_key_value_heads",
                         fmt::format("{} does not divide {} heads", c.n_kv_heads, c.n_heads));
  }
  CYB_ASSIGN(const std::optional<std::int64_t> stated, config.integer("head_dim", 2, 1 << 16));
  if (stated) {
    c.head_dim = *stated;
  } else if (defaults.head_dim != 0) {
    c.head_dim = defaults.head_dim;
  } else if (c.hidden_size % c.n_heads == 0) {
    c.head_dim = c.hidden_size / c.n_heads;
  } else {
    return config.refuse("head_dim", fmt::format("is missing, and {} heads do not divide {}",
                                                 c.n_heads, c.hidden_size));
  }
  if (c.head_dim % 2 != 0) return config.refuse("head_dim", fmt::format("{} is odd", c.head_dim));
  return {};
}

Result<void> read_sizes(ConfigReader& config, const ModelType& defaults, LlamaStyleConfig& c,
                        ImportReport& report) {
  const bool gpt2 = defaults.kind == Kind::kGpt2;
  const auto size = [&](const char* key, const char* gpt2_key, std::int64_t fallback,
                        std::int64_t max) {
    return size_or(config, gpt2 ? gpt2_key : key, fallback, max, report);
  };
  CYB_ASSIGN(c.vocab_size, size("vocab_size", "vocab_size", defaults.vocab, kMaxDim));
  CYB_ASSIGN(c.hidden_size, size("hidden_size", "n_embd", defaults.hidden, kMaxDim));
  const std::int64_t ffn = gpt2 ? 4 * c.hidden_size : defaults.ffn;
  CYB_ASSIGN(c.ffn_size, size("intermediate_size", "n_inner", ffn, kMaxDim));
  CYB_ASSIGN(c.n_layers, size("num_hidden_layers", "n_layer", defaults.layers, kMaxLayers));
  CYB_ASSIGN(c.max_positions,
             size("max_position_embeddings", "n_positions", defaults.positions, kMaxPositions));
  CYB_ASSIGN(const std::optional<double> eps, config.number(defaults.eps_key));
  c.norm_eps = eps.value_or(defaults.eps);
  c.layer_norm = defaults.layer_norm();
  if (!(c.norm_eps > 0 && c.norm_eps < 1))
    return config.refuse(defaults.eps_key, "is out of range: (0, 1)");
  return read_heads(config, defaults, c, report);
}

Result<void> read_activation(ConfigReader& config, const ModelType& type, LlamaStyleConfig& c) {
  const std::string_view key = type.activation_key;
  // Gemma's later classes do not have hidden_act, the first does not have the other.
  if (type.is_gemma()) config.ignore(key == "hidden_act" ? "hidden_activation" : "hidden_act");
  CYB_ASSIGN(const std::optional<std::string> stated, config.text(key));
  const std::string name = stated.value_or(std::string(type.activation));
  if (name == "silu" || name == "swish") {
    c.activation = "silu";
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new" ||
             (name == "gelu" && type.kind == Kind::kGemma)) {  // GemmaConfig reads gelu as tanh
    c.activation = "gelu_pytorch_tanh";
  } else if (name == "gelu" || name == "relu" || name == "quick_gelu") {
    c.activation = name;
  } else {
    return config.refuse(key, fmt::format("{} is not known", json_quote(name)));
  }
  return {};
}

Result<void> read_ids(ConfigReader& config, const ModelType& defaults, HfConfig& out) {
  CYB_ASSIGN(out.eos_ids, config.ids("eos_token_id"));
  if (!config.has("eos_token_id") && defaults.eos) out.eos_ids.push_back(*defaults.eos);
  CYB_ASSIGN(out.bos_id, config.integer("bos_token_id", 0, INT32_MAX));
  if (!config.has("bos_token_id")) out.bos_id = defaults.bos;
  CYB_ASSIGN(out.pad_id, config.integer("pad_token_id", -1, INT32_MAX));
  if (!config.has("pad_token_id")) out.pad_id = defaults.pad;
  if (out.pad_id && *out.pad_id < 0) out.pad_id.reset();
  for (const auto& id : {defaults.bos, defaults.eos, defaults.pad}) {
    if (id) out.class_ids.push_back(*id);
  }
  return {};
}

/// True where a quantisation of 8-bit floats is stated; others are refused with their name.
Result<bool> read_quantization(ConfigReader& config, ImportReport& report) {
  bool fp8 = false;
  for (const char* key : {"quantization_config", "compression_config"}) {
    const nlohmann::json* quantized = config.find(key);
    if (quantized == nullptr) continue;
    if (const auto problem = safetensors::fp8_config_problem(*quantized)) {
      return config.refuse(
          key,
          fmt::format("{} is not supported: take an unquantised checkpoint or a GGUF", *problem));
    }
    fp8 = true;
    report.assumptions.push_back(fmt::format(
        "{}: weights are 8-bit floats times their scales, activations are not rounded", key));
  }
  return fp8;
}

Result<void> refuse_the_rest(ConfigReader& config) {
  for (const char* key : kHarmless) config.ignore(key);
  CYB_ASSIGN(const std::optional<bool> encoder_decoder, config.boolean("is_encoder_decoder"));
  if (encoder_decoder.value_or(false))
    return config.refuse("is_encoder_decoder", "true is not built for this family");
  for (const std::string& key : config.unread()) {
    if (key.starts_with("_") || key.starts_with("unsloth_")) continue;
    return config.refuse(key, "is not known for this model_type and may change the mathematics");
  }
  return {};
}

Result<HfConfig> read_text_config(ConfigReader& config, const ModelType& type,
                                  ImportReport& report) {
  HfConfig out;
  LlamaStyleConfig& c = out.architecture;
  out.table = type.table;
  c.model_type = type.model_type;
  CYB_ASSIGN(const std::vector<std::string> classes, config.texts_or_empty("architectures"));
  c.architecture_class = classes.empty() ? std::string(type.class_name) : classes[0];
  if (!classes.empty() && classes[0] != type.class_name &&
      !(type.kind == Kind::kGemma3 && classes[0] == "Gemma3ForConditionalGeneration")) {
    return config.refuse("architectures", fmt::format("{} is not built (built: {})",
                                                      json_quote(classes[0]), type.class_name));
  }
  CYB_TRY(read_sizes(config, type, c, report));
  CYB_TRY(read_activation(config, type, c));
  CYB_TRY(read_kind(config, type, out));
  CYB_TRY(read_layers(config, type, c));
  if (type.kind == Kind::kGemma3) {
    CYB_TRY(read_rope_per_kind(config, c, report));
  } else if (type.kind != Kind::kGpt2) {
    CYB_TRY(read_rope(config, type, c, report));
  }
  CYB_ASSIGN(const std::optional<bool> tied, config.boolean("tie_word_embeddings"));
  c.tied = tied.value_or(type.tied);
  CYB_TRY(read_ids(config, type, out));
  CYB_ASSIGN(out.fp8, read_quantization(config, report));
  CYB_TRY(refuse_the_rest(config));
  return out;
}

/// Gemma3Config: the text model is in text_config; ids and tying outside win.
Result<HfConfig> read_gemma3(const nlohmann::json& object, ImportReport& report) {
  ConfigReader outer(object);
  const nlohmann::json* inner = outer.find("text_config");
  if (inner == nullptr || !inner->is_object()) return outer.refuse("text_config", "is missing");
  CYB_ASSIGN(const ModelType defaults, find_model_type("gemma3_text"));
  ConfigReader text(*inner, "text_config.");
  CYB_ASSIGN(HfConfig out, read_text_config(text, defaults, report));
  CYB_ASSIGN(const std::optional<bool> tied, outer.boolean("tie_word_embeddings"));
  out.architecture.tied = tied.value_or(true);
  CYB_ASSIGN(std::vector<std::int64_t> eos, outer.ids("eos_token_id"));
  if (!eos.empty()) out.eos_ids = std::move(eos);
  for (const char* key :
       {"vision_config", "mm_tokens_per_image", "boi_token_index", "eoi_token_index",
        "image_token_index", "architectures", "bos_token_id", "pad_token_id"}) {
    outer.ignore(key);
  }
  CYB_ASSIGN(const bool fp8, read_quantization(outer, report));
  out.fp8 = out.fp8 || fp8;
  CYB_TRY(refuse_the_rest(outer));
  report.assumptions.emplace_back("only the text model of a gemma3 checkpoint is imported");
  return out;
}

}  // namespace

Result<HfConfig> read_config(const nlohmann::json& config, ImportReport& report) {
  if (!config.is_object()) return fail(invalid_config("config.json", "is not an object"));
  ConfigReader reader(config);
  CYB_ASSIGN(const std::optional<std::string> model_type, reader.text("model_type"));
  if (!model_type) return reader.refuse("model_type", "is missing");
  if (*model_type == "gemma3") return read_gemma3(config, report);
  CYB_ASSIGN(const ModelType defaults, find_model_type(*model_type));
  return read_text_config(reader, defaults, report);
}

}  // namespace cyb::hf
