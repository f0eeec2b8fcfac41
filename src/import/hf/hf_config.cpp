// Defaults are those of transformers 5.24: LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config,
// Gemma3TextConfig.
#include "import/hf/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "import/hf/config_reader.hpp"
#include "import/hf/rope_config.hpp"
#include "import/safetensors/fp8_scales.hpp"

namespace cyb::hf {
namespace {

constexpr std::int64_t kMaxDim = 1 << 24, kMaxLayers = 1 << 16,
                       kMaxPositions = std::int64_t{1} << 30;

enum class Window { kNone, kAll, kQwen, kGemma };  // which layers slide

struct Defaults {
  std::string_view model_type, class_name, table;
  std::int64_t vocab, hidden, ffn, layers, heads, kv_heads, head_dim,
      positions;  // kv_heads 0: heads; head_dim 0: hidden / heads
  bool tied;
  Window window;
  std::optional<std::int64_t> bos, eos, pad;
};

constexpr std::optional<std::int64_t> kNoId;
constexpr std::array kDefaults = {
#define CYB_MODEL_TYPE(type, name, table, vocab, hidden, ffn, layers, heads, kv, dim, positions, \
                       tied, window, bos, eos, pad)                                              \
  Defaults{type, name, table,     vocab, hidden,         ffn, layers, heads,                     \
           kv,   dim,  positions, tied,  Window::window, bos, eos,    pad},
#include "import/hf/model_types.inc"
#undef CYB_MODEL_TYPE
};

/// Keys that change nothing in inference with these classes. Generation settings in config.json are
/// not used by transformers 5 either.
constexpr std::array kHarmless = {
    "model_type", "torch_dtype", "dtype", "transformers_version", "use_cache", "initializer_range",
    "attention_dropout", "hidden_dropout", "pretraining_tp", "output_attentions",
    "output_hidden_states", "return_dict", "id2label", "label2id", "num_labels", "problem_type",
    "attn_implementation", "experts_implementation", "tokenizer_class", "task_specific_params",
    "finetuning_task", "torchscript", "prefix", "tie_encoder_decoder", "chunk_size_feed_forward",
    "remove_invalid_values", "rope_interleaved", "is_llama_config", "transformers.js_config",
    "max_window_layers", "sep_token_id", "decoder_start_token_id", "cache_implementation",
    "name_or_path",
    // generation settings
    "do_sample", "temperature", "top_k", "top_p", "typical_p", "num_beams", "num_beam_groups",
    "num_return_sequences", "max_length", "min_length", "max_new_tokens", "early_stopping",
    "repetition_penalty", "length_penalty", "diversity_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
    "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
    "return_dict_in_generate", "output_scores"};

std::string model_types() {
  std::string out;
  for (const Defaults& row : kDefaults)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", row.model_type);
  return out;
}

Result<Defaults> find_defaults(std::string_view model_type) {
  const auto at = std::ranges::find(kDefaults, model_type, &Defaults::model_type);
  if (at != kDefaults.end()) return *at;
  return fail(not_built(fmt::format("import of model_type {} (built: {}, gemma3)",
                                    json_quote(model_type), model_types())));
}

/// A size with the class's default, which is stated when it is used.
Result<std::int64_t> size_or(ConfigReader& config, std::string_view key, std::int64_t fallback,
                             std::int64_t max, ImportReport& report) {
  CYB_ASSIGN(const std::optional<std::int64_t> value, config.integer(key, 1, max));
  if (value) return *value;
  report.assumptions.push_back(
      fmt::format("{} is {} (transformers' default)", config.shown(key), fallback));
  return fallback;
}

Result<void> read_heads(ConfigReader& config, const Defaults& defaults, LlamaStyleConfig& c,
                        ImportReport& report) {
  CYB_ASSIGN(c.n_heads, size_or(config, "num_attention_heads", defaults.heads, kMaxLayers, report));
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

Result<void> read_sizes(ConfigReader& config, const Defaults& defaults, LlamaStyleConfig& c,
                        ImportReport& report) {
  CYB_ASSIGN(c.vocab_size, size_or(config, "vocab_size", defaults.vocab, kMaxDim, report));
  CYB_ASSIGN(c.hidden_size, size_or(config, "hidden_size", defaults.hidden, kMaxDim, report));
  CYB_ASSIGN(c.ffn_size, size_or(config, "intermediate_size", defaults.ffn, kMaxDim, report));
  CYB_ASSIGN(c.n_layers, size_or(config, "num_hidden_layers", defaults.layers, kMaxLayers, report));
  CYB_ASSIGN(c.max_positions,
             size_or(config, "max_position_embeddings", defaults.positions, kMaxPositions, report));
  CYB_ASSIGN(const std::optional<double> eps, config.number("rms_norm_eps"));
  c.rms_norm_eps = eps.value_or(1e-6);
  if (!(c.rms_norm_eps > 0 && c.rms_norm_eps < 1))
    return config.refuse("rms_norm_eps", "is out of range: (0, 1)");
  return read_heads(config, defaults, c, report);
}

Result<void> read_activation(ConfigReader& config, bool gemma, LlamaStyleConfig& c) {
  const std::string_view key = gemma ? "hidden_activation" : "hidden_act";
  if (gemma) config.ignore("hidden_act");  // Gemma3TextConfig does not have it
  CYB_ASSIGN(const std::optional<std::string> name, config.text(key));
  if (!name) {
    c.activation = gemma ? "gelu_pytorch_tanh" : "silu";
  } else if (*name == "silu" || *name == "swish") {
    c.activation = "silu";
  } else if (*name == "gelu_pytorch_tanh" || *name == "gelu_new") {
    c.activation = "gelu_pytorch_tanh";
  } else if (*name == "gelu" || *name == "relu" || *name == "quick_gelu") {
    c.activation = *name;
  } else {
    return config.refuse(key, fmt::format("{} is not known", json_quote(*name)));
  }
  return {};
}

/// layer_types as sliding flags; empty when absent.
Result<std::vector<bool>> read_layer_types(ConfigReader& config, std::int64_t n_layers) {
  CYB_ASSIGN(const std::vector<std::string> types, config.texts_or_empty("layer_types"));
  std::vector<bool> out;
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return config.refuse("layer_types", fmt::format("{} is not built yet", json_quote(type)));
    }
    out.push_back(type == "sliding_attention");
  }
  if (!out.empty() && static_cast<std::int64_t>(out.size()) != n_layers) {
    return config.refuse("layer_types",
                         fmt::format("has {} entries for {} layers", out.size(), n_layers));
  }
  return out;
}

/// The window where the key is absent is the class's 4096; JSON null means none.
Result<std::int64_t> read_window_size(ConfigReader& config) {
  const bool stated = config.has("sliding_window");
  CYB_ASSIGN(const std::optional<std::int64_t> window,
             config.integer("sliding_window", 1, kMaxPositions));
  if (window) return *window;
  return stated ? 0 : 4096;
}

Result<void> read_qwen_layers(ConfigReader& config, LlamaStyleConfig& c) {
  CYB_ASSIGN(const std::optional<bool> use, config.boolean("use_sliding_window"));
  if (!use.value_or(false)) c.sliding_window = 0;
  CYB_ASSIGN(const std::optional<std::int64_t> first,
             config.integer("max_window_layers", 0, kMaxLayers));
  if (!c.sliding_layers.empty()) return {};
  for (std::int64_t i = 0; i < c.n_layers; ++i)
    c.sliding_layers.push_back(c.sliding_window > 0 && i >= first.value_or(28));
  return {};
}

Result<void> read_layers(ConfigReader& config, Window kind, LlamaStyleConfig& c) {
  CYB_ASSIGN(c.sliding_layers, read_layer_types(config, c.n_layers));
  if (kind != Window::kNone) {
    CYB_ASSIGN(c.sliding_window, read_window_size(config));
  }
  if (kind == Window::kQwen) CYB_TRY(read_qwen_layers(config, c));
  if (kind == Window::kGemma && c.sliding_layers.empty()) {
    CYB_ASSIGN(const std::optional<std::int64_t> pattern,
               config.integer("sliding_window_pattern", 1, kMaxLayers));
    c.sliding_layers = sliding_pattern(c.n_layers, pattern.value_or(6));
  }
  config.ignore("sliding_window_pattern");
  const auto n_sliding = std::ranges::count(c.sliding_layers, true);
  const bool all_or_none = n_sliding == 0 || n_sliding == c.n_layers;
  if ((kind == Window::kNone || kind == Window::kAll) && !c.sliding_layers.empty()) {
    // These classes do not look at layer_types: it may only repeat what they do.
    if (!all_or_none || (n_sliding > 0) != (c.sliding_window > 0))
      return config.refuse("layer_types", "is not what this class does");
    c.sliding_layers.clear();
  }
  if (n_sliding > 0 && c.sliding_window == 0)
    return config.refuse("sliding_window", "is missing, and layer_types has sliding layers");
  return {};
}

Result<void> read_gemma(ConfigReader& config, LlamaStyleConfig& c) {
  c.norm_unit_offset = true;
  c.embedding_scale = gemma_embedding_scale(c.hidden_size);
  CYB_ASSIGN(const std::optional<double> scalar, config.number("query_pre_attn_scalar"));
  if (!(scalar.value_or(256) > 0)) return config.refuse("query_pre_attn_scalar", "must be above 0");
  c.attention_scale = 1.0 / std::sqrt(scalar.value_or(256));
  CYB_ASSIGN(const std::optional<double> attention_cap, config.number("attn_logit_softcapping"));
  CYB_ASSIGN(const std::optional<double> final_cap, config.number("final_logit_softcapping"));
  c.attn_softcap = attention_cap.value_or(0.0);
  c.final_softcap = final_cap.value_or(0.0);
  if (c.attn_softcap < 0) return config.refuse("attn_logit_softcapping", "is negative");
  if (c.final_softcap < 0) return config.refuse("final_logit_softcapping", "is negative");
  return {};
}

Result<void> read_biases(ConfigReader& config, const Defaults& defaults, HfConfig& out) {
  const bool has_switch = defaults.model_type == "llama" || defaults.model_type == "qwen3" ||
                          defaults.model_type == "gemma3_text";
  if (has_switch) {
    CYB_ASSIGN(const std::optional<bool> attention, config.boolean("attention_bias"));
    out.qkv_bias = out.o_bias = attention.value_or(false);
  }
  if (defaults.model_type == "llama") {
    CYB_ASSIGN(const std::optional<bool> mlp, config.boolean("mlp_bias"));
    out.mlp_bias = mlp.value_or(false);
  }
  if (defaults.model_type == "qwen2") out.qkv_bias = true;
  return {};
}

Result<void> read_ids(ConfigReader& config, const Defaults& defaults, HfConfig& out) {
  CYB_ASSIGN(out.eos_ids, config.ids("eos_token_id"));
  if (!config.has("eos_token_id") && defaults.eos) out.eos_ids.push_back(*defaults.eos);
  CYB_ASSIGN(out.bos_id, config.integer("bos_token_id", 0, INT32_MAX));
  if (!config.has("bos_token_id")) out.bos_id = defaults.bos;
  CYB_ASSIGN(out.pad_id, config.integer("pad_token_id", -1, INT32_MAX));
  if (!config.has("pad_token_id")) out.pad_id = defaults.pad;
  if (out.pad_id && *out.pad_id < 0) out.pad_id.reset();
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

Result<HfConfig> read_text_config(ConfigReader& config, const Defaults& defaults,
                                  ImportReport& report) {
  HfConfig out;
  LlamaStyleConfig& c = out.architecture;
  const bool gemma = defaults.window == Window::kGemma;
  out.table = defaults.table;
  c.model_type = defaults.model_type;
  CYB_ASSIGN(const std::vector<std::string> classes, config.texts_or_empty("architectures"));
  c.architecture_class = classes.empty() ? std::string(defaults.class_name) : classes[0];
  if (!classes.empty() && classes[0] != defaults.class_name &&
      classes[0] != "Gemma3ForConditionalGeneration") {
    return config.refuse("architectures", fmt::format("{} is not built (built: {})",
                                                      json_quote(classes[0]), defaults.class_name));
  }
  CYB_TRY(read_sizes(config, defaults, c, report));
  CYB_TRY(read_activation(config, gemma, c));
  CYB_TRY(read_layers(config, defaults.window, c));
  CYB_TRY(gemma ? read_rope_per_kind(config, c, report) : read_rope(config, c, report));
  if (gemma) CYB_TRY(read_gemma(config, c));
  CYB_ASSIGN(const std::optional<bool> tied, config.boolean("tie_word_embeddings"));
  c.tied = tied.value_or(defaults.tied);
  CYB_TRY(read_biases(config, defaults, out));
  CYB_TRY(read_ids(config, defaults, out));
  CYB_ASSIGN(out.fp8, read_quantization(config, report));
  CYB_TRY(refuse_the_rest(config));
  return out;
}

/// Gemma3Config: the text model is in text_config; ids and tying outside win.
Result<HfConfig> read_gemma3(const nlohmann::json& object, ImportReport& report) {
  ConfigReader outer(object);
  const nlohmann::json* inner = outer.find("text_config");
  if (inner == nullptr || !inner->is_object()) return outer.refuse("text_config", "is missing");
  CYB_ASSIGN(const Defaults defaults, find_defaults("gemma3_text"));
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
  CYB_ASSIGN(const Defaults defaults, find_defaults(*model_type));
  return read_text_config(reader, defaults, report);
}

}  // namespace cyb::hf
