// Vocabulary and tokenizer: of the model, of its source as the importer reads it, and of the
// source's own file as it stands there.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/check/rows.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "import/gguf/gguf_file.hpp"

namespace cyb::api {
namespace {

using Json = nlohmann::json;

std::string shown(std::string_view text) {
  return json_quote(text.substr(0, 60));
}

std::string token_difference(std::int64_t id, std::string_view got, std::string_view want) {
  return fmt::format("token {}: {}, the source has {}", id, shown(got), shown(want));
}

std::string parts_difference(const TokenizerParts& got, const TokenizerParts& want) {
  const Vocabulary &a = got.vocabulary, &b = want.vocabulary;
  if (a.size() != b.size()) return fmt::format("{} tokens, the source has {}", a.size(), b.size());
  for (std::int32_t id = 0; id < a.size(); ++id) {
    if (a.text(id) != b.text(id)) return token_difference(id, a.text(id), b.text(id));
    if (a.score(id) != b.score(id)) {
      return fmt::format("token {}: score {}, the source has {}", id, a.score(id), b.score(id));
    }
  }
  if (got.merges.size() != want.merges.size())
    return fmt::format("{} merges, the source has {}", got.merges.size(), want.merges.size());
  for (std::size_t i = 0; i < got.merges.size(); ++i) {
    const MergePair x = got.merges[i], y = want.merges[i];
    if (x.left == y.left && x.right == y.right) continue;
    return fmt::format("merge {}: {} {}, the source has {} {}", i, shown(a.text(x.left)),
                       shown(a.text(x.right)), shown(b.text(y.left)), shown(b.text(y.right)));
  }
  return {};
}

/// What a raw comparison found; nullopt: the file is not of a kind that is read here.
struct RawVocabulary {
  std::string problem;
  std::size_t n_tokens = 0, n_merges = 0;
};

std::string raw_merge(const Json& merge) {
  if (merge.is_string()) return merge.get<std::string>();
  if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
    return {};
  return merge[0].get<std::string>() + " " + merge[1].get<std::string>();
}

/// The map, the merges and the added tokens of tokenizer.json against the model's own lists.
RawVocabulary compare_json(const Json& json, const TokenizerParts& parts) {
  RawVocabulary out;
  const Vocabulary& vocabulary = parts.vocabulary;
  const auto compare = [&](std::int64_t id, const std::string& text) {
    ++out.n_tokens;
    if (!out.problem.empty()) return;
    if (id < 0 || id >= vocabulary.size()) {
      out.problem = fmt::format("token {} ({}) is not in the model", id, shown(text));
    } else if (vocabulary.text(static_cast<std::int32_t>(id)) != text) {
      out.problem = token_difference(id, vocabulary.text(static_cast<std::int32_t>(id)), text);
    }
  };
  const Json model = json.value("model", Json::object());
  const Json vocab = model.value("vocab", Json::object());
  if (vocab.is_object()) {
    for (const auto& [text, id] : vocab.items()) {
      if (id.is_number_integer()) compare(id.get<std::int64_t>(), text);
    }
  } else {
    for (std::size_t i = 0; i < vocab.size(); ++i) {
      if (vocab[i].is_array() && !vocab[i].empty() && vocab[i][0].is_string())
        compare(static_cast<std::int64_t>(i), vocab[i][0].get<std::string>());
    }
  }
  for (const Json& added : json.value("added_tokens", Json::array())) {
    compare(added.value("id", std::int64_t{-1}), added.value("content", std::string()));
  }
  const Json merges = model.value("merges", Json::array());
  out.n_merges = merges.size();
  if (out.problem.empty() && merges.size() != parts.merges.size())
    out.problem = fmt::format("{} merges, the file has {}", parts.merges.size(), merges.size());
  for (std::size_t i = 0; out.problem.empty() && i < merges.size(); ++i) {
    const MergePair pair = parts.merges[i];
    const std::string got =
        std::string(vocabulary.text(pair.left)) + " " + std::string(vocabulary.text(pair.right));
    if (got != raw_merge(merges[i]))
      out.problem =
          fmt::format("merge {}: {}, the file has {}", i, shown(got), shown(raw_merge(merges[i])));
  }
  return out;
}

const gguf::Value* find_key(const gguf::GgufFile& file, std::string_view key) {
  const auto at = std::ranges::find(file.values, key, &gguf::Value::key);
  return at == file.values.end() ? nullptr : &*at;
}

/// Files write the spaces of a token as they are or as U+2581.
std::string with_marks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') {
      out += "\xe2\x96\x81";
    } else {
      out += c;
    }
  }
  return out;
}

/// tokenizer.ggml.tokens and .merges as they stand in the file. WordPiece and unused tokens are
/// written in another form there.
std::optional<RawVocabulary> compare_gguf(const gguf::GgufFile& file, const TokenizerParts& parts) {
  RawVocabulary out;
  const gguf::Value* tokens = find_key(file, "tokenizer.ggml.tokens");
  if (tokens == nullptr || parts.config.type == TokenizerKind::kWordPiece) return std::nullopt;
  gguf::StringWalk walk(*tokens);
  for (std::int32_t id = 0; const auto text = walk.next(); ++id) {
    ++out.n_tokens;
    if (id >= parts.vocabulary.size()) {
      out.problem = fmt::format("token {} ({}) is not in the model", id, shown(*text));
      return out;
    }
    const bool same = with_marks(parts.vocabulary.text(id)) == with_marks(*text) ||
                      parts.vocabulary.type(id) == TokenType::kUnused;
    if (!same && out.problem.empty())
      out.problem = token_difference(id, parts.vocabulary.text(id), *text);
  }
  const gguf::Value* merges = find_key(file, "tokenizer.ggml.merges");
  if (merges == nullptr || parts.merges.empty()) return out;
  gguf::StringWalk merge_walk(*merges);
  for (std::size_t i = 0; const auto text = merge_walk.next(); ++i) {
    ++out.n_merges;
    if (!out.problem.empty()) break;
    if (i >= parts.merges.size()) {
      out.problem = fmt::format("merge {} is not in the model", i);
      break;
    }
    const MergePair pair = parts.merges[i];
    const std::string got = std::string(parts.vocabulary.text(pair.left)) + " " +
                            std::string(parts.vocabulary.text(pair.right));
    if (got != *text)
      out.problem = fmt::format("merge {}: {}, the file has {}", i, shown(got), shown(*text));
  }
  return out;
}

std::optional<RawVocabulary> compare_raw(const Source& from, const TokenizerParts& parts) {
  std::error_code code;
  const bool folder = std::filesystem::is_directory(from.path, code);
  const std::string json_path = folder ? from.path + "/tokenizer.json" : from.path;
  if (json_path.ends_with("tokenizer.json") && std::filesystem::exists(json_path, code)) {
    const auto file = MappedFile::open(json_path);
    if (!file) return std::nullopt;
    const Json json = Json::parse((*file)->text(), nullptr, false);
    if (!json.is_object()) return std::nullopt;
    return compare_json(json, parts);
  }
  if (folder) return std::nullopt;
  const auto file = MappedFile::open(from.path);
  if (!file || !(*file)->text().starts_with("GGUF")) return std::nullopt;
  const auto parsed = gguf::GgufFile::parse((*file)->bytes());
  return parsed ? compare_gguf(*parsed, parts) : std::nullopt;
}

std::string id_text(std::optional<std::int32_t> id) {
  return id ? std::to_string(*id) : "none";
}

std::string special_difference(const TokenizerParts& got, const TokenizerParts& want) {
  const TokenizerConfig &a = got.config, &b = want.config;
  const auto differ = [](const char* what, const std::string& x, const std::string& y) {
    return fmt::format("{}: {}, the source has {}", what, x, y);
  };
  if (a.bos_token_id != b.bos_token_id)
    return differ("BOS", id_text(a.bos_token_id), id_text(b.bos_token_id));
  if (a.pad_token_id != b.pad_token_id)
    return differ("PAD", id_text(a.pad_token_id), id_text(b.pad_token_id));
  if (a.unk_token_id != b.unk_token_id)
    return differ("UNK", id_text(a.unk_token_id), id_text(b.unk_token_id));
  if (a.add_bos_token != b.add_bos_token)
    return differ("add_bos_token", a.add_bos_token ? "true" : "false",
                  b.add_bos_token ? "true" : "false");
  if (a.add_eos_token != b.add_eos_token)
    return differ("add_eos_token", a.add_eos_token ? "true" : "false",
                  b.add_eos_token ? "true" : "false");
  for (std::int32_t id = 0; id < std::min(got.vocabulary.size(), want.vocabulary.size()); ++id) {
    if (got.vocabulary.type(id) == want.vocabulary.type(id)) continue;
    return fmt::format("token {} ({}): type {}, the source has {}", id,
                       shown(got.vocabulary.text(id)), static_cast<int>(got.vocabulary.type(id)),
                       static_cast<int>(want.vocabulary.type(id)));
  }
  auto x = got.special_ids, y = want.special_ids;
  std::ranges::sort(x);
  std::ranges::sort(y);
  return x == y ? std::string() : "the lists of special tokens differ";
}

}  // namespace

Result<void> check_vocabulary(const TextSide& model, const TextSide* source, const Source& from,
                              Rows& rows) {
  CYB_TRY(rows.begin("vocabulary"));
  const bool no_text = model.tokenizer == nullptr;
  if (source == nullptr || (no_text && source->tokenizer == nullptr)) {
    const std::string why =
        source == nullptr ? "no source was named with --against" : "a model of ids has no text";
    rows.not_run(why);
    rows.skip("special tokens", why);
    return {};
  }
  if (no_text != (source->tokenizer == nullptr)) {
    rows.fail(no_text ? "the model has no tokenizer, its source has one"
                      : "the model has a tokenizer, its source has none");
    rows.skip("special tokens", "one side has no tokenizer");
    return {};
  }
  std::string problem = parts_difference(model.parts, source->parts);
  const std::optional<RawVocabulary> raw = compare_raw(from, model.parts);
  if (problem.empty() && raw) problem = raw->problem;
  std::string good = fmt::format("{} tokens and {} merges", model.parts.vocabulary.size(),
                                 model.parts.merges.size());
  if (raw) {
    good += fmt::format("; {} tokens and {} merges as the file itself lists them", raw->n_tokens,
                        raw->n_merges);
  }
  rows.judge(std::move(problem), std::move(good));
  CYB_TRY(rows.begin("special tokens"));
  rows.judge(special_difference(model.parts, source->parts),
             fmt::format("BOS {}, PAD {}, UNK {}; types of {} tokens",
                         id_text(model.parts.config.bos_token_id),
                         id_text(model.parts.config.pad_token_id),
                         id_text(model.parts.config.unk_token_id), model.parts.vocabulary.size()));
  return {};
}

namespace {

std::vector<std::string> special_texts(const Tokenizer& tokenizer) {
  std::vector<std::string> out;
  for (std::int32_t id = 0; id < tokenizer.vocab_size() && out.size() < 60; ++id) {
    const TokenType type = tokenizer.vocabulary().type(id);
    const bool special = tokenizer.is_control(id) || type == TokenType::kUserDefined;
    if (special && type != TokenType::kUnused) out.emplace_back(tokenizer.vocabulary().text(id));
  }
  return out;
}

/// "" or what differs between two tokenizers on one text.
std::string ids_difference(const Tokenizer& a, const Tokenizer& b, const std::string& text,
                           const EncodeOptions& options) {
  const auto x = a.encode(text, options), y = b.encode(text, options);
  if (!x && !y) return {};
  if (!x || !y) {
    return fmt::format("{}: {} refuses it: {}", shown(text), x ? "the source" : "the model",
                       x ? y.error().text() : x.error().text());
  }
  if (*x == *y) return {};
  const std::size_t at = static_cast<std::size_t>(std::ranges::mismatch(*x, *y).in1 - x->begin());
  return fmt::format("{}: the ids differ from place {} on ({} and {} of the source)", shown(text),
                     at, x->size(), y->size());
}

/// Texts come back where nothing rewrites them: no normalizer, and no symbol without a token.
std::string no_promise(const TokenizerParts& parts) {
  const TokenizerConfig& config = parts.config;
  const bool known = config.type == TokenizerKind::kBpe || config.type == TokenizerKind::kSpm;
  if (!known) return fmt::format("{} does not keep texts", tokenizer_kind_name(config.type));
  if (config.nfc && config.pipeline.empty()) return "texts are normalised (NFC)";
  if (config.type == TokenizerKind::kSpm && !config.byte_fallback) return "no byte tokens";
  if (config.pipeline.empty()) return {};
  const Json pipeline = Json::parse(config.pipeline, nullptr, false);
  if (!pipeline.is_object()) return "the pipeline cannot be read";
  if (!pipeline.value("normalizer", Json::array()).empty())
    return "texts are normalised by the pipeline";
  const std::string text = config.pipeline;
  const bool bytes = text.find("\"ByteLevel\"") != std::string::npos || config.byte_fallback;
  return bytes ? std::string() : "not every byte has a token";
}

void round_trip(const TextSide& side, const std::vector<std::string>& texts, Rows& rows) {
  const std::string why = no_promise(side.parts);
  if (!why.empty()) return rows.not_run(why);
  const auto unk = side.parts.config.unk_token_id;
  std::size_t n = 0, n_unknown = 0;
  for (const std::string& text : texts) {
    const auto ids = side.tokenizer->encode(text, {.parse_special = true, .add_special = false});
    // A symbol without a token becomes unk, or is refused: the vocabulary's own gap.
    if (!ids || (unk && std::ranges::count(*ids, *unk) != 0)) {
      ++n_unknown;
      continue;
    }
    const auto back = side.tokenizer->decode(*ids);
    if (!back) return rows.fail(fmt::format("{}: {}", shown(text), back.error().text()));
    if (*back != text)
      return rows.fail(fmt::format("{} comes back as {}", shown(text), shown(*back)));
    ++n;
  }
  std::string good = fmt::format("{} texts come back as they were", n);
  if (n_unknown > 0) good += fmt::format("; {} have a symbol without a token", n_unknown);
  rows.judge(n == 0 ? "no text has tokens for all of its symbols" : "", std::move(good));
}

void control_tokens(const Tokenizer& tokenizer, const std::vector<std::string>& texts, Rows& rows) {
  for (const std::string& text : texts) {
    const auto ids = tokenizer.encode(text, {.parse_special = false, .add_special = false});
    if (!ids) continue;  // a symbol without a token
    for (const std::int32_t id : *ids) {
      if (!tokenizer.is_control(id) || id == tokenizer.config().unk_token_id) continue;
      return rows.fail(fmt::format("{} as content becomes the control token {} ({})", shown(text),
                                   id, shown(tokenizer.vocabulary().text(id))));
    }
  }
  std::size_t n = 0;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.vocabulary().type(id) != TokenType::kControl) continue;
    const std::string_view text = tokenizer.vocabulary().text(id);
    if (text.empty()) continue;
    const auto ids = tokenizer.encode(text, {.parse_special = true, .add_special = false});
    if (!ids || *ids != std::vector{id})
      return rows.fail(fmt::format("{} written by a template is not token {}", shown(text), id));
    ++n;
  }
  rows.pass(
      fmt::format("{} texts as content never become control tokens; {} control tokens are "
                  "one id each",
                  texts.size(), n));
}

}  // namespace

Result<void> check_encoding(const TextSide& model, const TextSide* source, Rows& rows) {
  CYB_TRY(rows.begin("token ids"));
  if (model.tokenizer == nullptr) {
    for (const char* name : {"token ids", "round trip", "control tokens"})
      rows.skip(name, "the model has no tokenizer");
    return {};
  }
  const std::vector<std::string> texts = check_texts(special_texts(*model.tokenizer));
  if (source == nullptr || source->tokenizer == nullptr) {
    rows.not_run("no source with a tokenizer was named with --against");
  } else {
    std::string problem;
    std::size_t n_differ = 0;
    for (const std::string& text : texts) {
      for (const bool special : {false, true}) {
        const EncodeOptions options{.parse_special = special, .add_special = special};
        std::string found = ids_difference(*model.tokenizer, *source->tokenizer, text, options);
        if (found.empty()) continue;
        ++n_differ;
        if (problem.empty()) problem = std::move(found);
      }
    }
    if (n_differ > 1) problem += fmt::format("; {} of {} differ", n_differ, 2 * texts.size());
    rows.judge(std::move(problem),
               fmt::format("{} texts, control tokens read and not read", texts.size()));
  }
  CYB_TRY(rows.begin("round trip"));
  round_trip(model, texts, rows);
  CYB_TRY(rows.begin("control tokens"));
  control_tokens(*model.tokenizer, texts, rows);
  return {};
}

}  // namespace cyb::api
