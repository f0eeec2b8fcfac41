// GGUF vocabularies: models "gpt2" (byte-level BPE), "llama" and "gemma4" (SentencePiece BPE), "t5"
// (unigram) and "bert" (WordPiece). Names of pre-tokenizers come from one table.
#include "text/gguf_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/limits.hpp"
#include "text/gguf_pre_tokenizers.hpp"
#include "text/normalizers/steps.hpp"
#include "text/tokenizers/byte_level.hpp"
#include "text/tokenizers/space_mark.hpp"

namespace cyb {
namespace {

using nlohmann::json;

// Ends of a turn or of a text by their usual names: a file names one as EOS, a model may write the
// other.
constexpr std::array<std::string_view, 8> kEndTexts{
    "<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",      "<|end|>",
    "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>"};

Error vocab_error(std::string text) {
  return Error(ErrorKind::kFormat, "F34", "vocab: " + std::move(text));
}

/// What the file leaves to the model's kind.
struct Defaults {
  bool add_bos = false, add_eos = false;
};

Result<void> choose_pre(const GgufVocabulary& source, TokenizerParts& parts, Defaults& defaults) {
  if (source.pre.empty() || source.pre == "default") {
    parts.config = tokenizer_preset(TokenizerKind::kBpe, PreTokenizer::kGpt2);
    parts.assumptions.push_back(fmt::format("tokenizer.ggml.pre is {}: GPT-2's pre-tokenizer",
                                            source.pre.empty() ? "absent" : "\"default\""));
    return {};
  }
  CYB_ASSIGN(text::GgufPre pre, text::gguf_pre(source.pre));
  parts.config = std::move(pre.config);
  defaults = {pre.add_bos || pre.add_sep, pre.add_sep};
  return {};
}

json strip_step() {
  return {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
}

/// sentencepiece's own order: character map, white space, one space in front.
void choose_unigram(const GgufVocabulary& source, TokenizerParts& parts) {
  parts.config.type = TokenizerKind::kUnigram;
  json normal = json::array();
  if (!source.charsmap.empty()) {
    normal.push_back({{"type", "Precompiled"},
                      {"precompiled_charsmap", text::base64_text(source.charsmap)},
                      {"longest_prefix", true}});
  }
  if (source.remove_extra_whitespaces.value_or(true)) {
    normal.push_back(strip_step());
    normal.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  const char* scheme = source.add_space_prefix.value_or(true) ? "always" : "never";
  const json mark{{"type", "Metaspace"},
                  {"replacement", text::kSpaceMark},
                  {"prepend_scheme", scheme},
                  {"split", false}};
  json decoders = json::array({{{"type", "ByteFallback"}}, mark});
  parts.config.pipeline = json{
      {"normalizer", std::move(normal)},
      {"pre_tokenizer", json::array({mark})},
      {"decoder",
       std::move(decoders)}}.dump();
}

void choose_word_piece(const GgufVocabulary& source, TokenizerParts& parts) {
  parts.config.type = TokenizerKind::kWordPiece;
  const bool lower = source.lowercase.value_or(true);
  json normal{{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", source.strip_accents.value_or(lower)},
              {"lowercase", lower}};
  parts.config.pipeline =
      json{{"normalizer", json::array({std::move(normal)})},
           {"pre_tokenizer", json::array({{{"type", "BertPreTokenizer"}}})},
           {"decoder", json::array({{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}})},
           {"model", {{"continuing_subword_prefix", "##"}}}}
          .dump();
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

/// GGUF files mark the starts of words, WordPiece the continuations.
std::string word_piece_text(std::string_view text) {
  if (text.starts_with(text::kSpaceMark)) return std::string(text.substr(3));
  return "##" + std::string(text);
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
  const bool scored =
      (spm || parts.config.type == TokenizerKind::kUnigram) && !source.scores.empty();
  const bool words = parts.config.type == TokenizerKind::kWordPiece;
  for (std::size_t id = 0; id < source.tokens.size(); ++id) {
    CYB_ASSIGN(const TokenType type, type_of(source, id));
    const float score = scored ? source.scores[id] : 0.0F;
    // Files of Gemma write the spaces of user-defined tokens as spaces, those of all others as
    // U+2581.
    const bool spaces = spm && type == TokenType::kUserDefined &&
                        source.tokens[id].find(' ') != std::string_view::npos;
    std::string other = spaces ? text::marked_spaces(source.tokens[id]) : std::string();
    if (words && type == TokenType::kNormal) other = word_piece_text(source.tokens[id]);
    CYB_TRY(parts.vocabulary.add(
        {other.empty() ? source.tokens[id] : std::string_view(other), type, score}));
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

namespace {

Result<void> choose_model(GgufVocabulary& source, TokenizerParts& parts, Defaults& defaults) {
  if (source.model == "gpt2") return choose_pre(source, parts, defaults);
  if (source.model == "llama") {
    parts.config = tokenizer_preset(TokenizerKind::kSpm, PreTokenizer::kNone);
    if (source.scores.empty()) return fail(vocab_error("tokenizer.ggml.scores is missing"));
    default_spm_ids(source, parts);
    defaults.add_bos = true;
    return {};
  }
  if (source.model == "gemma4") {  // characters, merged by rank
    parts.config = tokenizer_preset(TokenizerKind::kSpm, PreTokenizer::kNone);
    source.add_space_prefix = source.add_space_prefix.value_or(false);
    source.scores = {};
    defaults.add_bos = true;
    return {};
  }
  if (source.model == "t5") {
    if (source.scores.empty()) return fail(vocab_error("tokenizer.ggml.scores is missing"));
    choose_unigram(source, parts);
    defaults.add_eos = true;
    return {};
  }
  if (source.model == "bert") {
    choose_word_piece(source, parts);
    // [CLS] text [SEP] takes the places of BOS and EOS.
    if (!source.bos_id) source.bos_id = source.cls_id.value_or(101);
    if (!source.eos_id) source.eos_id = source.sep_id.value_or(102);
    if (!source.unk_id) source.unk_id = 100;
    defaults = {true, true};
    return {};
  }
  return fail(not_built(fmt::format("tokenizer.ggml.model \"{}\"", source.model)));
}

}  // namespace

Result<TokenizerParts> vocabulary_from_gguf(const GgufVocabulary& given) {
  GgufVocabulary source = given;
  TokenizerParts parts;
  Defaults defaults;
  CYB_TRY(choose_model(source, parts, defaults));
  const bool merged = source.model == "gpt2" || source.model == "gemma4";
  CYB_TRY(fill_vocabulary(source, parts));
  CYB_TRY(set_ids(source, parts));
  if (merged) CYB_TRY(fill_merges(source, parts));

  TokenizerConfig& config = parts.config;
  config.add_bos_token = source.add_bos.value_or(defaults.add_bos) &&
                         (source.add_bos.has_value() || config.bos_token_id.has_value());
  const bool ends = source.add_sep.value_or(defaults.add_eos) || source.add_eos.value_or(false);
  config.add_eos_token = source.add_eos.value_or(ends) || source.add_sep.value_or(false);
  const auto& types = source.token_types;
  const bool bytes = std::find(types.begin(), types.end(), 6) != types.end();
  if (config.type == TokenizerKind::kSpm) {
    config.add_space_prefix = source.add_space_prefix.value_or(true);
    config.byte_fallback = bytes;
  } else if (config.type == TokenizerKind::kUnigram) {
    config.byte_fallback = bytes;
  } else if (source.add_space_prefix.value_or(false) && config.type == TokenizerKind::kBpe) {
    return fail(not_built("tokenizer.ggml.add_space_prefix of a byte-level vocabulary"));
  }
  return parts;
}

}  // namespace cyb
