// Vocabulary: appending, the hash, and merge rules found by text.
#include "text/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/limits.hpp"

namespace cyb {
namespace {

Error vocab_error(std::string text) {
  return Error(ErrorKind::kFormat, "F34", "vocab: " + std::move(text));
}

}  // namespace

void Vocabulary::reserve(std::size_t n_tokens, std::size_t n_text_bytes) {
  blob_.reserve(n_text_bytes);
  offsets_.reserve(n_tokens + 1);
  types_.reserve(n_tokens);
}

Result<void> Vocabulary::add(const TokenEntry& entry) {
  if (types_.size() >= kMaxVocab)
    return fail(vocab_error(fmt::format("more than {} tokens", kMaxVocab)));
  if (entry.text.size() > kMaxStringBytes ||
      blob_.size() + entry.text.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail(vocab_error(fmt::format("token {} is too long", types_.size())));
  }
  blob_.append(entry.text);
  offsets_.push_back(static_cast<std::uint32_t>(blob_.size()));
  types_.push_back(static_cast<std::uint8_t>(entry.type));
  max_text_bytes_ = std::max(max_text_bytes_, entry.text.size());
  if (!scores_.empty()) {
    scores_.push_back(entry.score);
  } else if (entry.score != 0.0F) {
    scores_.reserve(types_.capacity());
    scores_.assign(types_.size() - 1, 0.0F);
    scores_.push_back(entry.score);
  }
  return {};
}

Result<void> Vocabulary::assign(const VocabData& data) {
  const std::size_t n = data.tokens.size();
  if (n > kMaxVocab) return fail(vocab_error(fmt::format("more than {} tokens", kMaxVocab)));
  for (std::size_t i = 0; i < n; ++i)
    max_text_bytes_ = std::max(max_text_bytes_, data.tokens[i].size());
  if (max_text_bytes_ > kMaxStringBytes) return fail(vocab_error("a token is too long"));
  blob_ = data.tokens.bytes();
  offsets_.assign(1, 0);
  offsets_.insert(offsets_.end(), data.tokens.ends().begin(), data.tokens.ends().end());
  types_.assign(n, static_cast<std::uint8_t>(TokenType::kNormal));
  for (std::size_t i = 0; i < std::min(n, data.types.size()); ++i)
    types_[i] = static_cast<std::uint8_t>(data.types[i]);
  const bool scored = std::ranges::any_of(data.scores, [](float score) { return score != 0.0F; });
  scores_ = scored ? data.scores : std::vector<float>();
  if (scored) scores_.resize(n, 0.0F);
  return {};
}

Result<void> Vocabulary::finish() {
  const auto text_of = [this](std::int32_t id) { return text(id); };
  const auto is_found = [this](std::int32_t id) { return type(id) != TokenType::kUnused; };
  index_.reset(types_.size());
  std::int32_t id = -1, other = -1;
  switch (index_.insert_all(size(), text_of, is_found, id, other)) {
    case text::TextIndex::Insert::kDone:
      break;
    case text::TextIndex::Insert::kDuplicate:
      return fail(vocab_error(fmt::format("tokens {} and {} have the same text", other, id)));
    case text::TextIndex::Insert::kTooManyProbes:
      return fail(vocab_error("tokens collide in the hash table"));
  }
  return {};
}

std::int32_t Vocabulary::find(std::string_view text_in) const noexcept {
  return index_.find(text_in, [this](std::int32_t id) { return text(id); });
}

Result<MergePair> find_merge(const Vocabulary& vocabulary, std::string_view left,
                             std::string_view right, std::size_t rank) {
  const MergePair pair{vocabulary.find(left), vocabulary.find(right)};
  if (pair.left < 0 || pair.right < 0) {
    return fail(vocab_error(fmt::format("merge {} names an unknown token", rank)));
  }
  return pair;
}

Result<MergePair> find_merge(const Vocabulary& vocabulary, std::string_view joined,
                             std::size_t rank) {
  const std::size_t space = joined.find(' ');
  if (space == std::string_view::npos || joined.find(' ', space + 1) != std::string_view::npos) {
    return fail(vocab_error(fmt::format("merge {} is not two texts with a space between", rank)));
  }
  return find_merge(vocabulary, joined.substr(0, space), joined.substr(space + 1), rank);
}

}  // namespace cyb
