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
  std::string_view piece = tokenizer_->piece(id);
  if (piece.empty()) return;
  const bool strip = at_start_ && config.type == TokenizerKind::kSpm && config.add_space_prefix;
  if (strip && piece.starts_with(' ')) piece.remove_prefix(1);
  at_start_ = false;

  held_.append(piece);
  const std::size_t whole = utf8_complete_prefix(held_);
  out += utf8_replace_invalid(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
}

void StreamDecoder::finish(std::string& out) {
  out += utf8_replace_invalid(held_);
  held_.clear();
}

}  // namespace cyb
