// Tokenizer: special tokens first, then normalisation and pieces of the text between them.
#include "text/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/normalizers/nfc.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/pretokenizers/pretokenizer.hpp"
#include "text/tokenizers/added_tokens.hpp"
#include "text/tokenizers/piece_encoder.hpp"
#include "text/tokenizers/space_mark.hpp"
#include "text/tokenizers/unigram.hpp"
#include "text/tokenizers/word_table.hpp"

namespace cyb {
namespace {

bool looks_like_chat_token(std::string_view text) noexcept {
  return text.size() >= 5 && text.starts_with("<|") && text.ends_with("|>");
}

bool is_blank(std::string_view text) noexcept {
  return text.find_first_not_of(" \t\r\n\xE2\x96\x81") == std::string_view::npos;
}

}  // namespace

struct Tokenizer::Impl {
  TokenizerConfig config;
  Vocabulary vocabulary;
  text::PieceTable pieces;
  text::PieceEncoder encoder;
  text::Unigram unigram;
  text::WordTable words;
  text::AddedTokens added;
  std::unique_ptr<text::Pipeline> pipeline;
  text::NextPiece next_piece = nullptr;
  std::vector<bool> control;  // [V]

  Result<void> build(TokenizerParts parts);
  Result<void> check_ids() const;
  Result<void> add_specials(std::vector<std::int32_t> special_ids, bool by_score);
  Result<void> encode_text(std::string_view whole, const std::vector<text::ControlRun>& runs,
                           text::EncodeScratch& scratch) const;
  Result<void> encode_fragment(std::string_view fragment, text::FragmentPlace place,
                               text::EncodeScratch& scratch) const;
  Result<void> build_model(const std::vector<MergePair>& merges);
  Result<bool> drops_start(std::string_view fragment) const;
  Result<void> encode_pieces(std::string_view fragment, bool first, bool shifted,
                             text::EncodeScratch& scratch) const;
  Result<void> encode_piece(std::string_view piece, text::EncodeScratch& scratch) const;
  Result<void> encode_normal(std::string_view fragment, bool first, text::EncodeScratch& scratch,
                             bool shifted = false) const;
  Result<void> encode_bpe(std::string_view fragment, text::EncodeScratch& scratch) const;
  Result<void> encode_spm(std::string_view fragment, bool first,
                          text::EncodeScratch& scratch) const;
  Result<std::vector<std::int32_t>> run(std::string_view whole,
                                        const std::vector<text::ControlRun>& runs,
                                        const EncodeOptions& options) const;
};

Result<void> Tokenizer::Impl::check_ids() const {
  const auto check = [&](std::int32_t id, std::string_view key) -> Result<void> {
    if (vocabulary.contains(id)) return {};
    return fail(invalid_config(
        fmt::format("tokenizer.{}", key),
        fmt::format("token {} is not in the vocabulary of {}", id, vocabulary.size())));
  };
  if (config.bos_token_id) CYB_TRY(check(*config.bos_token_id, "bos_token_id"));
  if (config.pad_token_id) CYB_TRY(check(*config.pad_token_id, "pad_token_id"));
  if (config.unk_token_id) CYB_TRY(check(*config.unk_token_id, "unk_token_id"));
  for (const std::int32_t id : config.eos_token_ids) CYB_TRY(check(id, "eos_token_ids"));
  if (config.add_bos_token && !config.bos_token_id) {
    return fail(invalid_config("tokenizer.add_bos_token", "there is no bos_token_id"));
  }
  if (config.add_eos_token && config.eos_token_ids.empty()) {
    return fail(invalid_config("tokenizer.add_eos_token", "there is no eos_token_ids"));
  }
  return {};
}

Result<void> Tokenizer::Impl::add_specials(std::vector<std::int32_t> special_ids, bool by_score) {
  const auto is_special = [&](std::int32_t id) {
    const TokenType type = vocabulary.type(id);
    return type == TokenType::kControl || type == TokenType::kUserDefined;
  };
  bool any = !special_ids.empty();
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!is_special(id)) continue;
    special_ids.push_back(id);
    any = true;
  }
  for (std::int32_t id = 0; !any && id < vocabulary.size(); ++id) {
    if (looks_like_chat_token(vocabulary.text(id))) special_ids.push_back(id);
  }
  std::sort(special_ids.begin(), special_ids.end());
  special_ids.erase(std::unique(special_ids.begin(), special_ids.end()), special_ids.end());
  control.assign(static_cast<std::size_t>(vocabulary.size()), false);
  // Runs of spaces (Gemma): where scores decide, as in SentencePiece itself, they match before any
  // merge; a list of merges leads to them by itself.
  if (by_score) added.treat_marks_as_spaces();
  for (const std::int32_t id : special_ids) {
    if (!vocabulary.contains(id)) {
      return fail(tokenizer_error(fmt::format("special token {} is not in the vocabulary", id)));
    }
    const bool user = vocabulary.type(id) == TokenType::kUserDefined;
    control[static_cast<std::size_t>(id)] = !user;
    const auto kind = user ? text::MatchKind::kEverywhere : text::MatchKind::kControlOnly;
    CYB_TRY(added.add(id, vocabulary.text(id), kind, pipeline.get()));
  }
  return {};
}

Result<void> Tokenizer::Impl::build(TokenizerParts parts) {
  config = std::move(parts.config);
  vocabulary = std::move(parts.vocabulary);
  if (config.type == TokenizerKind::kNone) return {};
  CYB_TRY(check_ids());
  if (!config.pipeline.empty()) {
    CYB_ASSIGN(pipeline, text::Pipeline::make(config.pipeline, config));
    for (const auto* ids : {&pipeline->before(), &pipeline->after()}) {
      if (std::ranges::all_of(*ids, [&](auto id) { return vocabulary.contains(id); })) continue;
      return fail(invalid_config("tokenizer.pipeline", "frame: an id is no token"));
    }
  } else if (config.type != TokenizerKind::kBpe && config.type != TokenizerKind::kSpm) {
    return fail(invalid_config("tokenizer.pipeline", "this type of tokenizer needs one"));
  }
  CYB_TRY(add_specials(std::move(parts.special_ids),
                       config.type == TokenizerKind::kSpm && parts.merges.empty()));
  pieces.build(vocabulary, config.type, pipeline ? pipeline->decoding() : nullptr);
  next_piece = text::next_piece(config.pre);
  return build_model(parts.merges);
}

Result<void> Tokenizer::Impl::build_model(const std::vector<MergePair>& merges) {
  if (config.type == TokenizerKind::kUnigram) return unigram.build(config, vocabulary);
  if (config.type == TokenizerKind::kWordPiece || config.type == TokenizerKind::kWordLevel) {
    return words.build(config, vocabulary, {pipeline->word_prefix(), pipeline->max_word_chars()});
  }
  text::PieceShape shape;
  if (pipeline && config.type == TokenizerKind::kBpe) {
    shape = {!pipeline->takes_bytes(), pipeline->word_suffix()};
    if (!pipeline->word_prefix().empty()) {
      return fail(not_built("continuing_subword_prefix of a BPE model"));
    }
  }
  return encoder.build(config, vocabulary, pieces, merges, std::move(shape));
}

Result<void> Tokenizer::Impl::encode_piece(std::string_view piece,
                                           text::EncodeScratch& scratch) const {
  if (config.type == TokenizerKind::kUnigram) return unigram.encode(piece, scratch);
  if (config.type == TokenizerKind::kBpe) return encoder.encode(piece, scratch);
  return words.encode(piece, scratch);
}

/// The rest of a pipeline for a text that is normalised and has no added tokens in it.
Result<void> Tokenizer::Impl::encode_pieces(std::string_view fragment, bool first, bool shifted,
                                            text::EncodeScratch& scratch) const {
  text::Pieces cut{std::string(fragment), {{0, fragment.size(), first}}, shifted};
  CYB_TRY(pipeline->cut(cut));
  for (const text::Piece& piece : cut.list) CYB_TRY(encode_piece(cut.of(piece), scratch));
  return {};
}

Result<void> Tokenizer::Impl::encode_bpe(std::string_view fragment,
                                         text::EncodeScratch& scratch) const {
  for (std::size_t at = 0; at < fragment.size();) {
    const std::size_t end = next_piece(fragment, at);
    CYB_TRY(encoder.encode(fragment.substr(at, end - at), scratch));
    at = end;
  }
  return {};
}

Result<void> Tokenizer::Impl::encode_spm(std::string_view fragment, bool first,
                                         text::EncodeScratch& scratch) const {
  const bool starts_with_space =
      fragment.starts_with(' ') || fragment.starts_with(text::kSpaceMark);
  bool prefix = config.add_space_prefix;
  if (config.space_prefix == SpacePrefix::kFirstSegment)
    prefix = prefix && first && !starts_with_space;
  if (config.space_prefix == SpacePrefix::kEverySegmentMissing)
    prefix = prefix && !starts_with_space;

  const std::string marked =
      (prefix ? std::string(text::kSpaceMark) : std::string()) + text::marked_spaces(fragment);
  // Cut wherever no merge can reach across: the result is the same, the work is less.
  const std::string_view all = marked;
  std::size_t begin = 0;
  scratch.unk_from = scratch.ids.size();
  for (std::size_t at = 1; at < all.size(); ++at) {
    if ((static_cast<unsigned char>(all[at]) & 0xC0U) == 0x80U) continue;
    const std::string_view rest = all.substr(at);
    const bool word = config.split_words && rest.starts_with(text::kSpaceMark);
    if (!word && !encoder.may_cut(static_cast<unsigned char>(all[at - 1]), rest)) continue;
    CYB_TRY(encoder.encode(all.substr(begin, at - begin), scratch));
    if (word) scratch.unk_from = scratch.ids.size();
    begin = at;
  }
  return encoder.encode(all.substr(begin), scratch);
}

/// The normalizers leave nothing of the first character.
Result<bool> Tokenizer::Impl::drops_start(std::string_view fragment) const {
  std::size_t size = 1;
  while (size < fragment.size() && (static_cast<unsigned char>(fragment[size]) & 0xC0U) == 0x80U)
    ++size;
  std::string start(fragment.substr(0, size));
  CYB_TRY(pipeline->normalize(start));
  return start.empty();
}

Result<void> Tokenizer::Impl::encode_normal(std::string_view fragment, bool first,
                                            text::EncodeScratch& scratch, bool shifted) const {
  if (fragment.empty()) return {};
  if (config.type == TokenizerKind::kSpm) return encode_spm(fragment, first, scratch);
  return pipeline ? encode_pieces(fragment, first, shifted, scratch)
                  : encode_bpe(fragment, scratch);
}

Result<void> Tokenizer::Impl::encode_fragment(std::string_view fragment, text::FragmentPlace place,
                                              text::EncodeScratch& scratch) const {
  if (fragment.empty()) return {};
  if (!pipeline) {
    std::string normal;
    if (config.nfc && !text::is_quickly_nfc(fragment)) {
      CYB_ASSIGN(normal, text::nfc(fragment));
      fragment = normal;
    }
    return encode_normal(fragment, place.first, scratch);
  }
  if (!pipeline->normalizes() && !added.has_normalized()) {
    return encode_normal(fragment, place.first, scratch);
  }
  std::string normal(fragment);
  CYB_TRY(pipeline->normalize(normal));
  bool shifted = false;
  if (place.first) {
    CYB_ASSIGN(shifted, drops_start(fragment));
  }
  if (!added.has_normalized()) return encode_normal(normal, place.first, scratch, shifted);
  return added.walk_normalized(
      normal, place.control,
      [&](std::string_view part, text::FragmentPlace inner) {
        return encode_normal(part, place.first && inner.first, scratch, shifted);
      },
      [&](std::int32_t id) { scratch.ids.push_back(id); });
}

Result<void> Tokenizer::Impl::encode_text(std::string_view whole,
                                          const std::vector<text::ControlRun>& runs,
                                          text::EncodeScratch& scratch) const {
  return added.walk(
      whole, runs,
      [&](std::string_view part, text::FragmentPlace place) {
        return encode_fragment(part, place, scratch);
      },
      [&](std::int32_t id) { scratch.ids.push_back(id); });
}

Result<std::vector<std::int32_t>> Tokenizer::Impl::run(std::string_view whole,
                                                       const std::vector<text::ControlRun>& runs,
                                                       const EncodeOptions& options) const {
  if (config.type == TokenizerKind::kNone) {
    return fail(
        tokenizer_error("this is a model of ids: it has no vocabulary to encode text with"));
  }
  if (whole.size() > kMaxPromptBytes) {
    return fail(invalid_input(
        fmt::format("text of {} bytes, at most {} are allowed", whole.size(), kMaxPromptBytes)));
  }
  if (const std::size_t bad = utf8_find_invalid(whole); bad != std::string_view::npos) {
    return fail(invalid_input(fmt::format("text is not UTF-8 at byte {}", bad)));
  }
  text::EncodeScratch scratch;
  scratch.ids.reserve(whole.size() / 4 + 8);
  const bool frame = options.add_special && pipeline && pipeline->has_frame();
  if (frame) scratch.ids = pipeline->before();
  if (options.add_special && config.add_bos_token) scratch.ids.push_back(*config.bos_token_id);
  CYB_TRY(encode_text(whole, runs, scratch));
  if (options.add_special && config.add_eos_token) scratch.ids.push_back(config.eos_token_ids[0]);
  if (frame) {
    scratch.ids.insert(scratch.ids.end(), pipeline->after().begin(), pipeline->after().end());
  }
  return std::move(scratch.ids);
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerParts parts) {
  auto impl = std::make_unique<Impl>();
  CYB_TRY(impl->build(std::move(parts)));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view whole,
                                                    const EncodeOptions& options) const {
  std::vector<text::ControlRun> runs;
  if (options.parse_special) runs.push_back({0, whole.size()});
  return impl_->run(whole, runs, options);
}

Result<std::vector<std::int32_t>> Tokenizer::encode_segments(std::span<const TextSegment> segments,
                                                             const EncodeOptions& options) const {
  std::string whole;
  std::vector<text::ControlRun> runs;
  for (const TextSegment& segment : segments) {
    const std::size_t begin = whole.size();
    whole.append(segment.text);
    if (!segment.control || segment.text.empty()) continue;
    if (!runs.empty() && runs.back().end == begin) {
      runs.back().end = whole.size();
    } else {
      runs.push_back({begin, whole.size()});
    }
  }
  return impl_->run(whole, runs, options);
}

void Tokenizer::guard_markers(std::span<const std::string> literals) {
  for (std::int32_t id = 0; id < impl_->vocabulary.size(); ++id) {
    const std::string_view token = impl_->vocabulary.text(id);
    if (impl_->vocabulary.type(id) != TokenType::kUserDefined || is_blank(token)) continue;
    const bool written = std::any_of(
        literals.begin(), literals.end(),
        [&](const std::string& literal) { return literal.find(token) != std::string::npos; });
    if (written) impl_->added.set_kind(id, text::MatchKind::kControlOnly);
  }
}

std::string_view Tokenizer::piece(std::int32_t id) const noexcept {
  const bool known = impl_->config.type != TokenizerKind::kNone && impl_->vocabulary.contains(id);
  return known ? impl_->pieces.piece(id) : std::string_view();
}

std::string Tokenizer::first_piece(std::int32_t id) const {
  const text::Decoding* decoding = impl_->pipeline ? impl_->pipeline->decoding() : nullptr;
  if (decoding == nullptr || !impl_->vocabulary.contains(id)) return std::string(piece(id));
  return decoding->render(impl_->vocabulary.text(id), true);
}

DecodeEnds Tokenizer::decode_ends() const noexcept {
  const text::Decoding* decoding = impl_->pipeline ? impl_->pipeline->decoding() : nullptr;
  if (decoding != nullptr) return {decoding->strips_start(), decoding->strips_end()};
  return {config().type == TokenizerKind::kSpm && config().add_space_prefix, false};
}

bool Tokenizer::is_control(std::int32_t id) const noexcept {
  if (id < 0 || static_cast<std::size_t>(id) >= impl_->control.size()) return false;
  return impl_->control[static_cast<std::size_t>(id)] ||
         impl_->vocabulary.type(id) == TokenType::kUnknown;
}

bool Tokenizer::is_eos(std::int32_t id) const noexcept {
  const auto& ids = impl_->config.eos_token_ids;
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

const TokenizerConfig& Tokenizer::config() const noexcept {
  return impl_->config;
}
const Vocabulary& Tokenizer::vocabulary() const noexcept {
  return impl_->vocabulary;
}
std::int32_t Tokenizer::vocab_size() const noexcept {
  return impl_->vocabulary.size();
}

}  // namespace cyb
