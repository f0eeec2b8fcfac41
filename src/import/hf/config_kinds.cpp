// Keys of single classes, with the defaults of transformers 5.24 (InternLM2 and MiMo: of the
// classes that their checkpoints bring).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "import/hf/config_parts.hpp"

namespace cyb::hf {
namespace {

constexpr std::int64_t kMaxLayers = 1 << 16;

/// A switch whose other position is another forward pass.
Result<void> must_be(ConfigReader& config, std::string_view key, bool want) {
  CYB_ASSIGN(const std::optional<bool> value, config.boolean(key));
  if (value.value_or(want) == want) return {};
  return config.refuse(key, fmt::format("{} is not built for this family", *value));
}

Result<void> must_say(ConfigReader& config, std::string_view key, std::string_view want) {
  CYB_ASSIGN(const std::optional<std::string> value, config.text(key));
  if (!value || *value == want) return {};
  return config.refuse(key, fmt::format("{} is not built for this family", json_quote(*value)));
}

Result<void> read_gemma(ConfigReader& config, const ModelType& type, LlamaStyleConfig& c) {
  c.norm_unit_offset = true;
  c.embedding_scale = gemma_embedding_scale(c.hidden_size);
  CYB_TRY(must_be(config, "use_bidirectional_attention", false));
  if (type.kind == Kind::kGemma) return {};
  CYB_ASSIGN(const std::optional<double> scalar, config.number("query_pre_attn_scalar"));
  if (!(scalar.value_or(256) > 0)) return config.refuse("query_pre_attn_scalar", "must be above 0");
  c.attention_scale = 1.0 / std::sqrt(scalar.value_or(256));
  CYB_ASSIGN(const std::optional<double> attention_cap, config.number("attn_logit_softcapping"));
  CYB_ASSIGN(const std::optional<double> final_cap, config.number("final_logit_softcapping"));
  const bool gemma2 = type.kind == Kind::kGemma2;
  const auto cap = [&](const char* key, const std::optional<double>& value, double fallback) {
    return value.value_or(gemma2 && !config.has(key) ? fallback : 0.0);
  };
  c.attn_softcap = cap("attn_logit_softcapping", attention_cap, 50.0);
  c.final_softcap = cap("final_logit_softcapping", final_cap, 30.0);
  if (c.attn_softcap < 0) return config.refuse("attn_logit_softcapping", "is negative");
  if (c.final_softcap < 0) return config.refuse("final_logit_softcapping", "is negative");
  return {};
}

Result<void> read_phi(ConfigReader& config, LlamaStyleConfig& c) {
  c.parallel = true;
  c.plain_mlp = true;
  return must_be(config, "qk_layernorm", false);
}

Result<void> read_phi3(ConfigReader& config) {
  // Phi-4-mini states them; its class looks at neither.
  for (const char* key : {"full_attn_mod", "interpolate_factor"}) {
    CYB_ASSIGN(const std::optional<std::int64_t> value, config.integer(key, 0, kMaxLayers));
    if (value.value_or(1) != 1) return config.refuse(key, "other than 1 is not built");
  }
  CYB_TRY(must_be(config, "attention_bias", false));
  CYB_TRY(must_be(config, "mlp_bias", false));
  return must_be(config, "lm_head_bias", false);
}

Result<void> read_starcoder2(ConfigReader& config, HfConfig& out) {
  out.architecture.plain_mlp = true;
  CYB_ASSIGN(const std::optional<bool> bias, config.boolean("use_bias"));
  out.qkv_bias = out.o_bias = out.mlp_bias = bias.value_or(true);
  CYB_TRY(must_say(config, "mlp_type", "default"));
  return must_say(config, "norm_type", "layer_norm");
}

/// GPT-2 and GPTBigCode (StarCoder 1).
Result<void> read_gpt2(ConfigReader& config, const ModelType& type, LlamaStyleConfig& c) {
  c.plain_mlp = c.learned_positions = true;
  for (const char* key :
       {"n_ctx", "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels",
        "summary_first_dropout", "reorder_and_upcast_attn", "attention_softmax_in_fp32",
        "scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size",
        "max_sequence_length", "pad_key_length", "pre_allocate_kv_cache",
        "validate_runner_input"}) {
    config.ignore(key);
  }
  CYB_TRY(must_be(config, "scale_attn_by_inverse_layer_idx", false));
  CYB_TRY(must_be(config, "add_cross_attention", false));
  CYB_ASSIGN(const std::optional<bool> scale, config.boolean("scale_attn_weights"));
  if (!scale.value_or(true)) c.attention_scale = 1.0;
  if (type.model_type == "gpt2") return {};
  CYB_ASSIGN(const std::optional<bool> multi_query, config.boolean("multi_query"));
  const std::int64_t kv = multi_query.value_or(true) ? 1 : c.n_heads;
  CYB_ASSIGN(const std::optional<std::int64_t> stated,
             config.integer("num_key_value_heads", 1, kMaxLayers));
  if (stated.value_or(kv) != kv)
    return config.refuse("num_key_value_heads", "is not what multi_query says");
  c.n_kv_heads = kv;
  return {};
}

Result<void> read_granite(ConfigReader& config, LlamaStyleConfig& c) {
  struct Row {
    const char* key;
    double* value;
  };
  c.attention_scale = 1.0;
  for (const Row& row : {Row{"embedding_multiplier", &c.embedding_scale},
                         Row{"attention_multiplier", &c.attention_scale},
                         Row{"residual_multiplier", &c.residual_multiplier},
                         Row{"logits_scaling", &c.logits_scaling}}) {
    CYB_ASSIGN(const std::optional<double> value, config.number(row.key));
    *row.value = value.value_or(1.0);
    if (!(*row.value > 0)) return config.refuse(row.key, "must be above 0");
  }
  return {};
}

/// Multi-token-prediction layers are for training and speculation: the class skips them.
Result<void> read_mimo(ConfigReader& config, HfConfig& out) {
  CYB_ASSIGN(const std::optional<std::int64_t> layers,
             config.integer("num_nextn_predict_layers", 0, kMaxLayers));
  out.mtp_layers = layers.value_or(0);
  return must_be(config, "attention_bias", true);
}

}  // namespace

Result<void> read_kind(ConfigReader& config, const ModelType& type, HfConfig& out) {
  out.qkv_bias = type.qkv_bias;
  if (type.bias_switch) {
    CYB_ASSIGN(const std::optional<bool> attention, config.boolean("attention_bias"));
    out.qkv_bias = out.o_bias = attention.value_or(false);
  }
  if (type.mlp_bias_switch) {
    CYB_ASSIGN(const std::optional<bool> mlp, config.boolean("mlp_bias"));
    out.mlp_bias = mlp.value_or(false);
  }
  switch (type.kind) {
    case Kind::kGemma:
    case Kind::kGemma2:
    case Kind::kGemma3:
      return read_gemma(config, type, out.architecture);
    case Kind::kPhi:
      return read_phi(config, out.architecture);
    case Kind::kPhi3:
      return read_phi3(config);
    case Kind::kStarcoder2:
      return read_starcoder2(config, out);
    case Kind::kGpt2:
      return read_gpt2(config, type, out.architecture);
    case Kind::kGranite:
      return read_granite(config, out.architecture);
    case Kind::kInternLM2: {
      CYB_ASSIGN(const std::optional<bool> bias, config.boolean("bias"));
      out.qkv_bias = out.o_bias = bias.value_or(true);
      return {};
    }
    case Kind::kMiMo:
      return read_mimo(config, out);
    case Kind::kPlain:
    case Kind::kSmolLM3:
      return {};
  }
  return {};
}

}  // namespace cyb::hf
