// Building of the merge table; the joined text of each rule must be a token.
#include "text/tokenizers/merge_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "text/tokenizers/hashing.hpp"

namespace cyb::text {

Result<MergeTable> MergeTable::build(const Vocabulary& vocabulary,
                                     std::span<const MergePair> merges, std::size_t prefix) {
  MergeTable table;
  const std::uint32_t top_id = static_cast<std::uint32_t>(std::max(vocabulary.size(), 2) - 1);
  table.id_bits_ = static_cast<unsigned>(std::bit_width(top_id));
  table.rank_bits_ = 64 - 2 * table.id_bits_;
  if (table.rank_bits_ > 32) table.rank_bits_ = 32;
  table.rank_mask_ = (1ULL << table.rank_bits_) - 1;
  // The largest rank stays unused, so that no slot equals kEmpty and no rank equals kNone.
  if (merges.size() >= table.rank_mask_) {
    return fail(Error(ErrorKind::kFormat, "F34",
                      fmt::format("vocab: {} merges are too many for {} tokens", merges.size(),
                                  vocabulary.size())));
  }
  const std::size_t n_slots = table_slots(merges.size());
  table.slots_.assign(n_slots, kEmpty);
  table.mask_ = n_slots - 1;
  table.shift_ = 64 - static_cast<unsigned>(std::countr_zero(n_slots));
  table.merged_.reserve(merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    joined.clear();
    if (vocabulary.contains(left) && vocabulary.contains(right)) {
      const std::string_view more = vocabulary.text(right);
      joined.append(vocabulary.text(left)).append(more.substr(std::min(prefix, more.size())));
    }
    const std::int32_t id = joined.empty() ? -1 : vocabulary.find(joined);
    if (id < 0) {
      return fail(Error(ErrorKind::kFormat, "F34",
                        fmt::format("vocab: merge {} names an unknown token", rank)));
    }
    table.merged_.push_back(id);
    const std::uint64_t key = table.key_of(left, right);
    std::size_t at = table.slot_of(key);
    std::size_t probe = 0;
    while (table.slots_[at] != kEmpty && table.slots_[at] >> table.rank_bits_ != key) {
      if (++probe > kMaxProbes) {
        return fail(Error(ErrorKind::kFormat, "F34", "vocab: merges collide in the hash table"));
      }
      at = (at + 1) & table.mask_;
    }
    if (table.slots_[at] == kEmpty) table.slots_[at] = key << table.rank_bits_ | rank;
  }
  return table;
}

}  // namespace cyb::text
