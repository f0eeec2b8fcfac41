// BPE models that change nothing but spaces are the type spm by itself; all others carry their
// normalizer as a pipeline.
#include "text/sentencepiece_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/normalizers/steps.hpp"
#include "text/tokenizers/space_mark.hpp"

namespace cyb {
namespace {

using nlohmann::json;

constexpr std::int32_t kUnigramModel = 1, kBpeModel = 2;

Error vocab_error(std::string text) {
  return Error(ErrorKind::kFormat, "F34", "vocab: " + std::move(text));
}

Error refused(std::string_view what) {
  return not_built(fmt::format("sentencepiece model: {}", what));
}

Result<void> check(const SentencePieceSource& source) {
  if (source.pieces.empty()) return fail(vocab_error("a sentencepiece model without pieces"));
  if (source.model_type != kUnigramModel && source.model_type != kBpeModel) {
    return fail(refused(fmt::format("model_type {} ({})", source.model_type,
                                    source.model_type == 3   ? "word"
                                    : source.model_type == 4 ? "char"
                                                             : "not known")));
  }
  if (source.treat_whitespace_as_suffix) return fail(refused("treat_whitespace_as_suffix"));
  if (source.has_denormalizer) return fail(refused("a denormalizer"));
  return {};
}

Result<void> fill_vocabulary(const SentencePieceSource& source, TokenizerParts& parts) {
  std::size_t n_bytes = 0, n_unknown = 0;
  for (const SentencePieceEntry& piece : source.pieces) n_bytes += piece.text.size();
  parts.vocabulary.reserve(source.pieces.size(), n_bytes);
  for (std::size_t id = 0; id < source.pieces.size(); ++id) {
    const SentencePieceEntry& piece = source.pieces[id];
    if (piece.type < 1 || piece.type > 6 || piece.text.empty()) {
      return fail(vocab_error(fmt::format("piece {} has {}", id,
                                          piece.text.empty()
                                              ? std::string("no text")
                                              : fmt::format("the unknown type {}", piece.type))));
    }
    const auto type = static_cast<TokenType>(piece.type);
    if (type == TokenType::kUnused && source.model_type == kBpeModel) {
      return fail(refused("unused pieces of a BPE model"));
    }
    if (type == TokenType::kUnknown) {
      ++n_unknown;
      parts.config.unk_token_id = static_cast<std::int32_t>(id);
      parts.special_ids.push_back(static_cast<std::int32_t>(id));
    }
    CYB_TRY(parts.vocabulary.add({piece.text, type, piece.score}));
  }
  if (n_unknown != 1) {
    return fail(vocab_error(fmt::format("{} unknown pieces, one is allowed", n_unknown)));
  }
  return parts.vocabulary.finish();
}

std::optional<std::int32_t> control_id(const Vocabulary& vocabulary, std::string_view text) {
  const std::int32_t id = vocabulary.find(text);
  if (id < 0 || vocabulary.type(id) != TokenType::kControl) return std::nullopt;
  return id;
}

std::string pipeline_of(const SentencePieceSource& source) {
  json normalizer{{"type", "SentencePiece"},
                  {"add_dummy_prefix", source.add_dummy_prefix},
                  {"remove_extra_whitespaces", source.remove_extra_whitespaces},
                  {"escape_whitespaces", source.escape_whitespaces},
                  {"pieces", source.pieces.size()}};
  if (!source.charsmap.empty()) {
    normalizer["precompiled_charsmap"] = text::base64_text(source.charsmap);
  }
  json out{{"normalizer", json::array({std::move(normalizer)})}};
  if (source.model_type == kUnigramModel) {
    out["decoder"] = json::array({{{"type", "ByteFallback"}},
                                  {{"type", "Metaspace"},
                                   {"replacement", text::kSpaceMark},
                                   {"prepend_scheme", "never"},
                                   {"split", false}}});
  }
  return out.dump();
}

}  // namespace

Result<TokenizerParts> vocabulary_from_sentencepiece(const SentencePieceSource& source) {
  CYB_TRY(check(source));
  TokenizerParts parts;
  TokenizerConfig& config = parts.config;
  const bool bpe = source.model_type == kBpeModel;
  config.type = bpe ? TokenizerKind::kSpm : TokenizerKind::kUnigram;
  config.byte_fallback = source.byte_fallback;
  config.fuse_unk = true;
  CYB_TRY(fill_vocabulary(source, parts));
  const auto is_symbol = [](const SentencePieceEntry& piece) { return piece.type == 4; };
  const bool symbols = std::ranges::any_of(source.pieces, is_symbol);
  // A symbol cuts the text for the type spm; the space in front would come again behind it.
  const bool plain = bpe && source.charsmap.empty() && !source.remove_extra_whitespaces &&
                     source.escape_whitespaces && !(symbols && source.add_dummy_prefix);
  if (plain) {
    config.add_space_prefix = source.add_dummy_prefix;
  } else {
    config.pipeline = pipeline_of(source);
  }
  config.bos_token_id = control_id(parts.vocabulary, source.bos_piece);
  config.pad_token_id = control_id(parts.vocabulary, source.pad_piece);
  const auto eos = control_id(parts.vocabulary, source.eos_piece);
  if (eos) config.eos_token_ids.push_back(*eos);
  return parts;
}

}  // namespace cyb
