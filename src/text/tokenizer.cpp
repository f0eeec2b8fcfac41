// Tokenizer: special tokens first, then normalisation and pieces of the text between them.
#include "text/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/normalizers/nfc.hpp"
#include "text/pretokenizers/pretokenizer.hpp"
#include "text/tokenizers/piece_encoder.hpp"
#include "text/tokenizers/space_mark.hpp"
#include "text/tokenizers/special_matcher.hpp"

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
  text::SpecialMatcher matcher;
  text::NextPiece next_piece = nullptr;
  std::vector<bool> control;  // [V]

  Result<void> build(TokenizerParts parts);
  Result<void> check_ids() const;
  Result<void> add_specials(std::vector<std::int32_t> special_ids, bool by_score);
  Result<void> encode_text(std::string_view whole, const std::vector<text::ControlRun>& runs,
                           text::EncodeScratch& scratch) const;
  Result<void> encode_fragment(std::string_view fragment, bool first,
                               text::EncodeScratch& scratch) const;
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
  if (by_score) matcher.treat_marks_as_spaces();
  for (const std::int32_t id : special_ids) {
    if (!vocabulary.contains(id)) {
      return fail(tokenizer_error(fmt::format("special token {} is not in the vocabulary", id)));
    }
    const bool user = vocabulary.type(id) == TokenType::kUserDefined;
    control[static_cast<std::size_t>(id)] = !user;
    const auto kind = user ? text::MatchKind::kEverywhere : text::MatchKind::kControlOnly;
    const std::string_view token = vocabulary.text(id);
    CYB_TRY(matcher.add(id, token, kind));
  }
  return {};
}

Result<void> Tokenizer::Impl::build(TokenizerParts parts) {
  config = std::move(parts.config);
  vocabulary = std::move(parts.vocabulary);
  if (config.type == TokenizerKind::kNone) return {};
  CYB_TRY(check_ids());
  CYB_TRY(add_specials(std::move(parts.special_ids),
                       config.type == TokenizerKind::kSpm && parts.merges.empty()));
  pieces.build(vocabulary, config.type);
  next_piece = text::next_piece(config.pre);
  return encoder.build(config, vocabulary, pieces, parts.merges);
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

Result<void> Tokenizer::Impl::encode_fragment(std::string_view fragment, bool first,
                                              text::EncodeScratch& scratch) const {
  if (fragment.empty()) return {};
  std::string normal;
  if (config.nfc && !text::is_quickly_nfc(fragment)) {
    CYB_ASSIGN(normal, text::nfc(fragment));
    fragment = normal;
  }
  return config.type == TokenizerKind::kBpe ? encode_bpe(fragment, scratch)
                                            : encode_spm(fragment, first, scratch);
}

Result<void> Tokenizer::Impl::encode_text(std::string_view whole,
                                          const std::vector<text::ControlRun>& runs,
                                          text::EncodeScratch& scratch) const {
  std::size_t run = 0;
  for (std::size_t at = 0; at <= whole.size();) {
    const text::SpecialMatch match = matcher.find(whole, at, runs, run);
    const std::size_t end = match.id < 0 ? whole.size() : match.begin;
    CYB_TRY(encode_fragment(whole.substr(at, end - at), at == 0, scratch));
    if (match.id < 0) break;
    scratch.ids.push_back(match.id);
    at = match.end;
  }
  return {};
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
  if (options.add_special && config.add_bos_token) scratch.ids.push_back(*config.bos_token_id);
  CYB_TRY(encode_text(whole, runs, scratch));
  if (options.add_special && config.add_eos_token) scratch.ids.push_back(config.eos_token_ids[0]);
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
    if (written) impl_->matcher.set_kind(id, text::MatchKind::kControlOnly);
  }
}

std::string_view Tokenizer::piece(std::int32_t id) const noexcept {
  const bool known = impl_->config.type != TokenizerKind::kNone && impl_->vocabulary.contains(id);
  return known ? impl_->pieces.piece(id) : std::string_view();
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
