// MergeTable: (left id, right id) -> rank and merged id, 8 bytes a slot: the key pair and the rank
// in one word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "text/vocabulary.hpp"

namespace cyb::text {

class MergeTable {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  /// Rank r = place in `merges`; of equal pairs the first counts. Errors: F34 if a joined text is
  /// no token.
  /// `prefix`: bytes of the mark of a continued word, which the right text loses where it joins.
  static Result<MergeTable> build(const Vocabulary& vocabulary, std::span<const MergePair> merges,
                                  std::size_t prefix = 0);

  /// Rank of the rule for two adjacent tokens, or kNone.
  std::uint32_t rank(std::int32_t left, std::int32_t right) const noexcept {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const std::uint64_t slot = slots_[at];
      if (slot == kEmpty) return kNone;
      if (slot >> rank_bits_ == key) return static_cast<std::uint32_t>(slot & rank_mask_);
    }
  }
  std::int32_t merged(std::uint32_t rank) const noexcept { return merged_[rank]; }
  std::size_t size() const noexcept { return merged_.size(); }

 private:
  static constexpr std::uint64_t kEmpty = ~0ULL;

  std::uint64_t key_of(std::int32_t left, std::int32_t right) const noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << id_bits_ |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift_);
  }

  unsigned id_bits_ = 1, rank_bits_ = 1, shift_ = 60;
  std::uint64_t rank_mask_ = 1;
  std::size_t mask_ = 0;
  std::vector<std::uint64_t> slots_;
  std::vector<std::int32_t> merged_;
};

}  // namespace cyb::text
