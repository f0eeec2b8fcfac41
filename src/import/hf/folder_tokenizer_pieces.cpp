// The classes that hand ids on as the model has them are named; others (XLM-RoBERTa, mBART...) move
// them and are refused.
#include "import/hf/folder_tokenizer_pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/hf/config_reader.hpp"
#include "import/hf/folder_files.hpp"
#include "import/json_strict.hpp"
#include "import/tokenizer_file.hpp"

namespace cyb::hf {
namespace {

using nlohmann::json;

struct ClassRow {
  std::string_view name;  // without "Fast"
  bool add_bos, add_eos;
};
constexpr std::array<ClassRow, 8> kClasses{{{"LlamaTokenizer", true, false},
                                            {"CodeLlamaTokenizer", true, false},
                                            {"GemmaTokenizer", true, false},
                                            {"InternLM2Tokenizer", true, false},
                                            {"T5Tokenizer", false, true},
                                            {"MT5Tokenizer", false, true},
                                            {"PreTrainedTokenizer", false, false},
                                            {"", false, false}}};

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return {};
}

struct Added {
  std::string text;
  bool special = false;
};
using AddedById = std::map<std::int64_t, Added>;

Result<void> put(const std::string& key, std::int64_t id, Added token, AddedById& out) {
  if (id < 0 || id >= static_cast<std::int64_t>(kMaxVocab) || token.text.empty()) {
    return fail(invalid_config(key, fmt::format("{} is no added token", id)));
  }
  out[id] = std::move(token);
  return {};
}

/// {"32000": {"content": "<|im_start|>", "special": true, ...}}
Result<AddedById> from_decoder(const json& list) {
  AddedById out;
  for (const auto& [key, value] : list.items()) {
    const auto id = id_of_key(key);
    const std::string text = text_of(value);
    if (!id || !value.is_object()) {
      return fail(invalid_config("added_tokens_decoder", json_quote(key) + " is no id"));
    }
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (value.value(flag, json(false)) != json(true)) continue;
      return fail(not_built(fmt::format("{} of the added token {} beside a sentencepiece model",
                                        flag, json_quote(text))));
    }
    const bool special = value.value("special", json(false)) == json(true);
    CYB_TRY(put("added_tokens_decoder", *id, {text, special}, out));
  }
  return out;
}

/// {"<|im_start|>": 32000}; special are those that special_tokens_map.json names.
Result<AddedById> from_list(const json& list, const json& map) {
  std::vector<std::string> special;
  for (const auto& [key, value] : map.items()) {
    for (const json& one : value.is_array() ? value : json::array({value})) {
      special.push_back(text_of(one));
    }
  }
  AddedById out;
  for (const auto& [text, id] : list.items()) {
    if (!id.is_number_integer()) {
      return fail(invalid_config(kAddedTokensFile, json_quote(text) + " has no id"));
    }
    const bool is_special = std::ranges::find(special, text) != special.end();
    CYB_TRY(put(kAddedTokensFile, id.get<std::int64_t>(), {text, is_special}, out));
  }
  return out;
}

Result<void> add_tokens(const AddedById& added, TokenizerParts& parts) {
  Vocabulary& vocabulary = parts.vocabulary;
  for (const auto& [wide, token] : added) {
    const auto id = static_cast<std::int32_t>(wide);
    if (vocabulary.contains(id)) {
      if (vocabulary.text(id) != token.text) {
        return fail(invalid_config(
            "added_tokens", fmt::format("{} has the id {} of the piece {}", json_quote(token.text),
                                        id, json_quote(vocabulary.text(id)))));
      }
      const bool plain = vocabulary.type(id) == TokenType::kNormal;
      if (plain)
        vocabulary.set_type(id, token.special ? TokenType::kControl : TokenType::kUserDefined);
      continue;
    }
    if (wide > std::int64_t{vocabulary.size()} + 4096) {
      return fail(invalid_config("added_tokens", fmt::format("the id {} is out of range", wide)));
    }
    while (vocabulary.size() < id) {
      CYB_TRY(vocabulary.add({fmt::format("[PAD{}]", vocabulary.size()), TokenType::kUnused}));
    }
    CYB_TRY(vocabulary.add(
        {token.text, token.special ? TokenType::kControl : TokenType::kUserDefined}));
  }
  return vocabulary.finish();
}

Result<ClassRow> class_of(const json& config) {
  std::string name = text_of(config.value("tokenizer_class", json("")));
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const auto* const row = std::ranges::find(kClasses, std::string_view(name), &ClassRow::name);
  if (row != kClasses.end()) return *row;
  return fail(not_built(fmt::format("a sentencepiece model of the class {}", json_quote(name))));
}

}  // namespace

std::string sentencepiece_of(const std::string& folder) {
  for (const char* name : {"/tokenizer.model", "/spiece.model"}) {
    if (file_exists(folder + name)) return folder + name;
  }
  return {};
}

Result<TokenizerParts> read_sentencepiece_folder(const std::string& folder,
                                                 const std::string& model) {
  CYB_ASSIGN(TokenizerParts parts, read_tokenizer_file(model, ""));
  CYB_ASSIGN(const json config, optional_object(folder, kTokenizerConfigFile));
  CYB_ASSIGN(const ClassRow row, class_of(config));
  const auto decoder = config.find("added_tokens_decoder");
  if (decoder != config.end() && decoder->is_object()) {
    CYB_ASSIGN(const AddedById added, from_decoder(*decoder));
    CYB_TRY(add_tokens(added, parts));
  } else if (row.name.find("T5") != std::string_view::npos && config.value("extra_ids", 100) != 0) {
    return fail(not_built("extra_ids of T5 without added_tokens_decoder"));
  } else {
    CYB_ASSIGN(const json list, optional_object(folder, kAddedTokensFile));
    CYB_ASSIGN(const json map, optional_object(folder, kSpecialTokensFile));
    CYB_ASSIGN(const AddedById added, from_list(list, map));
    CYB_TRY(add_tokens(added, parts));
  }
  TokenizerConfig& out = parts.config;
  out.add_bos_token = row.add_bos && out.bos_token_id.has_value();
  out.add_eos_token = row.add_eos && !out.eos_token_ids.empty();
  if (row.name.empty() || row.name == "PreTrainedTokenizer") {
    parts.assumptions.emplace_back("no tokenizer_class: neither BOS nor EOS is added");
  }
  if (config.value("legacy", json(true)) == json(false) && out.add_space_prefix) {
    out.space_prefix = SpacePrefix::kFirstSegment;
  } else if (config.value("legacy", json(true)) == json(false) && !out.pipeline.empty()) {
    return fail(not_built("legacy = false beside a sentencepiece normalizer"));
  }
  return parts;
}

Result<void> keep_class_flags(const std::string& folder, const TokenizerConfig& made,
                              TokenizerConfig& config) {
  CYB_ASSIGN(const json given, optional_object(folder, kTokenizerConfigFile));
  if (!given.contains("add_bos_token")) config.add_bos_token = made.add_bos_token;
  if (!given.contains("add_eos_token")) config.add_eos_token = made.add_eos_token;
  return {};
}

}  // namespace cyb::hf
