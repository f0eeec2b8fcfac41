// GGUF metadata of LlamaStyle architectures (model-format 6.3 step 6, execution 6.1).
#include "import/gguf/gguf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_text.hpp"
#include "import/draft.hpp"

namespace cyb::gguf {
namespace {

constexpr std::array kArchitectures = {
#define CYB_ARCHITECTURE(name, model_type, class_name, permuted, gemma) \
  ArchitectureRow{name, model_type, class_name, permuted, gemma},
#include "import/gguf/architectures.inc"
#undef CYB_ARCHITECTURE
};

constexpr IntegerRange kDim{1, 1 << 24};
constexpr IntegerRange kPositions{1, std::int64_t{1} << 30};
constexpr IntegerRange kAny{INT64_MIN, INT64_MAX};

/// Keys that change nothing here whatever they say.
constexpr std::array<std::string_view, 4> kHarmless = {"rope.scaling.finetuned",
                                                       "tensor_data_layout", "expert_used_count",
                                                       "rope.scaling.original_context_length"};

/// Keys that change the mathematics unless they have this value.
struct NeutralKey {
  std::string_view suffix;
  double neutral;
};
constexpr std::array kNeutral = {
    NeutralKey{"expert_count", 0},
    NeutralKey{"expert_shared_count", 0},
    NeutralKey{"leading_dense_block_count", 0},
    NeutralKey{"nextn_predict_layers", 0},
    NeutralKey{"attention.max_alibi_bias", 0},
    NeutralKey{"attention.clamp_kqv", 0},
    NeutralKey{"attention.shared_kv_layers", 0},
    NeutralKey{"rope.scaling.attn_factor", 1},
    NeutralKey{"rope.scaling.yarn_log_multiplier", 0},
    NeutralKey{"logit_scale", 1},
    NeutralKey{"embedding_scale", 1},
    NeutralKey{"residual_scale", 1},
    NeutralKey{"pooling_type", 0},
};

class Keys {
 public:
  Keys(Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}
  std::string name(std::string_view suffix) const { return prefix_ + std::string(suffix); }
  const std::string& prefix() const { return prefix_; }
  Metadata& get() { return metadata_; }
  bool has(std::string_view suffix) const { return metadata_.has(name(suffix)); }
  Result<std::int64_t> integer(std::string_view suffix, IntegerRange range) {
    return metadata_.integer(name(suffix), range);
  }
  Result<double> number_or(std::string_view suffix, double fallback) {
    return metadata_.number_or(name(suffix), fallback);
  }

  /// One number for all layers; arrays whose entries differ are not built.
  Result<std::int64_t> uniform(std::string_view suffix, std::int64_t n_layers, IntegerRange range) {
    CYB_ASSIGN(const std::vector<std::int64_t> all,
               metadata_.integers(name(suffix), static_cast<std::size_t>(n_layers), range));
    if (std::ranges::count(all, all[0]) != n_layers)
      return refuse(suffix, "differs between layers, which is not built yet");
    return all[0];
  }

  std::unexpected<Error> refuse(std::string_view suffix, std::string_view why) const {
    return fail(invalid_config(name(suffix), why));
  }

 private:
  Metadata& metadata_;
  std::string prefix_;
};

Result<void> read_heads(Keys& keys, LlamaStyleConfig& c) {
  CYB_ASSIGN(c.n_heads, keys.uniform("attention.head_count", c.n_layers, {1, 1 << 16}));
  c.n_kv_heads = c.n_heads;
  if (keys.has("attention.head_count_kv")) {
    CYB_ASSIGN(c.n_kv_heads, keys.uniform("attention.head_count_kv", c.n_layers, {1, 1 << 16}));
  }
  if (c.n_heads % c.n_kv_heads != 0) {
    return keys.refuse("attention.head_count_kv",
                       fmt::format("{} does not divide {} heads", c.n_kv_heads, c.n_heads));
  }
  if (keys.has("attention.key_length")) {
    CYB_ASSIGN(c.head_dim, keys.integer("attention.key_length", {2, 1 << 16}));
  } else if (c.hidden_size % c.n_heads == 0) {
    c.head_dim = c.hidden_size / c.n_heads;
  } else {
    return keys.refuse("attention.head_count", fmt::format("{} does not divide embedding_length {}",
                                                           c.n_heads, c.hidden_size));
  }
  if (c.head_dim % 2 != 0)
    return keys.refuse("attention.key_length", fmt::format("head size {} is odd", c.head_dim));
  CYB_ASSIGN(const std::int64_t value_dim,
             keys.get().integer_or(keys.name("attention.value_length"), c.head_dim, kDim));
  if (value_dim != c.head_dim)
    return keys.refuse("attention.value_length", "differs from key_length, which is not built yet");
  return {};
}

Result<void> read_sizes(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c) {
  const auto most_layers = static_cast<std::int64_t>(std::max<std::uint64_t>(facts.n_tensors, 1));
  CYB_ASSIGN(c.n_layers, keys.integer("block_count", {1, most_layers}));
  CYB_ASSIGN(c.hidden_size, keys.integer("embedding_length", kDim));
  CYB_ASSIGN(c.ffn_size, keys.uniform("feed_forward_length", c.n_layers, kDim));
  CYB_ASSIGN(c.max_positions, keys.integer("context_length", kPositions));
  c.vocab_size = facts.embedding_rows;
  CYB_ASSIGN(const std::int64_t vocab,
             keys.get().integer_or(keys.name("vocab_size"), c.vocab_size, kAny));
  if (vocab != c.vocab_size) {
    return keys.refuse("vocab_size", fmt::format("{} differs from the {} rows of token_embd.weight",
                                                 vocab, c.vocab_size));
  }
  return read_heads(keys, c);
}

Result<void> read_rope_scaling(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c) {
  CYB_ASSIGN(const double legacy, keys.number_or("rope.scale_linear", 1.0));
  CYB_ASSIGN(const double factor, keys.number_or("rope.scaling.factor", legacy));
  const std::string_view implied =
      factor != 1.0 && factor != 0.0 ? "linear" : "none";  // llama.cpp: linear is the default
  CYB_ASSIGN(const std::string_view type,
             keys.get().text_or(keys.name("rope.scaling.type"), implied));
  if (type != "none" && type != "linear") {
    return keys.refuse("rope.scaling.type",
                       fmt::format("{} is not built yet (built: none, linear)", json_quote(type)));
  }
  if (type == "linear" && !(factor > 0))
    return keys.refuse("rope.scaling.factor", "must be above 0");
  if (facts.has_rope_factors) {
    if (type == "linear" && factor != 1.0)
      return keys.refuse("rope.scaling.type", "linear together with rope_freqs.weight");
    ConfigTable scaling;
    scaling.set("type", "table");
    c.rope_scaling = std::move(scaling);
  } else if (type == "linear" && factor != 1.0) {
    ConfigTable scaling;
    scaling.set("type", "linear");
    scaling.set("factor", factor);
    c.rope_scaling = std::move(scaling);
  }
  return {};
}

Result<void> read_rope(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c,
                       ImportReport& report) {
  CYB_ASSIGN(c.rope_theta, keys.number_or("rope.freq_base", 10000.0));
  if (!(c.rope_theta > 0)) return keys.refuse("rope.freq_base", "must be above 0");
  if (!keys.has("rope.freq_base"))
    report.assumptions.emplace_back("rope theta is 10000 (the file does not say)");
  if (keys.has("rope.dimension_count")) {
    CYB_ASSIGN(const std::int64_t dims, keys.integer("rope.dimension_count", {2, c.head_dim}));
    if (dims % 2 != 0) return keys.refuse("rope.dimension_count", "is odd");
    c.partial_rotary_factor = static_cast<double>(dims) / static_cast<double>(c.head_dim);
  }
  return read_rope_scaling(keys, facts, c);
}

Result<void> read_window(Keys& keys, LlamaStyleConfig& c) {
  if (!keys.has("attention.sliding_window")) return {};
  CYB_ASSIGN(c.sliding_window,
             keys.integer("attention.sliding_window", {0, std::int64_t{1} << 30}));
  return {};
}

Result<void> read_norm(Keys& keys, LlamaStyleConfig& c) {
  CYB_ASSIGN(c.norm_eps, keys.get().number(keys.name("attention.layer_norm_rms_epsilon")));
  if (!(c.norm_eps > 0 && c.norm_eps < 1)) {
    return keys.refuse("attention.layer_norm_rms_epsilon", "is out of range: (0, 1)");
  }
  return {};
}

/// Which layers slide: stated (newer files), else Gemma 3's five to one.
Result<void> read_gemma_layers(Keys& keys, LlamaStyleConfig& c, ImportReport& report) {
  const std::string key = keys.name("attention.sliding_window_pattern");
  auto stated = keys.get().booleans_or_empty(key, static_cast<std::size_t>(c.n_layers));
  if (stated && !stated->empty()) {
    c.sliding_layers = std::move(*stated);
    return {};
  }
  std::int64_t pattern = 6;
  if (keys.get().has(key)) {
    CYB_ASSIGN(pattern, keys.get().integer(key, {1, 1 << 16}));
  } else {
    report.assumptions.emplace_back(
        "every 6th layer attends to everything, the others to the window (Gemma 3)");
  }
  c.sliding_layers = sliding_pattern(c.n_layers, pattern);
  return {};
}

/// What GGUF does not say about Gemma 3 (execution 6.1).
Result<void> read_gemma(Keys& keys, LlamaStyleConfig& c, ImportReport& report) {
  c.activation = "gelu_pytorch_tanh";
  c.embedding_scale = gemma_embedding_scale(c.hidden_size);
  CYB_ASSIGN(c.attn_softcap, keys.number_or("attn_logit_softcapping", 0.0));
  CYB_ASSIGN(c.final_softcap, keys.number_or("final_logit_softcapping", 0.0));
  if (c.attn_softcap < 0) return keys.refuse("attn_logit_softcapping", "is negative");
  if (c.final_softcap < 0) return keys.refuse("final_logit_softcapping", "is negative");
  if (c.sliding_window == 0) return keys.refuse("attention.sliding_window", "is missing");
  CYB_TRY(read_gemma_layers(keys, c, report));
  CYB_ASSIGN(c.rope_theta_sliding, keys.number_or("rope.freq_base_swa", 10000.0));
  if (!(*c.rope_theta_sliding > 0)) return keys.refuse("rope.freq_base_swa", "must be above 0");
  if (!keys.has("rope.freq_base_swa")) {
    report.assumptions.emplace_back(
        "sliding layers rotate with theta 10000, without scaling (Gemma 3)");
  }
  constexpr std::int64_t kLayers27b = 62;
  const bool is_27b =
      c.n_layers ==
      kLayers27b;  // query_pre_attn_scalar 168 = 5376 / 32; all others use the head size
  const std::int64_t scalar = is_27b ? c.hidden_size / c.n_heads : c.head_dim;
  CYB_ASSIGN(c.attention_scale,
             keys.number_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(scalar))));
  if (!(c.attention_scale > 0)) return keys.refuse("attention.scale", "must be above 0");
  if (!keys.has("attention.scale")) {
    report.assumptions.push_back(
        fmt::format("attention scores are scaled by 1/sqrt({}) (Gemma 3)", scalar));
  }
  return {};
}

Result<void> read_plain(Keys& keys, LlamaStyleConfig& c) {
  c.attention_scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  CYB_ASSIGN(const double stated, keys.number_or("attention.scale", c.attention_scale));
  if (!(stated > 0)) return keys.refuse("attention.scale", "must be above 0");
  c.attention_scale = stated;
  for (const std::string_view suffix : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    CYB_ASSIGN(const double cap, keys.number_or(suffix, 0.0));
    if (cap != 0.0) return keys.refuse(suffix, "is not part of this architecture");
  }
  return {};
}

Result<void> refuse_the_rest(Keys& keys) {
  for (const std::string_view suffix : kHarmless) keys.get().ignore(keys.name(suffix));
  for (const NeutralKey& key : kNeutral) {
    CYB_ASSIGN(const double value, keys.number_or(key.suffix, key.neutral));
    if (value != key.neutral)
      return keys.refuse(key.suffix,
                         fmt::format("{} changes the mathematics and is not built yet", value));
  }
  CYB_ASSIGN(const bool causal, keys.get().boolean_or(keys.name("attention.causal"), true));
  if (!causal) return keys.refuse("attention.causal", "false is not built yet");
  CYB_ASSIGN(const bool parallel, keys.get().boolean_or(keys.name("use_parallel_residual"), false));
  if (parallel) return keys.refuse("use_parallel_residual", "true is not built yet");
  const std::vector<std::string_view> left = keys.get().unread(keys.prefix());
  if (!left.empty())
    return fail(invalid_config(left[0], "is not known and may change the mathematics"));
  return {};
}

Result<void> read_general(Metadata& metadata, LlamaStyleConfig& c, ImportReport& report) {
  CYB_ASSIGN(const std::string_view type, metadata.text_or("general.type", "model"));
  if (type != "model")
    return fail(invalid_config("general.type", fmt::format("{} is not a model", json_quote(type))));
  CYB_ASSIGN(const std::int64_t version,
             metadata.integer_or("general.quantization_version", 2, kAny));
  if (version != 2)
    return fail(invalid_config("general.quantization_version",
                               fmt::format("{} is not supported", version)));
  CYB_ASSIGN(const std::string_view license, metadata.text_or("general.license", ""));
  c.license = valid_text("general.license", license, report);
  CYB_ASSIGN(const std::vector<std::string_view> languages,
             metadata.texts_or_empty("general.languages"));
  for (const std::string_view one : languages)
    c.languages.push_back(valid_text("general.languages", one, report));
  return {};
}

}  // namespace

Result<ArchitectureRow> find_architecture(std::string_view name) {
  std::string known;
  for (const ArchitectureRow& row : kArchitectures) {
    if (row.name == name) return row;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  return fail(
      invalid_config("general.architecture",
                     fmt::format("{} is not supported (supported: {})", json_quote(name), known)));
}

Result<LlamaStyleConfig> read_config(Metadata& metadata, const ArchitectureRow& row,
                                     const TensorFacts& facts, ImportReport& report) {
  Keys keys(metadata, row.name);
  LlamaStyleConfig c;
  c.model_type = row.model_type;
  c.architecture_class = row.class_name;
  c.tied = !facts.has_head;
  CYB_TRY(read_general(metadata, c, report));
  CYB_TRY(read_sizes(keys, facts, c));
  CYB_TRY(read_norm(keys, c));
  CYB_TRY(read_rope(keys, facts, c, report));
  CYB_TRY(read_window(keys, c));
  CYB_TRY(row.gemma ? read_gemma(keys, c, report) : read_plain(keys, c));
  CYB_TRY(refuse_the_rest(keys));
  return c;
}

Result<ConfigTable> read_sampling(Metadata& metadata, ImportReport& report) {
  ConfigTable out;
  CYB_ASSIGN(const double temperature, metadata.number_or("general.sampling.temp", 0.0));
  if (temperature <= 0) {
    out.set("method", "greedy");
  } else {
    out.set("method", "chain");
    out.set("temperature", temperature);
    CYB_ASSIGN(const std::int64_t top_k,
               metadata.integer_or("general.sampling.top_k", 0, {0, INT32_MAX}));
    CYB_ASSIGN(const double top_p, metadata.number_or("general.sampling.top_p", 1.0));
    CYB_ASSIGN(const double min_p, metadata.number_or("general.sampling.min_p", 0.0));
    CYB_ASSIGN(const double penalty, metadata.number_or("general.sampling.penalty_repeat", 1.0));
    out.set("top_k", top_k);
    out.set("top_p", top_p);
    out.set("min_p", min_p);
    out.set("repetition_penalty", penalty);
  }
  for (const std::string_view key : metadata.unread("general.sampling.")) {
    report.warnings.push_back(fmt::format("{} is not applied", key));
  }
  return out;
}

}  // namespace cyb::gguf
