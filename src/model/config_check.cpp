// Rules of the config part as one table. A family's own keys are checked by the family.
#include "model/config_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/limits.hpp"
#include "model/format_error.hpp"
#include "model/tensor_index.hpp"

namespace cyb {
namespace {

enum class Rule : std::uint8_t {
  kString,
  kBool,
  kPositive,  // integer > 0
  kEvenSize,  // integer > 0, even
  kTokenId,   // integer >= 0
  kCount,     // integer >= 0
  kPositiveFloat,
  kNonNegativeFloat,
  kUnitOpen,   // float in (0, 1)
  kUnitUpper,  // float in (0, 1]
  kFiniteFloat,
  kStrings,
  kIntegers,
  kBools,
  kTable,
};

struct KeyRule {
  std::string_view key;
  Rule rule;
};

constexpr std::array kRules = {
    KeyRule{"license", Rule::kString},
    KeyRule{"languages", Rule::kStrings},
    KeyRule{"architecture_class", Rule::kString},
    KeyRule{"context_length", Rule::kPositive},
    KeyRule{"architecture", Rule::kTable},
    KeyRule{"architecture.hidden_size", Rule::kPositive},
    KeyRule{"architecture.num_attention_heads", Rule::kPositive},
    KeyRule{"architecture.num_key_value_heads", Rule::kPositive},
    KeyRule{"architecture.head_dim", Rule::kEvenSize},
    KeyRule{"architecture.num_hidden_layers", Rule::kPositive},
    KeyRule{"architecture.intermediate_size", Rule::kPositive},
    KeyRule{"architecture.vocab_size", Rule::kPositive},
    KeyRule{"architecture.max_position_embeddings", Rule::kPositive},
    KeyRule{"architecture.rope_theta", Rule::kPositiveFloat},
    KeyRule{"architecture.rope_style", Rule::kString},
    KeyRule{"architecture.rope_scaling", Rule::kTable},
    KeyRule{"architecture.partial_rotary_factor", Rule::kUnitUpper},
    KeyRule{"architecture.rms_norm_eps", Rule::kUnitOpen},
    KeyRule{"architecture.layer_norm_eps", Rule::kUnitOpen},
    KeyRule{"architecture.norm_type", Rule::kString},
    KeyRule{"architecture.norm_unit_offset", Rule::kBool},
    KeyRule{"architecture.tie_word_embeddings", Rule::kBool},
    KeyRule{"architecture.hidden_activation", Rule::kString},
    KeyRule{"architecture.mlp_type", Rule::kString},
    KeyRule{"architecture.parallel_block", Rule::kBool},
    KeyRule{"architecture.embedding_scale", Rule::kFiniteFloat},
    KeyRule{"architecture.attention_scale", Rule::kFiniteFloat},
    KeyRule{"architecture.attn_logit_softcapping", Rule::kNonNegativeFloat},
    KeyRule{"architecture.final_logit_softcapping", Rule::kNonNegativeFloat},
    KeyRule{"architecture.sliding_window", Rule::kPositive},
    KeyRule{"architecture.layer_types", Rule::kStrings},
    KeyRule{"architecture.rope_theta_full", Rule::kPositiveFloat},
    KeyRule{"architecture.rope_theta_sliding", Rule::kPositiveFloat},
    KeyRule{"architecture.rope_layers", Rule::kBools},
    KeyRule{"tokenizer", Rule::kTable},
    KeyRule{"tokenizer.type", Rule::kString},
    KeyRule{"tokenizer.pre", Rule::kString},
    KeyRule{"tokenizer.pipeline", Rule::kTable},
    KeyRule{"tokenizer.bos_token_id", Rule::kTokenId},
    KeyRule{"tokenizer.pad_token_id", Rule::kTokenId},
    KeyRule{"tokenizer.unk_token_id", Rule::kTokenId},
    KeyRule{"tokenizer.cls_token_id", Rule::kTokenId},
    KeyRule{"tokenizer.sep_token_id", Rule::kTokenId},
    KeyRule{"tokenizer.mask_token_id", Rule::kTokenId},
    KeyRule{"tokenizer.eos_token_ids", Rule::kIntegers},
    KeyRule{"tokenizer.add_bos_token", Rule::kBool},
    KeyRule{"tokenizer.add_eos_token", Rule::kBool},
    KeyRule{"tokenizer.add_space_prefix", Rule::kBool},
    KeyRule{"tokenizer.byte_fallback", Rule::kBool},
    KeyRule{"tokenizer.lowercase", Rule::kBool},
    KeyRule{"tokenizer.strip_accents", Rule::kBool},
    KeyRule{"sampling", Rule::kTable},
    KeyRule{"sampling.method", Rule::kString},
    KeyRule{"sampling.temperature", Rule::kNonNegativeFloat},
    KeyRule{"sampling.top_p", Rule::kNonNegativeFloat},
    KeyRule{"sampling.min_p", Rule::kNonNegativeFloat},
    KeyRule{"sampling.typical_p", Rule::kPositiveFloat},
    KeyRule{"sampling.repetition_penalty", Rule::kPositiveFloat},
    KeyRule{"sampling.top_k", Rule::kCount},
};

struct KeyWords {
  std::string_view key;
  std::array<std::string_view, 7> words;
};

constexpr std::array kWords = {
    KeyWords{"architecture.rope_style", {"neox", "gptj"}},
    KeyWords{"architecture.norm_type", {"rms", "layer"}},
    KeyWords{"architecture.hidden_activation",
             {"silu", "gelu_pytorch_tanh", "gelu", "relu", "quick_gelu"}},
    KeyWords{"architecture.mlp_type", {"gated", "plain", "none"}},
    KeyWords{"tokenizer.type",
             {"bpe", "spm", "unigram", "wordpiece", "wordlevel", "particle", "none"}},
    KeyWords{"tokenizer.pre", {"gpt2", "llama3", "qwen2", "smollm", "none"}},
    KeyWords{"sampling.method", {"greedy", "temperature", "top_k", "top_p", "min_p", "chain"}},
};

Result<void> check_integer(std::string_view key, Rule rule, const ConfigValue& value) {
  const std::int64_t* number = value.integer();
  if (number == nullptr) return fail(config_wrong_type(key, "integer"));
  const bool positive = rule == Rule::kPositive || rule == Rule::kEvenSize;
  if (positive && *number <= 0) return fail(config_out_of_range(key, "must be > 0"));
  if (rule == Rule::kEvenSize && *number % 2 != 0)
    return fail(config_out_of_range(key, "must be even"));
  // Sizes are multiplied with each other: 2^31 leaves room in 64 bits.
  if (*number < 0 || *number > std::numeric_limits<std::int32_t>::max()) {
    return fail(config_out_of_range(key, "must be in 0..2147483647"));
  }
  return {};
}

Result<void> check_float(std::string_view key, Rule rule, const ConfigValue& value) {
  const auto number = value.number();
  if (!number) return fail(config_wrong_type(key, "float"));
  if (!std::isfinite(*number)) return fail(config_out_of_range(key, "must be finite"));
  if (rule == Rule::kPositiveFloat && *number <= 0)
    return fail(config_out_of_range(key, "must be > 0"));
  if (rule == Rule::kNonNegativeFloat && *number < 0) {
    return fail(config_out_of_range(key, "must be >= 0"));
  }
  if (rule == Rule::kUnitOpen && (*number <= 0 || *number >= 1)) {
    return fail(config_out_of_range(key, "must be in (0, 1)"));
  }
  if (rule == Rule::kUnitUpper && (*number <= 0 || *number > 1)) {
    return fail(config_out_of_range(key, "must be in (0, 1]"));
  }
  return {};
}

template <class T>
Result<void> drop_value(Result<T> result) {
  CYB_TRY(std::move(result));
  return {};
}

Result<void> check_key(const ConfigTable& config, const KeyRule& row) {
  const ConfigValue* value = config.at(row.key);
  if (value == nullptr) return {};
  switch (row.rule) {
    case Rule::kString:
      return drop_value(config.string(row.key));
    case Rule::kBool:
      return drop_value(config.boolean_or(row.key, false));
    case Rule::kStrings:
      return drop_value(config.strings_or_empty(row.key));
    case Rule::kIntegers:
      return drop_value(config.integers_or_empty(row.key));
    case Rule::kBools:
      return drop_value(config.booleans_or_empty(row.key));
    case Rule::kTable:
      if (value->table() == nullptr) return fail(config_wrong_type(row.key, "table"));
      return {};
    case Rule::kPositive:
    case Rule::kEvenSize:
    case Rule::kTokenId:
    case Rule::kCount:
      return check_integer(row.key, row.rule, *value);
    default:
      return check_float(row.key, row.rule, *value);
  }
}

Result<void> check_words(const ConfigTable& config, const KeyWords& row) {
  const ConfigValue* value = config.at(row.key);
  if (value == nullptr) return {};
  const std::string& word = *value->string();  // its type was checked before
  if (!word.empty() && std::ranges::count(row.words, std::string_view(word)) != 0) return {};
  return fail(config_out_of_range(row.key, fmt::format("\"{}\" is unknown", printable(word, 32))));
}

std::optional<std::int64_t> integer_at(const ConfigTable& config, std::string_view key) {
  const ConfigValue* value = config.at(key);
  const std::int64_t* number = value == nullptr ? nullptr : value->integer();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

Result<void> check_relations(const ConfigTable& config) {
  const auto heads = integer_at(config, "architecture.num_attention_heads");
  const auto kv_heads = integer_at(config, "architecture.num_key_value_heads");
  if (heads && kv_heads && *heads % *kv_heads != 0) {
    return fail(config_out_of_range(
        "architecture.num_key_value_heads",
        fmt::format("{} heads are not a multiple of {} kv heads", *heads, *kv_heads)));
  }
  const auto vocab = integer_at(config, "architecture.vocab_size");
  if (vocab && static_cast<std::uint64_t>(*vocab) > kMaxVocab) {
    return fail(
        config_out_of_range("architecture.vocab_size", fmt::format("must be <= {}", kMaxVocab)));
  }
  const auto context = integer_at(config, "context_length");
  const auto positions = integer_at(config, "architecture.max_position_embeddings");
  if (context && positions && *context > *positions) {
    return fail(config_out_of_range(
        "context_length", fmt::format("must be <= max_position_embeddings ({})", *positions)));
  }
  const auto layers = integer_at(config, "architecture.num_hidden_layers");
  for (const std::string_view key : {"architecture.layer_types", "architecture.rope_layers"}) {
    const ConfigValue* list = config.at(key);
    if (list == nullptr || !layers) continue;
    if (static_cast<std::int64_t>(list->array()->size()) != *layers) {
      return fail(config_out_of_range(
          key, fmt::format("{} entries for {} layers", list->array()->size(), *layers)));
    }
  }
  return {};
}

/// Shape of the embedding and presence of the head, for models with the common names.
Result<void> check_embedding(const ConfigTable& config, const TensorFinder& find) {
  constexpr std::string_view kEmbed = "model.embed_tokens.weight";
  const TensorEntry* embed = find(kEmbed);
  const auto vocab = integer_at(config, "architecture.vocab_size");
  const auto hidden = integer_at(config, "architecture.hidden_size");
  if (embed == nullptr || !vocab || !hidden) return {};
  const Shape implied{*vocab, *hidden};
  if (embed->shape != implied) return fail(family_shape_error(kEmbed, embed->shape, implied));
  const TensorEntry* head = find("lm_head.weight");
  if (head == nullptr) head = find("model.lm_head.weight");
  CYB_ASSIGN(const bool tied, config.boolean_or("architecture.tie_word_embeddings", false));
  if (head != nullptr && tied) {
    return fail(config_out_of_range("architecture.tie_word_embeddings",
                                    fmt::format("true, but the index has \"{}\"", head->name)));
  }
  if (head == nullptr && !tied) {
    CYB_ASSIGN(const std::string model_type, config.string("model_type"));
    return fail(missing_family_tensor(model_type, "lm_head.weight"));
  }
  if (head != nullptr && head->shape != implied) {
    return fail(family_shape_error(head->name, head->shape, implied));
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> expected_tokens(const ConfigTable& config) {
  const ConfigValue* type = config.at("tokenizer.type");
  const ConfigValue* size = config.at("architecture.vocab_size");
  if (type == nullptr || size == nullptr || size->integer() == nullptr) return std::nullopt;
  const std::string* name = type->string();
  if (name == nullptr || *name == "none" || *name == "particle") return std::nullopt;
  return static_cast<std::uint64_t>(*size->integer());
}

Result<void> check_config(const ConfigTable& config) {
  CYB_ASSIGN(const std::string model_type, config.string("model_type"));
  if (model_type.empty() || model_type.size() > 64) {
    return fail(config_out_of_range("model_type", "must have 1 to 64 bytes"));
  }
  CYB_ASSIGN(const std::int64_t parameters, config.integer("parameters"));
  if (parameters < 0) return fail(config_out_of_range("parameters", "must be >= 0"));
  for (const KeyRule& row : kRules) CYB_TRY(check_key(config, row));
  for (const KeyWords& row : kWords) CYB_TRY(check_words(config, row));
  return check_relations(config);
}

Result<void> check_config_against_tensors(const ConfigTable& config,
                                          const std::vector<TensorEntry>& tensors,
                                          const TensorFinder& find) {
  const auto sum = count_parameters(tensors, find);
  CYB_ASSIGN(const std::int64_t stated, config.integer("parameters"));
  if (!sum || *sum != static_cast<std::uint64_t>(stated)) {
    const std::string shown = sum ? fmt::format("{}", *sum) : "more than 2^64";
    return fail(format_error(
        "F35", fmt::format("config: parameters = {}, index sums to {}", stated, shown)));
  }
  return check_embedding(config, find);
}

}  // namespace cyb
