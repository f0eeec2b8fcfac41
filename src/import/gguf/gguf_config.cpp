// GGUF metadata of LlamaStyle architectures (model-format 6.3 step 6, execution 6.1).
#include "import/gguf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_text.hpp"
#include "import/draft.hpp"

namespace cyb::gguf {
namespace {

constexpr std::array kArchitectures = {
#define CYB_ARCHITECTURE(name, model_type, class_name, permuted, kind) \
  ArchitectureRow{name, model_type, class_name, permuted, Kind::kind},
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

Result<void> read_window(Keys& keys, LlamaStyleConfig& c) {
  if (!keys.has("attention.sliding_window")) return {};
  CYB_ASSIGN(c.sliding_window,
             keys.integer("attention.sliding_window", {0, std::int64_t{1} << 30}));
  return {};
}

Result<void> read_norm(Keys& keys, Kind kind, LlamaStyleConfig& c) {
  c.layer_norm = is_layer_norm(kind);
  const std::string_view key =
      c.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  CYB_ASSIGN(c.norm_eps, keys.get().number(keys.name(key)));
  if (!(c.norm_eps > 0 && c.norm_eps < 1)) return keys.refuse(key, "is out of range: (0, 1)");
  return {};
}

Result<void> refuse_the_rest(Keys& keys, Kind kind, const LlamaStyleConfig& c) {
  for (const std::string_view suffix : kHarmless) keys.get().ignore(keys.name(suffix));
  const auto is_used = [&](std::string_view suffix) {
    if (suffix == "rope.scaling.attn_factor")
      return c.rope_scaling && *c.rope_scaling->find("type")->string() == "longrope";
    return kind == Kind::kGranite && (suffix == "logit_scale" || suffix == "embedding_scale" ||
                                      suffix == "residual_scale");
  };
  for (const NeutralKey& key : kNeutral) {
    if (is_used(key.suffix)) continue;
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
  CYB_TRY(read_norm(keys, row.kind, c));
  if (row.kind != Kind::kGpt2) CYB_TRY(read_rope(keys, facts, c, report));
  CYB_TRY(read_window(keys, c));
  CYB_TRY(read_kind(keys, row.kind, c, report));
  CYB_TRY(refuse_the_rest(keys, row.kind, c));
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
