// Checks that need the file's own words (keys, token texts) happen here; the rest is the text
// layer's.
#include "import/gguf/gguf_vocab.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/gguf_vocabulary.hpp"

namespace cyb::gguf {
namespace {

constexpr IntegerRange kIds{0, INT32_MAX};
constexpr std::int32_t kByteType = 6;

/// Keys about the vocabulary that change no id of any text.
constexpr std::array<std::string_view, 15> kHarmless = {
    "tokenizer.ggml.mask_token_id",    "tokenizer.ggml.prefix_token_id",
    "tokenizer.ggml.suffix_token_id",  "tokenizer.ggml.middle_token_id",
    "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
    "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id",
    "tokenizer.ggml.token_type_count", "tokenizer.ggml.added_tokens",
    "tokenizer.huggingface.json",      "tokenizer.rwkv.world",
    "tokenizer.chat_templates"};

Result<std::optional<std::int64_t>> optional_id(Metadata& metadata, std::string_view key) {
  if (!metadata.has(key)) return std::optional<std::int64_t>();
  CYB_ASSIGN(const std::int64_t id, metadata.integer(key, kIds));
  return std::optional(id);
}

Result<std::optional<bool>> optional_bool(Metadata& metadata, std::string_view key) {
  if (!metadata.has(key)) return std::optional<bool>();
  CYB_ASSIGN(const bool value, metadata.boolean_or(key, false));
  return std::optional(value);
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Value of "<0xNN>"; -1 for any other text.
int byte_value(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<void> check_texts(std::string_view key, const std::vector<std::string_view>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (utf8_find_invalid(texts[i]) == std::string_view::npos) continue;
    return fail(invalid_config(
        key, fmt::format("entry {} {} is not valid UTF-8", i, json_quote(texts[i]))));
  }
  return {};
}

Result<void> check_types(const std::vector<std::string_view>& tokens,
                         const std::vector<std::int32_t>& types) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (types.empty()) return {};
  if (types.size() != tokens.size()) {
    return fail(invalid_config(
        kKey, fmt::format("has {} entries for {} tokens", types.size(), tokens.size())));
  }
  std::array<bool, 256> seen{};
  std::size_t n_bytes = 0;
  for (std::size_t id = 0; id < types.size(); ++id) {
    if (types[id] < 1 || types[id] > kByteType) {
      return fail(
          invalid_config(kKey, fmt::format("token {} has the unknown type {}", id, types[id])));
    }
    if (types[id] != kByteType) continue;
    const int value = byte_value(tokens[id]);
    if (value < 0 || seen[static_cast<std::size_t>(value)]) {
      return fail(invalid_config(
          kKey, fmt::format("token {} {} is typed as a byte but is {}", id, json_quote(tokens[id]),
                            value < 0 ? "not <0x00>..<0xFF>" : "there twice")));
    }
    seen[static_cast<std::size_t>(value)] = true;
    ++n_bytes;
  }
  for (std::size_t b = 0; n_bytes > 0 && b < seen.size(); ++b) {
    if (!seen[b])
      return fail(invalid_config(kKey, fmt::format("the byte token <0x{:02X}> is missing", b)));
  }
  return {};
}

Result<void> check_merges(const std::vector<std::string_view>& merges) {
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::size_t space = merges[rank].find(' ');
    const bool pair = space != std::string_view::npos && space > 0 &&
                      space + 1 < merges[rank].size() &&
                      merges[rank].find(' ', space + 1) == std::string_view::npos;
    if (pair) continue;
    return fail(invalid_config(
        "tokenizer.ggml.merges",
        fmt::format("merge {} {} is no pair of texts", rank, json_quote(merges[rank]))));
  }
  return {};
}

Result<void> read_ids(Metadata& metadata, GgufVocabulary& out) {
  CYB_ASSIGN(out.bos_id, optional_id(metadata, "tokenizer.ggml.bos_token_id"));
  CYB_ASSIGN(out.eos_id, optional_id(metadata, "tokenizer.ggml.eos_token_id"));
  CYB_ASSIGN(out.eot_id, optional_id(metadata, "tokenizer.ggml.eot_token_id"));
  CYB_ASSIGN(out.eom_id, optional_id(metadata, "tokenizer.ggml.eom_token_id"));
  CYB_ASSIGN(out.unk_id, optional_id(metadata, "tokenizer.ggml.unknown_token_id"));
  CYB_ASSIGN(out.pad_id, optional_id(metadata, "tokenizer.ggml.padding_token_id"));
  CYB_ASSIGN(out.add_bos, optional_bool(metadata, "tokenizer.ggml.add_bos_token"));
  CYB_ASSIGN(out.add_eos, optional_bool(metadata, "tokenizer.ggml.add_eos_token"));
  CYB_ASSIGN(out.add_space_prefix, optional_bool(metadata, "tokenizer.ggml.add_space_prefix"));
  CYB_ASSIGN(out.cls_id, optional_id(metadata, "tokenizer.ggml.cls_token_id"));
  for (const char* key :
       {"tokenizer.ggml.separator_token_id", "tokenizer.ggml.seperator_token_id"}) {
    CYB_ASSIGN(const auto id, optional_id(metadata, key));
    if (id) out.sep_id = id;
  }
  CYB_ASSIGN(out.add_sep, optional_bool(metadata, "tokenizer.ggml.add_sep_token"));
  CYB_ASSIGN(out.charsmap, metadata.bytes_or_empty("tokenizer.ggml.precompiled_charsmap"));
  CYB_ASSIGN(out.remove_extra_whitespaces,
             optional_bool(metadata, "tokenizer.ggml.remove_extra_whitespaces"));
  CYB_ASSIGN(out.lowercase, optional_bool(metadata, "tokenizer.ggml.normalizer.lowercase"));
  CYB_ASSIGN(out.strip_accents, optional_bool(metadata, "tokenizer.ggml.normalizer.strip_accents"));
  return {};
}

/// Further ends of an answer (newer files): a list of ids.
Result<void> read_more_ends(Metadata& metadata, TokenizerParts& parts) {
  CYB_ASSIGN(const std::vector<std::int32_t> ids,
             metadata.ints_or_empty("tokenizer.ggml.eos_token_ids"));
  for (const std::int32_t id : ids) {
    if (!parts.vocabulary.contains(id)) {
      return fail(invalid_config("tokenizer.ggml.eos_token_ids",
                                 fmt::format("token {} is not in the vocabulary", id)));
    }
    parts.config.eos_token_ids.push_back(id);
  }
  return {};
}

Result<void> refuse_the_rest(Metadata& metadata) {
  for (const std::string_view key : kHarmless) metadata.ignore(key);
  const std::vector<std::string_view> left = metadata.unread("tokenizer.ggml.");
  if (!left.empty())
    return fail(invalid_config(left[0], "is not known and may change the ids of a text"));
  return {};
}

}  // namespace

Result<TokenizerParts> read_vocabulary(Metadata& metadata) {
  if (!metadata.has("tokenizer.ggml.model")) {
    const std::vector<std::string_view> left = metadata.unread("tokenizer.ggml.");
    if (!left.empty())
      return fail(
          invalid_config("tokenizer.ggml.model", fmt::format("is missing beside {}", left[0])));
    TokenizerParts none;
    none.assumptions.emplace_back("the file has no tokenizer: a model of ids");
    return none;
  }
  GgufVocabulary source;
  CYB_ASSIGN(source.model, metadata.text("tokenizer.ggml.model"));
  if (source.model == "no_vocab" || source.model == "none") return TokenizerParts{};
  CYB_ASSIGN(source.pre, metadata.text_or("tokenizer.ggml.pre", ""));
  CYB_ASSIGN(const std::vector<std::string_view> tokens,
             metadata.texts_or_empty("tokenizer.ggml.tokens"));
  CYB_ASSIGN(const std::vector<float> scores, metadata.floats_or_empty("tokenizer.ggml.scores"));
  CYB_ASSIGN(const std::vector<std::int32_t> types,
             metadata.ints_or_empty("tokenizer.ggml.token_type"));
  CYB_ASSIGN(const std::vector<std::string_view> merges,
             metadata.texts_or_empty("tokenizer.ggml.merges"));
  if (tokens.empty()) return fail(invalid_config("tokenizer.ggml.tokens", "is missing or empty"));
  if (tokens.size() > kMaxVocab) {
    return fail(
        invalid_config("tokenizer.ggml.tokens",
                       fmt::format("{} tokens exceed the limit of {}", tokens.size(), kMaxVocab)));
  }
  CYB_TRY(check_texts("tokenizer.ggml.tokens", tokens));
  CYB_TRY(check_types(tokens, types));
  CYB_TRY(check_merges(merges));
  source.tokens = tokens;
  source.scores = scores;
  source.token_types = types;
  source.merges = merges;
  CYB_TRY(read_ids(metadata, source));
  CYB_ASSIGN(TokenizerParts parts, vocabulary_from_gguf(source));
  CYB_TRY(read_more_ends(metadata, parts));
  CYB_TRY(refuse_the_rest(metadata));
  return parts;
}

}  // namespace cyb::gguf
