// Ids to text: decode() is the stream decoder run to its end. A model of ids prints the ids
// themselves.
#include <fmt/format.h>

#include "base/utf8.hpp"
#include "text/tokenizer.hpp"

namespace cyb {

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids,
                                      const DecodeOptions& options) const {
  std::string out;
  if (config().type == TokenizerKind::kNone) {
    for (const std::int32_t id : ids) {
      if (!out.empty()) out += ' ';
      out += fmt::format("{}", id);
    }
    return out;
  }
  StreamDecoder decoder(*this, options);
  for (const std::int32_t id : ids) {
    if (!vocabulary().contains(id)) {
      return fail(invalid_input(
          fmt::format("token id {} is outside the vocabulary of {}", id, vocab_size())));
    }
    decoder.push(id, out);
  }
  decoder.finish(out);
  return out;
}

void StreamDecoder::push(std::int32_t id, std::string& out) {
  const TokenizerConfig& config = tokenizer_->config();
  if (config.type == TokenizerKind::kNone) {
    out += fmt::format("{}{}", at_start_ ? "" : " ", id);
    at_start_ = false;
    return;
  }
  if (options_.skip_special && tokenizer_->is_control(id)) return;
  const DecodeEnds ends = tokenizer_->decode_ends();
  const bool again = ends.no_repeats && id == last_;
  last_ = id;
  if (again) return;
  std::string first;
  std::string_view piece;
  if (at_start_) {
    first = tokenizer_->first_piece(id);
    piece = first;
  } else {
    piece = tokenizer_->piece(id);
  }
  const bool strip = options_.strip_space_prefix && blank_ && ends.first_space;
  at_start_ = at_start_ && piece.empty() && config.pipeline.empty();
  if (piece.empty()) return;
  if (strip && piece.starts_with(' ')) piece.remove_prefix(1);
  if (piece.empty() && ends.first_spaces) return;
  blank_ = false;
  if (space_) held_ += ' ';
  space_ = ends.last_space && piece.ends_with(' ');
  if (space_) piece.remove_suffix(1);

  held_.append(piece);
  const std::size_t whole = utf8_complete_prefix(held_);
  out += utf8_replace_invalid(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
}

void StreamDecoder::finish(std::string& out) {
  out += utf8_replace_invalid(held_);
  held_.clear();
  space_ = false;
}

}  // namespace cyb
