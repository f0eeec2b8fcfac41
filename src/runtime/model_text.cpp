// Config keys and vocab arrays to the tokenizer's own types.
#include "runtime/model_text.hpp"

#include <optional>
#include <string>
#include <utility>

#include "text/pipeline/pipeline_table.hpp"

namespace cyb {
namespace {

constexpr std::int64_t kMaxId = INT32_MAX;

Result<std::optional<std::int32_t>> optional_id(const ConfigTable& config, const char* key,
                                                const char* synonym) {
  for (const char* name : {key, synonym}) {
    const std::string path = std::string("tokenizer.") + name;
    if (config.at(path) == nullptr) continue;
    CYB_ASSIGN(const std::int64_t id, config.integer_in(path, 0, kMaxId));
    return std::optional(static_cast<std::int32_t>(id));
  }
  return std::optional<std::int32_t>();
}

Result<std::vector<std::int32_t>> eos_ids(const ConfigTable& config) {
  std::vector<std::int32_t> out;
  for (const char* name : {"eos_token_ids", "eos_token_id", "eos_id"}) {
    const std::string path = std::string("tokenizer.") + name;
    const ConfigValue* value = config.at(path);
    if (value == nullptr) continue;
    if (value->array() == nullptr) {
      CYB_ASSIGN(const std::int64_t id, config.integer_in(path, 0, kMaxId));
      return std::vector{static_cast<std::int32_t>(id)};
    }
    CYB_ASSIGN(const std::vector<std::int64_t> ids, config.integers_or_empty(path));
    for (const std::int64_t id : ids) {
      if (id < 0 || id > kMaxId) {
        return fail(invalid_config(path, "token id " + std::to_string(id) + " is out of range"));
      }
      out.push_back(static_cast<std::int32_t>(id));
    }
    return out;
  }
  return out;
}

Result<void> read_flags(const ConfigTable& config, TokenizerConfig& out) {
  const std::pair<const char*, bool*> flags[] = {
      {"add_bos_token", &out.add_bos_token},       {"add_eos_token", &out.add_eos_token},
      {"add_space_prefix", &out.add_space_prefix}, {"split_words", &out.split_words},
      {"byte_fallback", &out.byte_fallback},       {"fuse_unk", &out.fuse_unk},
      {"ignore_merges", &out.ignore_merges},       {"nfc", &out.nfc},
  };
  for (const auto& [key, flag] : flags) {
    CYB_ASSIGN(*flag, config.boolean_or(std::string("tokenizer.") + key, *flag));
  }
  return {};
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(const ConfigTable& config) {
  CYB_ASSIGN(const std::string type_name, config.string_or("tokenizer.type", "none"));
  CYB_ASSIGN(const TokenizerKind type, parse_tokenizer_kind(type_name));
  const ConfigValue* pipeline = config.at("tokenizer.pipeline");
  const bool has_pipeline = pipeline != nullptr && pipeline->table() != nullptr;
  CYB_ASSIGN(const std::string pre_name,
             config.string_or("tokenizer.pre",
                              type == TokenizerKind::kBpe && !has_pipeline ? "gpt2" : "none"));
  CYB_ASSIGN(const PreTokenizer pre, parse_pre_tokenizer(pre_name));
  TokenizerConfig out = tokenizer_preset(type, pre);
  if (has_pipeline) out.pipeline = pipeline_text(*pipeline->table());
  CYB_TRY(read_flags(config, out));
  CYB_ASSIGN(
      const std::string prefix,
      config.string_or("tokenizer.space_prefix", std::string(space_prefix_name(out.space_prefix))));
  CYB_ASSIGN(out.space_prefix, parse_space_prefix(prefix));
  CYB_ASSIGN(out.bos_token_id, optional_id(config, "bos_token_id", "bos_id"));
  CYB_ASSIGN(out.pad_token_id, optional_id(config, "pad_token_id", "pad_id"));
  CYB_ASSIGN(out.unk_token_id, optional_id(config, "unk_token_id", "unk_id"));
  CYB_ASSIGN(out.eos_token_ids, eos_ids(config));
  return out;
}

Result<TokenizerParts> tokenizer_parts(const ConfigTable& config, const VocabData& vocab) {
  TokenizerParts out;
  CYB_ASSIGN(out.config, read_tokenizer_config(config));
  if (out.config.type == TokenizerKind::kNone) {
    CYB_TRY(out.vocabulary.finish());
    return out;
  }
  CYB_TRY(out.vocabulary.assign(vocab));
  CYB_TRY(out.vocabulary.finish());
  const std::size_t n_merges = vocab.merges.size() / 2;
  out.merges.reserve(n_merges);
  for (std::size_t rank = 0; rank < n_merges; ++rank) {
    CYB_ASSIGN(const MergePair pair, find_merge(out.vocabulary, vocab.merges[2 * rank],
                                                vocab.merges[2 * rank + 1], rank));
    out.merges.push_back(pair);
  }
  out.special_ids = vocab.special;
  return out;
}

Result<TokenizerParts> tokenizer_parts(const Model& model) {
  CYB_ASSIGN(const TokenizerConfig config, read_tokenizer_config(model.config()));
  if (config.type == TokenizerKind::kNone) return tokenizer_parts(model.config(), VocabData());
  CYB_ASSIGN(const VocabData* vocab, model.vocab());
  return tokenizer_parts(model.config(), *vocab);
}

}  // namespace cyb
