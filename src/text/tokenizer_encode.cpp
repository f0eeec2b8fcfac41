// Text to ids: special tokens first, then normalisation and pieces of the text between them.
#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/normalizers/nfc.hpp"
#include "text/tokenizer_impl.hpp"
#include "text/tokenizers/space_mark.hpp"

namespace cyb {

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
  if (pipeline && pipeline->symbols() != nullptr) return encode_symbols(fragment, scratch);
  const bool starts_with_space =
      fragment.starts_with(' ') || fragment.starts_with(text::kSpaceMark);
  bool prefix = config.add_space_prefix;
  if (config.space_prefix == SpacePrefix::kFirstSegment)
    prefix = prefix && first && !starts_with_space;
  if (config.space_prefix == SpacePrefix::kEverySegmentMissing)
    prefix = prefix && !starts_with_space;

  const std::string marked =
      (prefix ? std::string(text::kSpaceMark) : std::string()) + text::marked_spaces(fragment);
  scratch.unk_from = scratch.ids.size();
  return encode_marked(marked, scratch);
}

/// Text of a sentencepiece model: symbols stand alone, no merge reaches across them.
Result<void> Tokenizer::Impl::encode_symbols(std::string_view text,
                                             text::EncodeScratch& scratch) const {
  const std::vector<text::ControlRun> none;
  std::size_t run = 0, done = 0;
  scratch.unk_from = scratch.ids.size();
  while (done < text.size()) {
    const text::SpecialMatch match = pipeline->symbols()->find(text, done, none, run);
    const std::size_t end = match.id < 0 ? text.size() : match.begin;
    if (end > done) CYB_TRY(encode_marked(text.substr(done, end - done), scratch));
    if (match.id < 0) return {};
    scratch.ids.push_back(match.id);
    done = match.end;
  }
  return {};
}

/// Cut wherever no merge can reach across: the result is the same, the work is less.
Result<void> Tokenizer::Impl::encode_marked(std::string_view all,
                                            text::EncodeScratch& scratch) const {
  std::size_t begin = 0;
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

}  // namespace cyb
