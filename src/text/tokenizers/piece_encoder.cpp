// PieceEncoder: tables and the encoding of one piece.
#include "text/tokenizers/piece_encoder.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/utf8.hpp"
#include "text/decoders/decoding.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/tokenizers/byte_level.hpp"
#include "text/tokenizers/space_mark.hpp"

namespace cyb::text {
namespace {

constexpr unsigned kMarkLead = 0xE2;  // first byte of kSpaceMark

bool is_text_token(const Vocabulary& vocabulary, std::int32_t id) noexcept {
  return vocabulary.type(id) == TokenType::kNormal ||
         vocabulary.type(id) == TokenType::kUserDefined;
}

std::int32_t find_text_token(const Vocabulary& vocabulary, std::string_view text) noexcept {
  const std::int32_t id = vocabulary.find(text);
  return id >= 0 && is_text_token(vocabulary, id) ? id : -1;
}

/// Merges given by the file, in their order.
struct RankRules {
  const MergeTable& table;
  std::uint32_t priority(const Symbol& left, const Symbol& right, std::uint32_t) const noexcept {
    return (left.id | right.id) < 0 ? kNoMerge : table.rank(left.id, right.id);
  }
  std::int32_t merged(std::uint32_t rank, const Symbol&, std::uint32_t) const noexcept {
    return table.merged(rank);
  }
};

/// tiktoken: whatever joins to a token, the lowest id first.
template <class Find>
struct IdRules {
  Find find;  // id of the token with these bytes, or -1
  std::string_view piece;
  std::uint32_t priority(const Symbol& left, const Symbol&, std::uint32_t end) const noexcept {
    return static_cast<std::uint32_t>(find(piece.substr(left.begin, end - left.begin)));
  }
  std::int32_t merged(std::uint32_t rank, const Symbol&, std::uint32_t) const noexcept {
    return static_cast<std::int32_t>(rank);
  }
};

/// SentencePiece: whatever joins to a token, the highest score first.
struct ScoreRules {
  const Vocabulary& vocabulary;
  std::string_view piece;

  std::int32_t find(const Symbol& left, std::uint32_t end) const noexcept {
    if (end - left.begin > vocabulary.max_text_bytes()) return -1;
    return find_text_token(vocabulary, piece.substr(left.begin, end - left.begin));
  }
  std::uint32_t priority(const Symbol& left, const Symbol&, std::uint32_t end) const noexcept {
    const std::int32_t id = find(left, end);
    if (id < 0) return kNoMerge;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(vocabulary.score(id) + 0.0F);
    const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
    return ~ascending;
  }
  std::int32_t merged(std::uint32_t, const Symbol& left, std::uint32_t end) const noexcept {
    return find(left, end);
  }
};

}  // namespace

void PieceTable::build(const Vocabulary& vocabulary, TokenizerKind kind, const Decoding* decoding) {
  offsets_.assign(1, 0);
  offsets_.reserve(static_cast<std::size_t>(vocabulary.size()) + 1);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const TokenType type = vocabulary.type(id);
    if (decoding != nullptr) {
      blob_ += decoding->render(text, false);
    } else if (kind == TokenizerKind::kSpm && type == TokenType::kByte) {
      const int byte = parse_byte_token(text);
      if (byte >= 0) blob_ += static_cast<char>(static_cast<unsigned char>(byte));
    } else if (kind == TokenizerKind::kSpm) {
      append_plain_spaces(blob_, text);
    } else if (type != TokenType::kNormal || !append_mapped_bytes(blob_, text)) {
      blob_.append(text);
    }
    offsets_.push_back(static_cast<std::uint32_t>(blob_.size()));
    max_bytes_ = std::max<std::size_t>(
        max_bytes_, offsets_[offsets_.size() - 1] - offsets_[offsets_.size() - 2]);
  }
}

Result<void> PieceEncoder::build(const TokenizerConfig& config, const Vocabulary& vocabulary,
                                 const PieceTable& pieces, std::span<const MergePair> merges,
                                 PieceShape shape) {
  shape_ = std::move(shape);
  bytes_ = config.type == TokenizerKind::kBpe && !shape_.chars;
  config_ = &config;
  vocabulary_ = &vocabulary;
  pieces_ = &pieces;
  by_rank_ = config.type == TokenizerKind::kBpe || !merges.empty();
  byte_ids_.fill(-1);
  if (by_rank_) {
    CYB_ASSIGN(merges_, MergeTable::build(vocabulary, merges, shape_.word_prefix.size()));
  }
  reached_ =
      std::make_unique<std::atomic<std::uint8_t>[]>(static_cast<std::size_t>(vocabulary.size()));
  if (shape_.ranks_are_ids && (!bytes_ || !merges.empty())) {
    return fail(tokenizer_error("ranks that are ids beside merges or characters"));
  }
  if (bytes_) return index_pieces();
  if (config.ignore_merges && !shape_.word_suffix.empty()) {
    return fail(not_built("ignore_merges beside end_of_word_suffix"));
  }
  max_bytes_ = vocabulary.max_text_bytes();
  find_joins();
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!std::isfinite(vocabulary.score(id))) {
      return fail(tokenizer_error(fmt::format("token {} has a score that is not finite", id)));
    }
  }
  return check_byte_tokens();
}

Result<void> PieceEncoder::index_pieces() {
  const auto piece_of = [this](std::int32_t id) { return pieces_->piece(id); };
  by_bytes_.reset(static_cast<std::size_t>(vocabulary_->size()));
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (vocabulary_->type(id) != TokenType::kNormal) continue;
    const std::string_view bytes = pieces_->piece(id);
    std::int32_t other = -1;
    if (by_bytes_.insert(id, bytes, piece_of, other) == TextIndex::Insert::kTooManyProbes) {
      return fail(tokenizer_error("tokens collide in the hash table"));
    }
    max_bytes_ = std::max(max_bytes_, bytes.size());
    if (bytes.size() == 1) byte_ids_[static_cast<unsigned char>(bytes[0])] = id;
  }
  // An added token may be the symbol of a byte, too.
  for (unsigned byte = 0; byte < byte_ids_.size(); ++byte) {
    std::string text;
    utf8_append(text, byte_to_char(static_cast<std::uint8_t>(byte)));
    const std::int32_t id = byte_ids_[byte] < 0 ? vocabulary_->find(text) : -1;
    if (id >= 0 && vocabulary_->type(id) == TokenType::kUserDefined) byte_ids_[byte] = id;
  }
  return {};
}

Result<void> PieceEncoder::check_byte_tokens() {
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (vocabulary_->type(id) != TokenType::kByte) continue;
    const int byte = parse_byte_token(vocabulary_->text(id));
    if (byte < 0) {
      return fail(tokenizer_error(
          fmt::format("token {} is typed byte, but its text is not <0x00>..<0xFF>", id)));
    }
    std::int32_t& slot = byte_ids_[static_cast<std::size_t>(byte)];
    if (slot >= 0) {
      return fail(tokenizer_error(
          fmt::format("tokens {} and {} stand for the same byte 0x{:02X}", slot, id, byte)));
    }
    slot = id;
  }
  if (!config_->byte_fallback) return {};
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    if (byte_ids_[byte] < 0) {
      return fail(tokenizer_error(fmt::format("byte_fallback needs a token <0x{:02X}>", byte)));
    }
  }
  return {};
}

void PieceEncoder::find_joins() {
  std::vector<char> joins(joins_.size(), 0);  // [last byte << 8 | first byte]
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (!is_text_token(*vocabulary_, id)) continue;
    const std::string_view text = vocabulary_->text(id);
    unsigned before = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const unsigned after = static_cast<unsigned char>(text[at]);
      // Not at the start, nor inside of a character.
      if (at > 0 && (after & 0xC0U) != 0x80U) joins[before << 8 | after] = 1;
      if (at > 0 && after == kMarkLead && text.substr(at).starts_with(kSpaceMark))
        joins_space_[before] = true;
      before = after;
    }
  }
  for (std::size_t pair = 0; pair < joins.size(); ++pair) joins_[pair] = joins[pair] != 0;
}

std::int32_t PieceEncoder::whole_token(std::string_view piece) const noexcept {
  if (piece.size() > max_bytes_) return -1;
  if (!bytes_ && !shape_.word_suffix.empty()) {
    return find_text_token(*vocabulary_, std::string(piece) + shape_.word_suffix);
  }
  if (!bytes_) return find_text_token(*vocabulary_, piece);
  return by_bytes_.find(piece, [this](std::int32_t id) { return pieces_->piece(id); });
}

void PieceEncoder::split(std::string_view piece, std::vector<Symbol>& symbols) const {
  symbols.clear();
  if (bytes_) {
    symbols.resize(piece.size());
    for (std::uint32_t i = 0; i < symbols.size(); ++i) {
      symbols[i] = {i, byte_ids_[static_cast<unsigned char>(piece[i])]};
    }
    return;
  }
  split_chars(piece, symbols);
}

void PieceEncoder::split_chars(std::string_view piece, std::vector<Symbol>& symbols) const {
  std::string marked;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t size = valid_size(static_cast<unsigned char>(piece[at]));
    std::string_view text = piece.substr(at, size);
    const bool prefix = at > 0 && !shape_.word_prefix.empty();
    const bool suffix = at + size == piece.size() && !shape_.word_suffix.empty();
    if (prefix || suffix) {
      marked = prefix ? shape_.word_prefix : std::string();
      marked.append(text);
      if (suffix) marked += shape_.word_suffix;
      text = marked;
    }
    symbols.push_back({static_cast<std::uint32_t>(at), find_text_token(*vocabulary_, text)});
    at += size;
  }
}

void PieceEncoder::merge(std::string_view piece, MergeScratch& scratch) const {
  split(piece, scratch.symbols);
  const std::uint32_t size = static_cast<std::uint32_t>(piece.size());
  if (shape_.ranks_are_ids) {
    const auto find = [this](std::string_view bytes) { return whole_token(bytes); };
    merge_symbols(IdRules<decltype(find)>{find, piece}, scratch, size);
  } else if (by_rank_) {
    merge_symbols(RankRules{merges_}, scratch, size);
  } else {
    merge_symbols(ScoreRules{*vocabulary_, piece}, scratch, size);
  }
}

Result<void> PieceEncoder::encode(std::string_view piece, EncodeScratch& scratch) const {
  const std::int32_t whole = whole_token(piece);
  if (whole < 0) {
    merge(piece, scratch.merge);
    return emit(piece, scratch);
  }
  std::atomic<std::uint8_t>& reached = reached_[static_cast<std::size_t>(whole)];
  if (config_->ignore_merges || reached.load(std::memory_order_relaxed) == 1) {
    scratch.ids.push_back(whole);
    return {};
  }
  merge(piece, scratch.merge);
  const bool alone = scratch.merge.symbols.size() == 1 && scratch.merge.symbols[0].id == whole;
  if (alone) reached.store(1, std::memory_order_relaxed);
  return emit(piece, scratch);
}

Result<void> PieceEncoder::emit(std::string_view piece, EncodeScratch& scratch) const {
  const std::vector<Symbol>& symbols = scratch.merge.symbols;
  if (config_->type == TokenizerKind::kBpe) scratch.unk_from = scratch.ids.size();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].id >= 0) {
      scratch.ids.push_back(symbols[i].id);
      continue;
    }
    const std::size_t end = i + 1 < symbols.size() ? symbols[i + 1].begin : piece.size();
    CYB_TRY(emit_missing(piece.substr(symbols[i].begin, end - symbols[i].begin), scratch));
  }
  return {};
}

Result<void> PieceEncoder::emit_missing(std::string_view bytes, EncodeScratch& scratch) const {
  if (!bytes_ && config_->byte_fallback) {
    for (const char byte : bytes) {
      scratch.ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
    return {};
  }
  if (!config_->unk_token_id) {
    std::string hex;
    for (const char byte : bytes) hex += fmt::format(" {:02X}", static_cast<unsigned char>(byte));
    return fail(tokenizer_error("the vocabulary has no token for the bytes" + hex));
  }
  const std::int32_t unk = *config_->unk_token_id;
  const bool run =
      config_->fuse_unk && scratch.ids.size() > scratch.unk_from && scratch.ids.back() == unk;
  if (!run) scratch.ids.push_back(unk);
  return {};
}

}  // namespace cyb::text
