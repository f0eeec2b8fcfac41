// Follows transformers 5: add_bos_token or add_eos_token stated in tokenizer_config.json replace
// the post-processor of tokenizer.json; chat_template.jinja wins over the template in
// tokenizer_config.json.
#include "import/hf/folder_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/hf/config_reader.hpp"
#include "import/hf/folder_files.hpp"
#include "import/hf/folder_tokenizer_merges.hpp"
#include "import/hf/folder_tokenizer_pieces.hpp"
#include "import/json_strict.hpp"
#include "text/tokenizer_json.hpp"

namespace cyb::hf {
namespace {

constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kTemplate = "chat_template.jinja";

std::string inside(const std::string& folder, std::string_view name) {
  return folder + "/" + std::string(name);
}

/// A token as "text" or {"content": "text"}; nullopt when absent.
Result<std::optional<std::string>> token_text(ConfigReader& config, std::string_view key) {
  const nlohmann::json* value = config.find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (value->is_string()) return std::optional(value->get<std::string>());
  if (value->is_object() && value->contains("content") && (*value)["content"].is_string()) {
    return std::optional((*value)["content"].get<std::string>());
  }
  return config.refuse(key, fmt::format("{} is no token", json_excerpt(*value)));
}

/// Id of a token that the tokenizer config names; nullopt when it names none.
Result<std::optional<std::int32_t>> token_id(ConfigReader& config, std::string_view key,
                                             const Vocabulary& vocabulary) {
  CYB_ASSIGN(const std::optional<std::string> text, token_text(config, key));
  if (!text) return std::optional<std::int32_t>();
  const std::int32_t id = vocabulary.find(*text);
  if (id < 0)
    return config.refuse(key, fmt::format("{} is not in the vocabulary", json_quote(*text)));
  return std::optional(id);
}

/// The template named "default", or the only one.
Result<std::string> template_of(ConfigReader& config, ImportReport& report) {
  const nlohmann::json* value = config.find("chat_template");
  if (value == nullptr) return std::string();
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array()) return config.refuse("chat_template", "is neither a string nor a list");
  std::string out;
  for (const nlohmann::json& item : *value) {
    const bool good = item.is_object() && item.contains("name") && item.contains("template") &&
                      item["name"].is_string() && item["template"].is_string();
    if (!good) return config.refuse("chat_template", "has an entry without name and template");
    if (item["name"].get_ref<const std::string&>() == "default") {
      out = item["template"].get<std::string>();
    } else {
      report.warnings.push_back(
          fmt::format("chat template {} was not imported: one template per model for now",
                      json_quote(item["name"].get_ref<const std::string&>())));
    }
  }
  return out;
}

void add_end(std::int64_t id, TokenizerConfig& config) {
  const auto narrow = static_cast<std::int32_t>(id);
  if (std::ranges::find(config.eos_token_ids, narrow) == config.eos_token_ids.end())
    config.eos_token_ids.push_back(narrow);
}

void set_stated_ids(const StatedIds& ids, TokenizerConfig& config) {
  if (ids.bos && !config.bos_token_id) config.bos_token_id = static_cast<std::int32_t>(*ids.bos);
  if (ids.pad) config.pad_token_id = static_cast<std::int32_t>(*ids.pad);
  for (const std::int64_t id : ids.eos) add_end(id, config);
}

Result<void> set_config_ids(ConfigReader& config, TokenizerParts& parts, ImportReport& report) {
  CYB_ASSIGN(const std::optional<std::int32_t> bos,
             token_id(config, "bos_token", parts.vocabulary));
  CYB_ASSIGN(const std::optional<std::int32_t> eos,
             token_id(config, "eos_token", parts.vocabulary));
  CYB_ASSIGN(const std::optional<std::int32_t> pad,
             token_id(config, "pad_token", parts.vocabulary));
  if (bos) parts.config.bos_token_id = bos;
  if (pad) parts.config.pad_token_id = pad;
  if (!eos) return {};
  const std::size_t before = parts.config.eos_token_ids.size();
  add_end(*eos, parts.config);
  if (before > 0 && parts.config.eos_token_ids.size() > before) {
    report.assumptions.push_back(fmt::format("token {} {} also ends an answer (eos_token of {})",
                                             *eos, parts.vocabulary.text(*eos),
                                             kTokenizerConfigFile));
  }
  return {};
}

Result<void> set_flags(ConfigReader& config, TokenizerConfig& out, bool has_eos_token) {
  CYB_ASSIGN(const std::optional<bool> bos, config.boolean("add_bos_token"));
  CYB_ASSIGN(const std::optional<bool> eos, config.boolean("add_eos_token"));
  if (!bos && !eos) return {};
  out.add_bos_token = bos.value_or(false) && out.bos_token_id.has_value();
  out.add_eos_token = eos.value_or(false) && has_eos_token;
  return {};
}

Result<std::string> read_template_file(const std::string& folder) {
  const std::string path = inside(folder, kTemplate);
  if (!file_exists(path)) return std::string();
  return read_text_file(path, kMaxStringBytes);
}

/// A tokenizer in a form that is not read must not turn into a model of ids.
Result<void> refuse_other_forms(const std::string& folder) {
  for (const char* name : {"vocab.json", "merges.txt", "vocab.txt", "sentencepiece.bpe.model",
                           "tekken.json", "tokenizer.model.v3", "qwen.tiktoken"}) {
    if (file_exists(inside(folder, name)))
      return fail(not_built(fmt::format("a tokenizer as {} without {}", name, kTokenizer)));
  }
  return {};
}

Result<void> apply_config(const std::string& folder, FolderTokenizer& out, const StatedIds& ids,
                          ImportReport& report) {
  if (!file_exists(inside(folder, kTokenizerConfigFile))) {
    set_stated_ids(ids, out.parts.config);
    return {};
  }
  CYB_ASSIGN(const nlohmann::json json, read_json_file(inside(folder, kTokenizerConfigFile)));
  if (!json.is_object()) return fail(json_error(kTokenizerConfigFile, "is not an object"));
  ConfigReader config(json, std::string(kTokenizerConfigFile) + ": ");
  set_stated_ids(ids, out.parts.config);
  CYB_TRY(set_config_ids(config, out.parts, report));
  CYB_TRY(set_flags(config, out.parts.config,
                    json.contains("eos_token") && !json["eos_token"].is_null()));
  if (!out.chat_template.empty()) return {};
  CYB_ASSIGN(out.chat_template, template_of(config, report));
  return {};
}

}  // namespace

Result<FolderTokenizer> read_folder_tokenizer(const std::string& folder, const StatedIds& ids,
                                              ImportReport& report) {
  FolderTokenizer out;
  const std::string model = sentencepiece_of(folder);
  if (!file_exists(inside(folder, kTokenizer)) && !model.empty()) {
    CYB_ASSIGN(out.parts, read_sentencepiece_folder(folder, model));
    CYB_ASSIGN(out.chat_template, read_template_file(folder));
    const TokenizerConfig made = out.parts.config;
    CYB_TRY(apply_config(folder, out, ids, report));
    CYB_TRY(keep_class_flags(folder, made, out.parts.config));
    return out;
  }
  if (!file_exists(inside(folder, kTokenizer)) && has_merges(folder)) {
    CYB_ASSIGN(out.parts, read_merges_folder(folder));
    CYB_ASSIGN(out.chat_template, read_template_file(folder));
    CYB_TRY(apply_config(folder, out, ids, report));
    return out;
  }
  if (!file_exists(inside(folder, kTokenizer))) {
    CYB_TRY(refuse_other_forms(folder));
    CYB_TRY(out.parts.vocabulary.finish());
    set_stated_ids(ids, out.parts.config);
    out.parts.assumptions.emplace_back("the folder has no tokenizer: a model of ids");
    return out;
  }
  {
    CYB_ASSIGN(const std::shared_ptr<const MappedFile> file,
               MappedFile::open(inside(folder, kTokenizer)));
    CYB_ASSIGN(out.parts, read_tokenizer_json(file->text()));
  }
  CYB_ASSIGN(out.chat_template, read_template_file(folder));
  CYB_TRY(apply_config(folder, out, ids, report));
  return out;
}

std::vector<std::string> tokenizer_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const char* name :
       {kTokenizer, kTokenizerConfigFile, kTemplate, "tokenizer.model", "spiece.model",
        "vocab.json", "merges.txt", kAddedTokensFile, kSpecialTokensFile}) {
    if (file_exists(inside(folder, name))) out.push_back(inside(folder, name));
  }
  return out;
}

}  // namespace cyb::hf
