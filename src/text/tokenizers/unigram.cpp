// Unigram: the trie and the search. Unknown characters score 10 below the lowest token, as in
// sentencepiece; sums are made in 64 bits, as the `tokenizers` package makes them.
#include "text/tokenizers/unigram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/pretokenizers/char_class.hpp"
#include "text/tokenizers/byte_level.hpp"

namespace cyb::text {
namespace {

constexpr double kUnknownPenalty = 10.0;

bool is_piece(const Vocabulary& vocabulary, std::int32_t id) noexcept {
  const TokenType type = vocabulary.type(id);
  return (type == TokenType::kNormal || type == TokenType::kUserDefined) &&
         !vocabulary.text(id).empty();
}

}  // namespace

Result<void> Unigram::build(const TokenizerConfig& config, const Vocabulary& vocabulary,
                            bool sentencepiece) {
  sentencepiece_ = sentencepiece;
  config_ = &config;
  vocabulary_ = &vocabulary;
  double low = 0;
  bool any = false;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const float score = vocabulary.score(id);
    if (!std::isfinite(score)) {
      return fail(tokenizer_error(fmt::format("token {} has a score that is not finite", id)));
    }
    const TokenType type = vocabulary.type(id);
    if (sentencepiece ? type != TokenType::kNormal : type == TokenType::kUnused) continue;
    low = any ? std::min(low, static_cast<double>(score)) : static_cast<double>(score);
    any = true;
  }
  unknown_score_ = low - kUnknownPenalty;
  if (sentencepiece) unknown_score_ = static_cast<double>(static_cast<float>(unknown_score_));
  CYB_TRY(check_bytes());
  return build_trie();
}

Result<void> Unigram::check_bytes() {
  byte_ids_.fill(-1);
  if (!config_->byte_fallback) return {};
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (vocabulary_->type(id) != TokenType::kByte) continue;
    const int byte = parse_byte_token(vocabulary_->text(id));
    if (byte >= 0) byte_ids_[static_cast<std::size_t>(byte)] = id;
  }
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    if (byte_ids_[byte] < 0) {
      return fail(tokenizer_error(fmt::format("byte_fallback needs a token <0x{:02X}>", byte)));
    }
  }
  return {};
}

Result<void> Unigram::build_trie() {
  std::vector<std::int32_t> order;
  order.reserve(static_cast<std::size_t>(vocabulary_->size()));
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (is_piece(*vocabulary_, id)) order.push_back(id);
  }
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return vocabulary_->text(a) < vocabulary_->text(b);
  });
  struct Range {
    std::uint32_t begin, end, depth;
  };
  std::vector<Range> nodes{{0, static_cast<std::uint32_t>(order.size()), 0}};
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    auto [at, end, depth] = nodes[node];
    first_.push_back(static_cast<std::uint32_t>(labels_.size()));
    std::int32_t id = -1;
    if (at < end && vocabulary_->text(order[at]).size() == depth) id = order[at++];
    ids_.push_back(id);
    while (at < end) {
      const char label = vocabulary_->text(order[at])[depth];
      std::uint32_t stop = at + 1;
      while (stop < end && vocabulary_->text(order[stop])[depth] == label) ++stop;
      labels_.push_back(static_cast<unsigned char>(label));
      nodes.push_back({at, stop, depth + 1});
      at = stop;
    }
  }
  first_.push_back(static_cast<std::uint32_t>(labels_.size()));
  root_.fill(0);
  for (std::uint32_t edge = first_[0]; edge < first_[1]; ++edge) root_[labels_[edge]] = edge + 1;
  return {};
}

std::uint32_t Unigram::child(std::uint32_t node, unsigned char byte) const noexcept {
  const auto begin = labels_.begin() + first_[node], end = labels_.begin() + first_[node + 1];
  if (end - begin > 8) {
    const auto found = std::lower_bound(begin, end, byte);
    return found == end || *found != byte ? 0
                                          : static_cast<std::uint32_t>(found - labels_.begin()) + 1;
  }
  for (auto edge = begin; edge != end; ++edge) {
    if (*edge == byte) return static_cast<std::uint32_t>(edge - labels_.begin()) + 1;
  }
  return 0;
}

void Unigram::drop(std::int32_t id) {
  std::ranges::replace(ids_, id, -1);
}

template <bool sentencepiece>
double Unigram::score_of(std::int32_t id, std::size_t size) const noexcept {
  if (sentencepiece && vocabulary_->type(id) == TokenType::kUserDefined) {
    return static_cast<double>(size) * 0.1 - 0.1;  // measured: its own score plays no part
  }
  return static_cast<double>(vocabulary_->score(id));
}

template <bool sentencepiece>
void Unigram::fill(std::string_view piece, std::vector<Step>& best) const {
  best.assign(piece.size() + 1, Step{0, 0, kNone});
  const auto offer = [&](std::size_t from, std::size_t to, double score, std::int32_t id) {
    Step& target = best[to];
    const double exact = best[from].score + score;
    const double sum = sentencepiece ? static_cast<double>(static_cast<float>(exact)) : exact;
    if (target.id == kNone || sum > target.score) {
      target = {sum, static_cast<std::uint32_t>(from), id};
    }
  };
  for (std::size_t at = 0; at < piece.size();) {
    const unsigned char lead = static_cast<unsigned char>(piece[at]);
    const std::size_t size = valid_size(lead);
    bool single = false;
    std::uint32_t node = root_[lead];
    for (std::size_t end = at + 1; node != 0; ++end) {
      if (const std::int32_t id = ids_[node]; id >= 0) {
        offer(at, end, score_of<sentencepiece>(id, end - at), id);
        single = single || end - at == size;
      }
      if (end == piece.size()) break;
      node = child(node, static_cast<unsigned char>(piece[end]));
    }
    if (!single) offer(at, at + size, unknown_score_, kUnknown);
    at += size;
  }
}

Result<void> Unigram::emit_unknown(std::string_view text, EncodeScratch& scratch) const {
  if (config_->byte_fallback) {
    for (const char byte : text) {
      scratch.ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
    return {};
  }
  if (!config_->unk_token_id) {
    return fail(tokenizer_error(
        fmt::format("the vocabulary has no token for {} byte(s) of the text", text.size())));
  }
  scratch.ids.push_back(*config_->unk_token_id);
  return {};
}

Result<void> Unigram::encode(std::string_view piece, EncodeScratch& scratch) const {
  std::vector<Step> best;
  if (sentencepiece_) {
    fill<true>(piece, best);
  } else {
    fill<false>(piece, best);
  }
  std::vector<std::uint32_t> ends;  // of the pieces, last first
  for (std::size_t end = piece.size(); end > 0; end = best[end].from) {
    ends.push_back(static_cast<std::uint32_t>(end));
  }
  for (std::size_t i = ends.size(); i > 0;) {
    const Step& step = best[ends[--i]];
    if (step.id >= 0) {
      scratch.ids.push_back(step.id);
      continue;
    }
    std::size_t last = ends[i];  // a run of unknown characters is one
    while (i > 0 && best[ends[i - 1]].id == kUnknown) last = ends[--i];
    CYB_TRY(emit_unknown(piece.substr(step.from, last - step.from), scratch));
  }
  return {};
}

}  // namespace cyb::text
