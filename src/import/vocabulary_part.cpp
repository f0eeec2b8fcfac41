// The vocab part, the [tokenizer] table and the chat part.
#include "import/vocabulary_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/json_text.hpp"
#include "base/utf8.hpp"
#include "text/pipeline/pipeline_table.hpp"
#include "text/template/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace cyb {
namespace {

void set_id(ConfigTable& table, const char* key, std::optional<std::int32_t> id) {
  if (id) table.set(key, std::int64_t{*id});
}

Result<ConfigTable> tokenizer_table(const TokenizerConfig& config) {
  ConfigTable out;
  const bool preset = config.pipeline.empty();
  out.set("type", std::string(tokenizer_kind_name(config.type)));
  if (config.type == TokenizerKind::kBpe && preset)
    out.set("pre", std::string(pre_tokenizer_name(config.pre)));
  set_id(out, "bos_token_id", config.bos_token_id);
  set_id(out, "pad_token_id", config.pad_token_id);
  set_id(out, "unk_token_id", config.unk_token_id);
  out.set("eos_token_ids", ConfigArray(config.eos_token_ids.begin(), config.eos_token_ids.end()));
  if (config.type == TokenizerKind::kNone) return out;
  out.set("add_bos_token", config.add_bos_token);
  out.set("add_eos_token", config.add_eos_token);
  if (config.type == TokenizerKind::kSpm) {
    out.set("add_space_prefix", config.add_space_prefix);
    out.set("space_prefix", std::string(space_prefix_name(config.space_prefix)));
    out.set("split_words", config.split_words);
    out.set("byte_fallback", config.byte_fallback);
    out.set("fuse_unk", config.fuse_unk);
  } else if (preset) {
    out.set("ignore_merges", config.ignore_merges);
    out.set("nfc", config.nfc);
  } else {
    out.set("ignore_merges", config.ignore_merges);
    out.set("byte_fallback", config.byte_fallback);
    out.set("fuse_unk", config.fuse_unk);
  }
  if (!preset) {
    CYB_ASSIGN(ConfigTable pipeline, pipeline_table(config.pipeline));
    out.set("pipeline", std::move(pipeline));
  }
  return out;
}

ReportToken report_token(const Vocabulary& vocabulary, std::int32_t id) {
  return {id, vocabulary.contains(id) ? std::string(vocabulary.text(id)) : std::string()};
}

Result<void> check_id(std::string_view key, std::int32_t id, std::int64_t n_rows) {
  if (id >= 0 && id < n_rows) return {};
  return fail(invalid_config(fmt::format("tokenizer.{}", key),
                             fmt::format("token id {} is out of range: 0..{}", id, n_rows - 1)));
}

Result<void> check_ids(const TokenizerConfig& config, std::int64_t n_rows) {
  if (config.bos_token_id) CYB_TRY(check_id("bos_token_id", *config.bos_token_id, n_rows));
  if (config.pad_token_id) CYB_TRY(check_id("pad_token_id", *config.pad_token_id, n_rows));
  if (config.unk_token_id) CYB_TRY(check_id("unk_token_id", *config.unk_token_id, n_rows));
  for (const std::int32_t id : config.eos_token_ids) CYB_TRY(check_id("eos_token_ids", id, n_rows));
  return {};
}

/// Tokens past the last embedding row can never be computed: added ones are left out, others mean a
/// wrong vocabulary.
Result<std::int64_t> usable_tokens(const Vocabulary& vocabulary, std::int64_t n_rows,
                                   ImportReport& report) {
  const std::int64_t n = vocabulary.size();
  for (std::int64_t id = n_rows; id < n; ++id) {
    const TokenType type = vocabulary.type(static_cast<std::int32_t>(id));
    if (type != TokenType::kControl && type != TokenType::kUserDefined &&
        type != TokenType::kUnused) {
      return fail(Error(ErrorKind::kFormat, "F34",
                        fmt::format("vocab: {} tokens, the embedding has {} rows", n, n_rows)));
    }
  }
  if (n > n_rows) {
    report.warnings.push_back(fmt::format(
        "{} added token(s) from id {} on ({}) have no embedding row and were left out", n - n_rows,
        n_rows, json_quote(vocabulary.text(static_cast<std::int32_t>(n_rows)))));
  }
  return std::min(n, n_rows);
}

void fill_vocabulary(const TokenizerParts& parts, std::int64_t n_tokens, std::int64_t n_rows,
                     VocabData& out) {
  const Vocabulary& vocabulary = parts.vocabulary;
  const auto rows = static_cast<std::size_t>(n_rows);
  out.tokens.reserve(rows, rows * 8);
  out.types.reserve(rows);
  if (vocabulary.has_scores()) out.scores.reserve(rows);
  for (std::int32_t id = 0; id < n_rows; ++id) {
    const bool real = id < n_tokens;
    if (real) {
      out.tokens.push_back(vocabulary.text(id));
    } else {
      out.tokens.push_back(fmt::format("[PAD{}]", id));
    }
    out.types.push_back(real ? vocabulary.type(id) : TokenType::kUnused);
    if (vocabulary.has_scores()) out.scores.push_back(real ? vocabulary.score(id) : 0.0F);
  }
  out.merges.reserve(parts.merges.size() * 2, parts.merges.size() * 10);
  for (const MergePair& pair : parts.merges) {
    out.merges.push_back(vocabulary.text(pair.left));
    out.merges.push_back(vocabulary.text(pair.right));
  }
  std::ranges::copy_if(parts.special_ids, std::back_inserter(out.special),
                       [n_tokens](std::int32_t id) { return id < n_tokens; });
}

}  // namespace

Result<void> place_vocabulary(TokenizerParts parts, std::int64_t n_rows, ModelDraft& draft,
                              ImportReport& report) {
  CYB_TRY(check_ids(parts.config, n_rows));
  CYB_ASSIGN(ConfigTable table, tokenizer_table(parts.config));
  draft.config.set("tokenizer", std::move(table));
  const TokenizerConfig& config = parts.config;
  report.tokenizer = tokenizer_kind_name(config.type);
  const bool named = config.type == TokenizerKind::kBpe && config.pipeline.empty();
  report.tokenizer_pre = named ? pre_tokenizer_name(config.pre) : "";
  report.add_bos = config.add_bos_token;
  report.add_eos = config.add_eos_token;
  if (config.bos_token_id) report.bos = report_token(parts.vocabulary, *config.bos_token_id);
  for (const std::int32_t id : config.eos_token_ids)
    report.stops.push_back(report_token(parts.vocabulary, id));
  if (config.eos_token_ids.empty()) {
    report.warnings.emplace_back("no token ends an answer: answers run to their limit");
  }
  for (const std::string& text : parts.assumptions) report.assumptions.push_back(text);
  if (config.type == TokenizerKind::kNone) return {};
  CYB_ASSIGN(const std::int64_t n_tokens, usable_tokens(parts.vocabulary, n_rows, report));
  report.n_tokens = static_cast<std::uint64_t>(n_tokens);
  if (n_tokens < n_rows) {
    report.assumptions.push_back(
        fmt::format("{} embedding rows have no token and were named [PAD<id>]", n_rows - n_tokens));
  }
  fill_vocabulary(parts, n_tokens, n_rows, draft.vocab);
  CYB_TRY(Tokenizer::create(std::move(parts)));
  return {};
}

Result<void> place_tokenizer_alone(TokenizerParts parts, ModelDraft& draft, ImportReport& report) {
  if (parts.config.type == TokenizerKind::kNone) {
    return fail(invalid_input("the source has no tokenizer"));
  }
  draft.config.set("model_type", "tokenizer");
  draft.config.set("parameters", std::int64_t{0});
  report.name = draft.name;
  report.family = "tokenizer";
  report.model_type = "tokenizer";
  const std::int64_t n_rows = parts.vocabulary.size();
  return place_vocabulary(std::move(parts), n_rows, draft, report);
}

void place_template(std::string_view source, ModelDraft& draft, ImportReport& report) {
  if (source.empty()) return;
  if (utf8_find_invalid(source) != std::string_view::npos) {
    report.warnings.emplace_back(
        "the chat template is not valid UTF-8 and was left out: chat is refused");
    return;
  }
  ConfigTable chat;
  chat.set("format", "custom");
  chat.set("template", std::string(source));
  draft.chat = std::move(chat);
  report.chat_template.present = true;
  report.chat_template.length = source.size();
  const auto compiled = Template::compile(source);
  if (compiled) return;
  report.chat_template.problem = compiled.error().text();
  report.warnings.push_back(
      fmt::format("the chat template cannot be used: {}; completion works, chat is refused",
                  report.chat_template.problem));
}

}  // namespace cyb
