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

Result<void> Vocabulary::finish() {
  const auto text_of = [this](std::int32_t id) { return text(id); };
  index_.reset(types_.size());
  for (std::int32_t id = 0; id < size(); ++id) {
    if (type(id) == TokenType::kUnused) continue;
    std::int32_t other = -1;
    switch (index_.insert(id, text(id), text_of, other)) {
      case text::TextIndex::Insert::kDone:
        break;
      case text::TextIndex::Insert::kDuplicate:
        return fail(vocab_error(fmt::format("tokens {} and {} have the same text", other, id)));
      case text::TextIndex::Insert::kTooManyProbes:
        return fail(vocab_error("tokens collide in the hash table"));
    }
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
