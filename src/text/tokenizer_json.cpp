// tokenizer.json to TokenizerParts: vocabulary and added tokens by id, merges by rank.
#include "text/tokenizer_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/limits.hpp"
#include "text/tokenizer_json_general.hpp"
#include "text/tokenizer_json_pipeline.hpp"
#include "text/tokenizer_json_source.hpp"
#include "text/tokenizers/byte_level.hpp"

namespace cyb {
namespace {

using nlohmann::json;

Error format_error(std::string text) {
  return Error(ErrorKind::kFormat, "tokenizer.json: " + std::move(text));
}

// Ids without a token that a file may have: memory stays in proportion to the file.
constexpr std::int64_t kMaxHoles = 262144;

struct Entry {
  std::string_view text;
  TokenType type = TokenType::kUnused;  // until a token claims the id
  bool used = false;
  float score = 0.0F;
};

Result<std::vector<Entry>> place_tokens(const text::TokenizerJson& source, bool byte_fallback) {
  if (source.tokens.size() != source.ids.size() || source.ids.empty()) {
    return fail(format_error("model.vocab is missing or broken"));
  }
  const std::int64_t top = *std::max_element(source.ids.begin(), source.ids.end());
  const std::int64_t low = *std::min_element(source.ids.begin(), source.ids.end());
  const std::int64_t n_tokens = static_cast<std::int64_t>(source.ids.size());
  if (low < 0 || top >= n_tokens + kMaxHoles || top >= static_cast<std::int64_t>(kMaxVocab)) {
    return fail(
        format_error(fmt::format("model.vocab: id {} is out of range", low < 0 ? low : top)));
  }
  std::vector<Entry> entries(static_cast<std::size_t>(top) + 1);
  for (std::size_t i = 0; i < source.ids.size(); ++i) {
    Entry& entry = entries[static_cast<std::size_t>(source.ids[i])];
    if (entry.used)
      return fail(format_error(fmt::format("model.vocab: id {} is there twice", source.ids[i])));
    const bool byte = byte_fallback && text::parse_byte_token(source.tokens[i]) >= 0;
    entry = {source.tokens[i], byte ? TokenType::kByte : TokenType::kNormal, true,
             i < source.scores.size() ? source.scores[i] : 0.0F};
  }
  return entries;
}

struct AddedToken {
  std::int64_t id = 0;
  std::string_view content;
  bool special = false;
};

Result<AddedToken> read_added(const json& token) {
  if (!token.is_object() || !token.contains("id") || !token["id"].is_number_integer() ||
      token["id"] < 0 || !token.contains("content") || !token["content"].is_string()) {
    return fail(format_error("added_tokens: an entry without id or content"));
  }
  for (const auto& [key, value] : token.items()) {
    const bool known = key == "id" || key == "content" || key == "special" || key == "lstrip" ||
                       key == "rstrip" || key == "single_word" || key == "normalized";
    if (!known) return fail(not_built(fmt::format("tokenizer.json: added_tokens: {}", key)));
    if (key != "id" && key != "content" && !value.is_boolean()) {
      return fail(format_error(fmt::format("added_tokens: {} is not a boolean", key)));
    }
  }
  const std::string& content = token["content"].get_ref<const std::string&>();
  if (token["id"] >= kMaxVocab) return fail(format_error("added_tokens: an id is out of range"));
  return AddedToken{token["id"].get<std::int64_t>(), content, token.value("special", false)};
}

Result<void> add_added_tokens(const json& document, std::vector<Entry>& entries) {
  const auto found = document.find("added_tokens");
  if (found == document.end() || found->is_null()) return {};
  if (!found->is_array()) return fail(format_error("added_tokens is not a list"));
  const std::int64_t end = static_cast<std::int64_t>(entries.size() + found->size()) + kMaxHoles;
  for (const json& token : *found) {
    CYB_ASSIGN(const AddedToken added, read_added(token));
    if (added.id >= end)
      return fail(format_error(fmt::format("added_tokens: id {} is out of range", added.id)));
    const std::size_t id = static_cast<std::size_t>(added.id);
    if (id >= entries.size()) entries.resize(id + 1);
    Entry& entry = entries[id];
    if (entry.used && entry.text != added.content) {
      return fail(format_error(
          fmt::format("added token \"{}\" has the id {} of another token", added.content, id)));
    }
    entry = {added.content, added.special ? TokenType::kControl : TokenType::kUserDefined, true,
             entry.score};
  }
  return {};
}

Result<void> fill_vocabulary(const std::vector<Entry>& entries, std::size_t n_bytes,
                             TokenizerParts& parts) {
  parts.vocabulary.reserve(entries.size(), n_bytes);
  std::size_t holes = 0;
  for (std::size_t id = 0; id < entries.size(); ++id) {
    if (entries[id].used) {
      CYB_TRY(parts.vocabulary.add({entries[id].text, entries[id].type, entries[id].score}));
      continue;
    }
    ++holes;
    CYB_TRY(parts.vocabulary.add({fmt::format("[PAD{}]", id), TokenType::kUnused, 0.0F}));
  }
  if (holes > 0)
    parts.assumptions.push_back(fmt::format("{} ids without a token are unused", holes));
  return parts.vocabulary.finish();
}

Result<void> fill_merges(const text::TokenizerJson& source, TokenizerParts& parts) {
  const std::size_t count = source.merges.size() / (source.merges_are_pairs ? 2 : 1);
  const bool needed =
      parts.config.type == TokenizerKind::kBpe || parts.config.type == TokenizerKind::kSpm;
  if (needed != (count > 0)) {
    return fail(format_error(needed ? "model.merges is missing or empty"
                                    : "model.merges beside a model without merges"));
  }
  parts.merges.reserve(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    auto pair = source.merges_are_pairs ? find_merge(parts.vocabulary, source.merges[2 * rank],
                                                     source.merges[2 * rank + 1], rank)
                                        : find_merge(parts.vocabulary, source.merges[rank], rank);
    if (!pair) return fail(std::move(pair).error());
    parts.merges.push_back(*pair);
  }
  return {};
}

Result<void> set_unknown(const json& document, TokenizerParts& parts) {
  const json& model = document["model"];
  if (!model.contains("unk_token") || model["unk_token"].is_null()) return {};
  if (!model["unk_token"].is_string()) return fail(format_error("model.unk_token is not a string"));
  const std::string& text = model["unk_token"].get_ref<const std::string&>();
  const std::int32_t id = parts.vocabulary.find(text);
  if (id < 0) return fail(format_error(fmt::format("model.unk_token \"{}\" is no token", text)));
  parts.config.unk_token_id = id;
  return {};
}

Result<void> set_post_processor(const json& document, TokenizerParts& parts) {
  CYB_ASSIGN(const text::Frame frame, text::read_frame(document));
  TokenizerConfig& config = parts.config;
  if (frame.before.size() > 1 || frame.after.size() > 1) {
    if (config.pipeline.empty()) return fail(not_built("tokenizer.json: post_processor"));
    text::set_frame(frame, config);
    return {};
  }
  if (!frame.before.empty()) config.bos_token_id = frame.before[0];
  config.add_bos_token = !frame.before.empty();
  config.add_eos_token = !frame.after.empty();
  if (!frame.after.empty()) config.eos_token_ids.push_back(frame.after[0]);
  return {};
}

Result<void> check_top_level(const json& document, TokenizerParts& parts) {
  for (const auto& [key, value] : document.items()) {
    if (key == "truncation" || key == "padding") {
      if (!value.is_null()) {
        parts.assumptions.push_back(
            fmt::format("{} of tokenizer.json is not applied, as in transformers", key));
      }
      continue;
    }
    const bool known = key == "version" || key == "added_tokens" || key == "normalizer" ||
                       key == "pre_tokenizer" || key == "post_processor" || key == "decoder" ||
                       key == "model";
    if (!known) return fail(not_built(fmt::format("tokenizer.json: {}", key)));
  }
  return {};
}

/// Added tokens of which a preset cannot say all.
bool has_flags(const json& document, const TokenizerConfig& config) {
  const auto found = document.find("added_tokens");
  if (found == document.end() || !found->is_array()) return false;
  // With no normalizer there is no difference between matching before and after it.
  const bool normalises = config.nfc || config.type == TokenizerKind::kSpm;
  const bool metaspace =
      config.type == TokenizerKind::kSpm && config.space_prefix != SpacePrefix::kEverySegment;
  const auto flag = [](const json& token, const char* key) {
    const auto value = token.find(key);
    return value != token.end() && *value == true;
  };
  return std::any_of(found->begin(), found->end(), [&](const json& token) {
    if (!token.is_object()) return false;
    return flag(token, "lstrip") || flag(token, "rstrip") || flag(token, "single_word") ||
           (flag(token, "normalized") && normalises && !metaspace);
  });
}

Result<TokenizerConfig> choose_config(const json& document) {
  auto preset = text::recognise_pipeline(document);
  CYB_ASSIGN(const text::Frame frame, text::read_frame(document));
  const bool framed = frame.before.size() > 1 || frame.after.size() > 1;
  if (preset && !framed && !has_flags(document, *preset)) return preset;
  return text::general_pipeline(document);
}

}  // namespace

Result<TokenizerParts> read_tokenizer_json(std::string_view text) {
  CYB_ASSIGN(const text::TokenizerJson source, text::parse_tokenizer_json(text));
  TokenizerParts parts;
  CYB_TRY(check_top_level(source.rest, parts));
  CYB_ASSIGN(parts.config, choose_config(source.rest));
  CYB_ASSIGN(std::vector<Entry> entries, place_tokens(source, parts.config.byte_fallback));
  CYB_TRY(add_added_tokens(source.rest, entries));
  CYB_TRY(fill_vocabulary(entries, source.tokens.n_bytes(), parts));
  CYB_TRY(fill_merges(source, parts));
  CYB_TRY(set_unknown(source.rest, parts));
  CYB_TRY(set_post_processor(source.rest, parts));
  return parts;
}

}  // namespace cyb
