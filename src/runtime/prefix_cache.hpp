// PrefixCache: sequences that are kept after use, so that a prompt which begins as one of them
// starts from its KV pages. Each tenant finds its own only; a hit is compared token by token.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/engine.hpp"
#include "runtime/sequence.hpp"

namespace cyb {

/// One thread at a time.
class PrefixCache {
 public:
  /// At most `max_entries` sequences; 0: nothing is kept.
  PrefixCache(const Engine& engine, std::uint32_t max_entries);

  /// A sequence that holds the longest prefix of `ids` that is kept for `tenant`, at most all but
  /// the last; nullopt where less than a page of it is.
  std::optional<Sequence> find(std::string_view tenant, std::span<const std::int32_t> ids);
  /// Keeps a fork of `sequence`. One that is a prefix of it makes room; one that begins with it
  /// stays in its place.
  void insert(std::string_view tenant, const Sequence& sequence);
  /// Gives back the pages of the one that was not used for longest. False: there is none.
  bool evict_one();
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::string tenant;
    Sequence sequence;
    std::vector<std::uint64_t> keys;  // of each whole page of tokens, chained
  };
  using Entries = std::list<Entry>;  // the one that was used last is in front

  std::vector<std::uint64_t> keys_of(std::string_view tenant,
                                     std::span<const std::int32_t> ids) const;
  Entries::iterator longest(std::string_view tenant, std::span<const std::int32_t> ids,
                            std::span<const std::uint64_t> keys);
  void remove(Entries::iterator entry);

  const Engine& engine_;
  std::uint32_t max_entries_, page_tokens_;
  std::uint64_t secret_;  // nobody can choose texts whose keys meet
  Entries entries_;
  std::unordered_map<std::uint64_t, std::vector<Entries::iterator>> by_key_;
};

}  // namespace cyb
