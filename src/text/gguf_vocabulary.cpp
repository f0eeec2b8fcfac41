// GGUF vocabularies: models "gpt2" (byte-level BPE) and "llama" (SentencePiece). Names of
// pre-tokenizers are accepted only where the expression and the normalisation of the checkpoints
// behind the name are the ones built here.
#include "text/gguf_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/limits.hpp"
#include "text/tokenizers/byte_level.hpp"
#include "text/tokenizers/space_mark.hpp"

namespace cyb {
namespace {

constexpr std::array<std::pair<std::string_view, PreTokenizer>, 9> kPreNames{{
    {"gpt-2", PreTokenizer::kGpt2},
    {"phi-2", PreTokenizer::kGpt2},
    {"smollm", PreTokenizer::kSmollm},
    {"starcoder", PreTokenizer::kSmollm},
    {"refact", PreTokenizer::kSmollm},
    {"qwen2", PreTokenizer::kQwen2},
    {"deepseek-r1-qwen", PreTokenizer::kQwen2},
    {"llama3", PreTokenizer::kLlama3},
    {"llama-bpe", PreTokenizer::kLlama3},
}};

// Ends of a turn or of a text by their usual names: a file names one as EOS, a model may write the
// other.
constexpr std::array<std::string_view, 8> kEndTexts{
    "<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",      "<|end|>",
    "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>"};

Error vocab_error(std::string text) {
  return Error(ErrorKind::kFormat, "F34", "vocab: " + std::move(text));
}

Result<void> choose_pre(const GgufVocabulary& source, TokenizerParts& parts) {
  if (source.pre.empty() || source.pre == "default") {
    parts.config = tokenizer_preset(TokenizerKind::kBpe, PreTokenizer::kGpt2);
    parts.assumptions.push_back(fmt::format("tokenizer.ggml.pre is {}: GPT-2's pre-tokenizer",
                                            source.pre.empty() ? "absent" : "\"default\""));
    return {};
  }
  for (const auto& [name, pre] : kPreNames) {
    if (name != source.pre) continue;
    parts.config = tokenizer_preset(TokenizerKind::kBpe, pre);
    return {};
  }
  return fail(not_built(fmt::format("tokenizer.ggml.pre \"{}\"", source.pre)));
}

Result<TokenType> type_of(const GgufVocabulary& source, std::size_t id) {
  if (source.tokens[id].empty()) return TokenType::kUnused;  // no text ever matches it
  if (source.token_types.empty()) return TokenType::kNormal;
  const std::int32_t type = source.token_types[id];
  if (type < 1 || type > 6) {
    return fail(vocab_error(fmt::format("token {} has the unknown type {}", id, type)));
  }
  if (type == 6 && text::parse_byte_token(source.tokens[id]) < 0) {
    return fail(
        vocab_error(fmt::format("token {} is typed byte, but its text is not <0x00>..<0xFF>", id)));
  }
  return static_cast<TokenType>(type);
}

Result<void> fill_vocabulary(const GgufVocabulary& source, TokenizerParts& parts) {
  if (source.tokens.empty()) return fail(vocab_error("tokenizer.ggml.tokens is missing"));
  const auto same_size = [&](std::size_t size) {
    return size == 0 || size == source.tokens.size();
  };
  if (!same_size(source.scores.size()) || !same_size(source.token_types.size())) {
    return fail(vocab_error(fmt::format("{} tokens, {} scores, {} types", source.tokens.size(),
                                        source.scores.size(), source.token_types.size())));
  }
  std::size_t n_bytes = 0;
  for (const std::string_view token : source.tokens) n_bytes += token.size();
  parts.vocabulary.reserve(source.tokens.size(), n_bytes);
  const bool spm = parts.config.type == TokenizerKind::kSpm;
  for (std::size_t id = 0; id < source.tokens.size(); ++id) {
    CYB_ASSIGN(const TokenType type, type_of(source, id));
    const float score = spm ? source.scores[id] : 0.0F;
    // Files of Gemma write the spaces of user-defined tokens as spaces, those of all others as
    // U+2581.
    const bool spaces = spm && type == TokenType::kUserDefined &&
                        source.tokens[id].find(' ') != std::string_view::npos;
    const std::string marked = spaces ? text::marked_spaces(source.tokens[id]) : std::string();
    CYB_TRY(
        parts.vocabulary.add({spaces ? std::string_view(marked) : source.tokens[id], type, score}));
    if (type == TokenType::kUnknown) parts.special_ids.push_back(static_cast<std::int32_t>(id));
  }
  return parts.vocabulary.finish();
}

Result<void> set_id(std::optional<std::int64_t> value, std::string_view key,
                    const TokenizerParts& parts, std::optional<std::int32_t>& out) {
  if (!value) return {};
  if (*value < 0 || *value >= parts.vocabulary.size()) {
    return fail(invalid_config(
        fmt::format("tokenizer.ggml.{}", key),
        fmt::format("token {} is not in the vocabulary of {}", *value, parts.vocabulary.size())));
  }
  out = static_cast<std::int32_t>(*value);
  return {};
}

void add_end_token(std::int32_t id, TokenizerParts& parts) {
  auto& ids = parts.config.eos_token_ids;
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

Result<void> set_ids(const GgufVocabulary& source, TokenizerParts& parts) {
  TokenizerConfig& config = parts.config;
  CYB_TRY(set_id(source.bos_id, "bos_token_id", parts, config.bos_token_id));
  CYB_TRY(set_id(source.unk_id, "unknown_token_id", parts, config.unk_token_id));
  CYB_TRY(set_id(source.pad_id, "padding_token_id", parts, config.pad_token_id));
  const std::pair<std::optional<std::int64_t>, std::string_view> ends[] = {
      {source.eos_id, "eos_token_id"},
      {source.eot_id, "eot_token_id"},
      {source.eom_id, "eom_token_id"}};
  for (const auto& [value, key] : ends) {
    std::optional<std::int32_t> id;
    CYB_TRY(set_id(value, key, parts, id));
    if (id) add_end_token(*id, parts);
  }
  for (const std::string_view text : kEndTexts) {
    const std::int32_t id = parts.vocabulary.find(text);
    if (id < 0 || parts.vocabulary.type(id) != TokenType::kControl) continue;
    const std::size_t before = config.eos_token_ids.size();
    add_end_token(id, parts);
    if (config.eos_token_ids.size() == before) continue;
    parts.assumptions.push_back(fmt::format("token {} \"{}\" also ends an answer", id, text));
  }
  return {};
}

// llama.cpp's defaults for SentencePiece files that leave the ids out.
void default_spm_ids(GgufVocabulary& source, TokenizerParts& parts) {
  const auto take = [&](std::optional<std::int64_t>& id, std::int64_t value, std::string_view key) {
    if (id) return;
    id = value;
    parts.assumptions.push_back(fmt::format("tokenizer.ggml.{} is absent: {}", key, value));
  };
  take(source.bos_id, 1, "bos_token_id");
  take(source.eos_id, 2, "eos_token_id");
  take(source.unk_id, 0, "unknown_token_id");
}

Result<void> fill_merges(const GgufVocabulary& source, TokenizerParts& parts) {
  if (source.merges.empty()) return fail(vocab_error("tokenizer.ggml.merges is missing"));
  parts.merges.reserve(source.merges.size());
  for (std::size_t rank = 0; rank < source.merges.size(); ++rank) {
    CYB_ASSIGN(const MergePair pair, find_merge(parts.vocabulary, source.merges[rank], rank));
    parts.merges.push_back(pair);
  }
  return {};
}

}  // namespace

Result<TokenizerParts> vocabulary_from_gguf(const GgufVocabulary& given) {
  GgufVocabulary source = given;
  TokenizerParts parts;
  const bool bpe = source.model == "gpt2";
  if (bpe) {
    CYB_TRY(choose_pre(source, parts));
  } else if (source.model == "llama") {
    parts.config = tokenizer_preset(TokenizerKind::kSpm, PreTokenizer::kNone);
    if (source.scores.empty()) return fail(vocab_error("tokenizer.ggml.scores is missing"));
    default_spm_ids(source, parts);
  } else {
    return fail(not_built(fmt::format("tokenizer.ggml.model \"{}\"", source.model)));
  }
  CYB_TRY(fill_vocabulary(source, parts));
  CYB_TRY(set_ids(source, parts));
  if (bpe) CYB_TRY(fill_merges(source, parts));

  TokenizerConfig& config = parts.config;
  const bool bos_by_default = !bpe || config.pre == PreTokenizer::kLlama3;
  config.add_bos_token = source.add_bos.value_or(bos_by_default && config.bos_token_id.has_value());
  config.add_eos_token = source.add_eos.value_or(false);
  if (bpe) {
    if (source.add_space_prefix.value_or(false)) {
      return fail(not_built("tokenizer.ggml.add_space_prefix of a byte-level vocabulary"));
    }
    return parts;
  }
  config.add_space_prefix = source.add_space_prefix.value_or(true);
  const auto& types = source.token_types;
  config.byte_fallback = std::find(types.begin(), types.end(), 6) != types.end();
  return parts;
}

}  // namespace cyb
