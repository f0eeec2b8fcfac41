// Follows transformers 5, which builds the same tokenizers.Tokenizer from the two files:
// GPT2Tokenizer, Qwen2Tokenizer and CodeGenTokenizer. Other classes add tokens around a text and
// are refused.
#include "import/hf/folder_tokenizer_merges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/hf/config_reader.hpp"
#include "import/hf/folder_files.hpp"
#include "import/json_strict.hpp"
#include "text/tokenizer_json.hpp"

namespace cyb::hf {
namespace {

using nlohmann::json;

constexpr const char* kVocab = "vocab.json";
constexpr const char* kMerges = "merges.txt";
constexpr const char* kEndOfText = "<|endoftext|>";

// Qwen/Qwen2: one digit a token, letters with one sign before them.
constexpr const char* kQwen2Split =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

enum class Split : std::uint8_t { kGpt2, kQwen2 };

struct ClassRow {
  std::string_view name;  // without "Fast"
  Split split;
  std::array<const char*, 4> special;  // bos, eos, unk, pad where nothing else is stated
};
constexpr std::array<ClassRow, 3> kClasses{
    {{"GPT2Tokenizer", Split::kGpt2, {kEndOfText, kEndOfText, kEndOfText, nullptr}},
     {"CodeGenTokenizer", Split::kGpt2, {kEndOfText, kEndOfText, kEndOfText, nullptr}},
     {"Qwen2Tokenizer", Split::kQwen2, {nullptr, kEndOfText, kEndOfText, kEndOfText}}}};
constexpr std::array<const char*, 4> kSpecialKeys{"bos_token", "eos_token", "unk_token",
                                                  "pad_token"};
constexpr std::array<const char*, 2> kSpecialLists{"additional_special_tokens",
                                                   "extra_special_tokens"};

/// model_type of config.json -> class, as transformers maps them.
std::string class_of_model(const json& config) {
  const std::string type = config.value("model_type", json("")).is_string()
                               ? config.value("model_type", std::string())
                               : std::string();
  if (type.starts_with("qwen2") || type.starts_with("qwen3")) return "Qwen2Tokenizer";
  if (type == "gpt2" || type == "gpt_bigcode" || type == "starcoder2") return "GPT2Tokenizer";
  if (type == "phi" || type == "codegen") return "CodeGenTokenizer";
  return {};
}

Result<ClassRow> class_of(const std::string& folder, const json& config) {
  std::string name;
  if (config.contains("tokenizer_class") && config["tokenizer_class"].is_string()) {
    name = config["tokenizer_class"].get<std::string>();
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
  } else {
    CYB_ASSIGN(const json model, optional_object(folder, "config.json"));
    name = class_of_model(model);
  }
  const auto* const row = std::ranges::find(kClasses, std::string_view(name), &ClassRow::name);
  if (row != kClasses.end()) return *row;
  return fail(not_built(
      fmt::format("a tokenizer as {} and {} of the class {}", kVocab, kMerges, json_quote(name))));
}

/// "a b" a line, strongest first; "#version" lines say nothing.
Result<json> read_merges(const std::string& folder) {
  CYB_ASSIGN(const std::string text, read_text_file(folder + "/" + kMerges, std::size_t{64} << 20));
  json out = json::array();
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    const bool pair = space != std::string::npos && space > 0 && space + 1 < line.size() &&
                      line.find(' ', space + 1) == std::string::npos;
    if (!pair) {
      return fail(json_error(fmt::format("{}: line {}", kMerges, number + 1), "is no pair"));
    }
    out.push_back(std::move(line));
  }
  return out;
}

/// Added tokens of a folder, ids as transformers gives them: the vocabulary's, or the next ones.
class AddedTokens {
 public:
  explicit AddedTokens(const json& vocabulary) : vocabulary_(vocabulary) {
    for (const auto& [text, id] : vocabulary.items())
      next_ = std::max(next_, id.get<std::int64_t>() + 1);
  }

  Result<void> add(const json& token, bool special, std::optional<std::int64_t> stated) {
    const bool plain = token.is_string();
    if (!plain && !(token.is_object() && token.contains("content") && token["content"].is_string()))
      return fail(invalid_config("added_tokens", json_excerpt(token) + " is no token"));
    const std::string text = plain ? token.get<std::string>() : token["content"].get<std::string>();
    if (text.empty()) return fail(invalid_config("added_tokens", "a token is empty"));
    if (!seen_.insert(text).second) return {};
    const bool known = vocabulary_.contains(text);
    const std::int64_t id = known ? vocabulary_[text].get<std::int64_t>() : next_;
    if (stated && *stated != id) {
      return fail(invalid_config("added_tokens", fmt::format("{} is stated as {}, its place is {}",
                                                             json_quote(text), *stated, id)));
    }
    if (!known) ++next_;
    const bool is_special = plain ? special : token.value("special", json(special)) == json(true);
    json row = {{"id", id}, {"content", text}, {"special", is_special}};
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
      row[flag] = !plain && token.value(flag, json(false)) == json(true);
    }
    row["normalized"] =
        plain ? !is_special : token.value("normalized", json(!is_special)) == json(true);
    rows_.push_back(std::move(row));
    return {};
  }
  json take() {
    std::ranges::sort(rows_, {}, [](const json& row) { return row["id"].get<std::int64_t>(); });
    return json(std::move(rows_));
  }

 private:
  const json& vocabulary_;
  std::int64_t next_ = 0;
  std::set<std::string> seen_;
  std::vector<json> rows_;
};

Result<void> add_stated(const std::string& folder, const json& config, AddedTokens& out) {
  std::map<std::int64_t, json> by_id;
  if (config.contains("added_tokens_decoder") && config["added_tokens_decoder"].is_object()) {
    for (const auto& [key, token] : config["added_tokens_decoder"].items()) {
      const auto id = id_of_key(key);
      if (!id) return fail(invalid_config("added_tokens_decoder", json_quote(key) + " is no id"));
      by_id[*id] = token;
    }
  } else {
    CYB_ASSIGN(const json list, optional_object(folder, kAddedTokensFile));
    for (const auto& [text, id] : list.items()) {
      if (!id.is_number_integer())
        return fail(invalid_config(kAddedTokensFile, json_quote(text) + " has no id"));
      by_id[id.get<std::int64_t>()] = text;
    }
  }
  for (const auto& [id, token] : by_id) CYB_TRY(out.add(token, false, id));
  return {};
}

Result<void> add_special(const json& config, const json& map, const ClassRow& row,
                         AddedTokens& out) {
  for (std::size_t i = 0; i < kSpecialKeys.size(); ++i) {
    const char* key = kSpecialKeys[i];
    const json* stated = config.contains(key) ? &config[key]
                         : map.contains(key)  ? &map[key]
                                              : nullptr;
    if (stated != nullptr && !stated->is_null()) {
      CYB_TRY(out.add(*stated, true, std::nullopt));
    } else if (stated == nullptr && row.special[i] != nullptr) {
      CYB_TRY(out.add(row.special[i], true, std::nullopt));
    }
  }
  for (const char* key : kSpecialLists) {
    const json list = config.contains(key) ? config[key] : map.value(key, json::array());
    if (!list.is_array()) continue;
    for (const json& token : list) CYB_TRY(out.add(token, true, std::nullopt));
  }
  return {};
}

json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

void set_steps(const ClassRow& row, bool add_prefix_space, json& out) {
  out["decoder"] = byte_level(true, true);
  if (row.split == Split::kGpt2) {
    out["pre_tokenizer"] = byte_level(add_prefix_space, true);
    return;
  }
  out["normalizer"] = {{"type", "NFC"}};
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kQwen2Split}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  out["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", json::array({split, byte_level(add_prefix_space, false)})}};
}

Result<json> read_vocabulary(const std::string& folder) {
  CYB_ASSIGN(json out, optional_object(folder, kVocab));
  for (const auto& [text, id] : out.items()) {
    if (id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
        id.get<std::int64_t>() < std::int64_t{kMaxVocab})
      continue;
    return fail(json_error(kVocab, fmt::format("{} has no id", json_quote(text))));
  }
  return out;
}

/// Ids of the class's own tokens where the folder names none; tokenizer_config.json comes later.
void set_class_ids(const json& config, const json& map, const ClassRow& row,
                   TokenizerParts& parts) {
  const auto id_of = [&](std::size_t i) -> std::optional<std::int32_t> {
    const char* key = kSpecialKeys[i];
    if (config.contains(key) || map.contains(key) || row.special[i] == nullptr) return {};
    return parts.vocabulary.find(row.special[i]);
  };
  if (const auto bos = id_of(0)) parts.config.bos_token_id = *bos;
  if (const auto eos = id_of(1)) parts.config.eos_token_ids = {*eos};
  if (const auto pad = id_of(3)) parts.config.pad_token_id = *pad;
}

}  // namespace

bool has_merges(const std::string& folder) {
  return file_exists(folder + "/" + kVocab) && file_exists(folder + "/" + kMerges);
}

Result<TokenizerParts> read_merges_folder(const std::string& folder) {
  CYB_ASSIGN(const json config, optional_object(folder, kTokenizerConfigFile));
  CYB_ASSIGN(const json map, optional_object(folder, kSpecialTokensFile));
  CYB_ASSIGN(const ClassRow row, class_of(folder, config));
  CYB_ASSIGN(json vocabulary, read_vocabulary(folder));
  CYB_ASSIGN(json merges, read_merges(folder));
  AddedTokens added(vocabulary);
  CYB_TRY(add_stated(folder, config, added));
  CYB_TRY(add_special(config, map, row, added));
  json out = {{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"normalizer", nullptr},
              {"post_processor", nullptr}};
  out["added_tokens"] = added.take();
  set_steps(row, config.value("add_prefix_space", json(false)) == json(true), out);
  out["model"] = {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", nullptr},
                  {"continuing_subword_prefix", ""},
                  {"end_of_word_suffix", ""},
                  {"fuse_unk", false},
                  {"byte_fallback", false},
                  {"ignore_merges", false},
                  {"vocab", std::move(vocabulary)},
                  {"merges", std::move(merges)}};
  auto parts = read_tokenizer_json(out.dump());
  if (!parts) return fail(std::move(parts).error().in(fmt::format("{} and {}", kVocab, kMerges)));
  set_class_ids(config, map, row, *parts);
  return parts;
}

}  // namespace cyb::hf
