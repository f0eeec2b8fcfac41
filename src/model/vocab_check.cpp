// check_merges: an open-addressing hash of ids over the token texts; 4 bytes a slot, no strings
// made.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "model/format_error.hpp"
#include "model/vocab_text.hpp"

namespace cyb {
namespace {

constexpr std::uint32_t kEmpty = 0xFFFFFFFFu;

/// Hash of left + right without joining them: FNV-1a over the bytes, mixed at the end.
std::uint64_t hash_of(std::string_view left, std::string_view right) noexcept {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (const std::string_view part : {left, right}) {
    for (const char c : part) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return (h ^ (h >> 29)) * 0x9E3779B97F4A7C15u;
}

class TokenSet {
 public:
  explicit TokenSet(const StringList& tokens)
      : tokens_(tokens), slots_(std::bit_ceil(2 * tokens.size() + 2), kEmpty) {
    for (std::uint32_t id = 0; id < tokens.size(); ++id) {
      std::size_t at = slot(tokens[id], {});
      if (slots_[at] == kEmpty) slots_[at] = id;
    }
  }

  bool contains(std::string_view left, std::string_view right = {}) const noexcept {
    return slots_[slot(left, right)] != kEmpty;
  }

 private:
  /// The slot that holds left + right, or the free one where it would go. Never full: half empty.
  std::size_t slot(std::string_view left, std::string_view right) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash_of(left, right) >> 20) & mask;
    while (slots_[at] != kEmpty && !equal(tokens_[slots_[at]], left, right)) at = (at + 1) & mask;
    return at;
  }

  static bool equal(std::string_view token, std::string_view left,
                    std::string_view right) noexcept {
    return token.size() == left.size() + right.size() && token.starts_with(left) &&
           token.ends_with(right);
  }

  const StringList& tokens_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace

Result<void> check_merges(const VocabData& vocab) {
  const TokenSet known(vocab.tokens);
  for (std::size_t rank = 0; 2 * rank < vocab.merges.size(); ++rank) {
    const std::string_view left = vocab.merges[2 * rank], right = vocab.merges[2 * rank + 1];
    if (!known.contains(left) || !known.contains(right) || !known.contains(left, right)) {
      return fail(format_error("F34", fmt::format("vocab: merge {} names an unknown token", rank)));
    }
  }
  return {};
}

}  // namespace cyb
