// LlamaStyle config: every key of [architecture] that changes the maths is read here or refused by
// name.
#include <algorithm>
#include <array>
#include <cmath>

#include "paths/curated/llama.hpp"
#include "paths/curated/rope_scaling.hpp"

namespace cyb {
namespace {

constexpr std::int64_t kMaxDim = 1 << 24;

std::string arch(std::string_view key) {
  return "architecture." + std::string(key);
}

Result<std::uint32_t> dim(const ConfigTable& c, std::string_view key) {
  CYB_ASSIGN(const std::int64_t value, c.integer_in(arch(key), 1, kMaxDim));
  return static_cast<std::uint32_t>(value);
}

Result<Activation> activation(const ConfigTable& c) {
  CYB_ASSIGN(const std::string name, c.string_or(arch("hidden_activation"), "silu"));
  if (name == "silu") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGeluErf;
  if (name == "quick_gelu") return Activation::kGeluQuick;
  if (name == "relu") return Activation::kRelu;
  return fail(invalid_config("hidden_activation", "\"" + name + "\" is not known"));
}

// Keys that select a forward pass this family does not have.
Result<void> refuse_variants(const ConfigTable& c) {
  constexpr std::array kRefused = {"global_head_dim", "global_num_key_value_heads",
                                   "num_global_key_value_heads", "partial_rotary_factor_full",
                                   "num_experts"};
  for (const char* key : kRefused) {
    if (c.at(arch(key)) != nullptr)
      return fail(invalid_config(key, "is not built yet for this family"));
  }
  return {};
}

Result<void> read_shape(const ConfigTable& c, LlamaConfig& out) {
  CYB_ASSIGN(const std::string norm, c.string_or(arch("norm_type"), "rms"));
  if (norm != "rms" && norm != "layer")
    return fail(invalid_config("norm_type", "\"" + norm + "\" is not known"));
  out.layer_norm = norm == "layer";
  CYB_ASSIGN(const std::string mlp, c.string_or(arch("mlp_type"), "gated"));
  if (mlp != "gated" && mlp != "plain")
    return fail(invalid_config("mlp_type", "\"" + mlp + "\" is not built yet"));
  out.gated = mlp == "gated";
  CYB_ASSIGN(out.parallel, c.boolean_or(arch("parallel_block"), false));
  return {};
}

Result<void> read_dims(const ConfigTable& c, LlamaConfig& out) {
  CYB_ASSIGN(out.hidden, dim(c, "hidden_size"));
  CYB_ASSIGN(out.n_heads, dim(c, "num_attention_heads"));
  CYB_ASSIGN(const std::int64_t kv, c.integer_or(arch("num_key_value_heads"), out.n_heads));
  if (kv < 1 || kv > out.n_heads || out.n_heads % kv != 0) {
    return fail(invalid_config("num_key_value_heads", "must divide num_attention_heads"));
  }
  out.n_kv_heads = static_cast<std::uint32_t>(kv);
  if (c.at(arch("head_dim")) != nullptr) {
    CYB_ASSIGN(out.head_dim, dim(c, "head_dim"));
  } else if (out.hidden % out.n_heads == 0) {
    out.head_dim = out.hidden / out.n_heads;
  }
  if (out.head_dim == 0 || out.head_dim % 2 != 0 || out.head_dim > 1024) {
    return fail(Error(ErrorKind::kFormat, "F31",
                      "config: architecture.head_dim: out of range: even, 2..1024, or hidden_size "
                      "/ heads exact and even"));
  }
  CYB_ASSIGN(out.n_layers, dim(c, "num_hidden_layers"));
  CYB_ASSIGN(out.ffn, dim(c, "intermediate_size"));
  CYB_ASSIGN(out.vocab, dim(c, "vocab_size"));
  CYB_ASSIGN(const std::int64_t positions, c.integer_or(arch("max_position_embeddings"), 2048));
  if (positions < 1 || positions > (std::int64_t{1} << 30)) {
    return fail(invalid_config("max_position_embeddings", "out of range: 1..2^30"));
  }
  out.max_positions = static_cast<std::uint32_t>(positions);
  return {};
}

Result<void> read_rope(const ConfigTable& c, const TensorSource& tensors, LlamaConfig& out) {
  CYB_ASSIGN(const double partial, c.number_or(arch("partial_rotary_factor"), 1.0));
  if (!(partial > 0 && partial <= 1))
    return fail(invalid_config("partial_rotary_factor", "out of range: (0, 1]"));
  out.rope_dim = static_cast<std::uint32_t>(out.head_dim * partial + 1e-9) & ~1u;
  if (out.rope_dim == 0) return fail(invalid_config("partial_rotary_factor", "rotates no pair"));
  CYB_ASSIGN(const std::string style, c.string_or(arch("rope_style"), "neox"));
  if (style != "neox" && style != "gptj")
    return fail(invalid_config("rope_style", "\"" + style + "\" is not known"));
  out.rope_style = style == "neox" ? 0 : 1;
  CYB_ASSIGN(const double theta, c.number_or(arch("rope_theta"), 10000.0));
  CYB_ASSIGN(out.theta_full, c.number_or(arch("rope_theta_full"), theta));
  CYB_ASSIGN(out.theta_sliding, c.number_or(arch("rope_theta_sliding"), theta));
  if (!(out.theta_full > 0) || !(out.theta_sliding > 0))
    return fail(invalid_config("rope_theta", "must be above 0"));
  CYB_ASSIGN(out.rope_full, read_rope_scaling(c, tensors, out.theta_full, out.rope_dim));
  // Where a sliding theta is given, scaling holds for the full layers only (Gemma 3).
  if (c.at(arch("rope_theta_sliding")) == nullptr) {
    CYB_ASSIGN(out.rope_sliding, read_rope_scaling(c, tensors, out.theta_sliding, out.rope_dim));
  }
  return {};
}

Result<void> read_layers(const ConfigTable& c, const TensorSource& tensors, LlamaConfig& out) {
  CYB_ASSIGN(const std::int64_t window, c.integer_or(arch("sliding_window"), 0));
  if (window < 0 || window > (std::int64_t{1} << 30))
    return fail(invalid_config("sliding_window", "out of range"));
  out.window = static_cast<std::uint32_t>(window);
  out.sliding.assign(out.n_layers, window > 0);
  CYB_ASSIGN(const std::vector<std::string> types, c.strings_or_empty(arch("layer_types")));
  if (!types.empty() && types.size() != out.n_layers) {
    return fail(invalid_config("layer_types", "needs one entry per layer"));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool sliding = types[i] == "sliding" || types[i] == "sliding_attention";
    if (!sliding && types[i] != "full" && types[i] != "full_attention") {
      return fail(invalid_config("layer_types", "\"" + types[i] + "\" is not built yet"));
    }
    if (sliding && window == 0)
      return fail(invalid_config("sliding_window", "missing, layer_types has sliding layers"));
    out.sliding[i] = sliding;
  }
  CYB_ASSIGN(out.rope_layer, c.booleans_or_empty(arch("rope_layers")));
  if (out.rope_layer.empty()) out.rope_layer.assign(out.n_layers, true);
  // Learned positions take the place of rope.
  if (!llama_names(tensors).positions.empty()) out.rope_layer.assign(out.n_layers, false);
  if (out.rope_layer.size() != out.n_layers)
    return fail(invalid_config("rope_layers", "needs one entry per layer"));
  return {};
}

Result<void> read_scales(const ConfigTable& c, LlamaConfig& out) {
  const char* eps_key = out.layer_norm ? "layer_norm_eps" : "rms_norm_eps";
  CYB_ASSIGN(const double eps, c.number_or(arch(eps_key), out.layer_norm ? 1e-5 : 1e-6));
  if (!(eps > 0 && eps < 1)) return fail(invalid_config(eps_key, "out of range: (0, 1)"));
  out.norm_eps = static_cast<float>(eps);
  CYB_ASSIGN(out.norm_unit_offset, c.boolean_or(arch("norm_unit_offset"), false));
  CYB_ASSIGN(out.tied, c.boolean_or(arch("tie_word_embeddings"), false));
  CYB_ASSIGN(out.activation, activation(c));
  CYB_ASSIGN(const double embedding_scale, c.number_or(arch("embedding_scale"), 1.0));
  out.embedding_scale = static_cast<float>(embedding_scale);
  CYB_ASSIGN(const double scale,
             c.number_or(arch("attention_scale"), 1.0 / std::sqrt(double(out.head_dim))));
  if (!(scale > 0)) return fail(invalid_config("attention_scale", "must be above 0"));
  out.attention_scale = static_cast<float>(scale);
  CYB_ASSIGN(const double residual, c.number_or(arch("residual_multiplier"), 1.0));
  CYB_ASSIGN(const double logits, c.number_or(arch("logits_scaling"), 1.0));
  if (!(logits > 0)) return fail(invalid_config("logits_scaling", "must be above 0"));
  out.residual_multiplier = static_cast<float>(residual);
  out.logits_scaling = static_cast<float>(logits);
  CYB_ASSIGN(const double attention_cap, c.number_or(arch("attn_logit_softcapping"), 0.0));
  CYB_ASSIGN(const double final_cap, c.number_or(arch("final_logit_softcapping"), 0.0));
  if (attention_cap < 0 || final_cap < 0)
    return fail(invalid_config("attn_logit_softcapping", "must not be negative"));
  out.attention_softcap = static_cast<float>(attention_cap);
  out.final_softcap = static_cast<float>(final_cap);
  return {};
}

}  // namespace

Result<LlamaConfig> read_llama_config(const ConfigTable& config, const TensorSource& tensors) {
  LlamaConfig out;
  CYB_TRY(refuse_variants(config));
  CYB_TRY(read_shape(config, out));
  CYB_TRY(read_dims(config, out));
  CYB_TRY(read_rope(config, tensors, out));
  CYB_TRY(read_layers(config, tensors, out));
  CYB_TRY(read_scales(config, out));
  return out;
}

}  // namespace cyb
