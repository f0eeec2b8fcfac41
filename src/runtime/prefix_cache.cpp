// Keys only narrow the search: what is shared is what compares equal.
#include "runtime/prefix_cache.hpp"

#include <algorithm>
#include <utility>

#include "runtime/answer_run.hpp"
#include "runtime/sampling.hpp"

namespace cyb {
namespace {

/// splitmix64's finaliser (Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

PrefixCache::PrefixCache(const Engine& engine, std::uint32_t max_entries)
    : engine_(engine),
      max_entries_(max_entries),
      page_tokens_(engine.kv_pool().page_tokens()),
      secret_(system_seed()) {}

std::vector<std::uint64_t> PrefixCache::keys_of(std::string_view tenant,
                                                std::span<const std::int32_t> ids) const {
  std::uint64_t key = mixed(secret_ ^ tenant.size());
  for (const char c : tenant) key = mixed(key ^ static_cast<std::uint8_t>(c));
  std::vector<std::uint64_t> keys;
  keys.reserve(ids.size() / page_tokens_);
  for (std::size_t at = 0; at + page_tokens_ <= ids.size(); at += page_tokens_) {
    for (const std::int32_t id : ids.subspan(at, page_tokens_)) {
      key = mixed(key ^ static_cast<std::uint32_t>(id));
    }
    keys.push_back(key);
  }
  return keys;
}

PrefixCache::Entries::iterator PrefixCache::longest(std::string_view tenant,
                                                    std::span<const std::int32_t> ids,
                                                    std::span<const std::uint64_t> keys) {
  auto best = entries_.end();
  std::size_t most = 0;
  for (std::size_t n = keys.size(); n > 0 && best == entries_.end(); --n) {
    const auto found = by_key_.find(keys[n - 1]);
    if (found == by_key_.end()) continue;
    for (const Entries::iterator entry : found->second) {
      if (entry->tenant != tenant) continue;
      const auto held = entry->sequence.tokens();
      const auto differ = std::ranges::mismatch(held, ids);
      const auto n_same = static_cast<std::size_t>(differ.in2 - ids.begin());
      if (n_same < n * page_tokens_ || n_same <= most) continue;
      most = n_same;
      best = entry;
    }
  }
  return best;
}

std::optional<Sequence> PrefixCache::find(std::string_view tenant,
                                          std::span<const std::int32_t> ids) {
  if (entries_.empty() || ids.empty()) return std::nullopt;
  const auto entry = longest(tenant, ids, keys_of(tenant, ids));
  if (entry == entries_.end()) return std::nullopt;
  const std::uint32_t n = reusable_tokens(engine_, entry->sequence, ids, ids.size() - 1);
  if (n < page_tokens_) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, entry);
  Sequence out = entry->sequence.fork();
  out.truncate(n);
  return out;
}

void PrefixCache::insert(std::string_view tenant, const Sequence& sequence) {
  if (max_entries_ == 0 || sequence.position() < page_tokens_) return;
  const auto ids = sequence.tokens();
  std::vector<std::uint64_t> keys = keys_of(tenant, ids);
  while (true) {
    const auto near = longest(tenant, ids, keys);
    if (near == entries_.end()) break;
    const auto held = near->sequence.tokens();
    const auto differ = std::ranges::mismatch(held, ids);
    if (differ.in2 == ids.end()) {  // it holds all of it already
      entries_.splice(entries_.begin(), entries_, near);
      return;
    }
    if (differ.in1 != held.end()) break;
    remove(near);
  }
  while (entries_.size() >= max_entries_) evict_one();
  entries_.push_front({std::string(tenant), sequence.fork(), std::move(keys)});
  for (const std::uint64_t key : entries_.front().keys) by_key_[key].push_back(entries_.begin());
}

void PrefixCache::remove(Entries::iterator entry) {
  for (const std::uint64_t key : entry->keys) {
    const auto found = by_key_.find(key);
    std::erase(found->second, entry);
    if (found->second.empty()) by_key_.erase(found);
  }
  entries_.erase(entry);
}

bool PrefixCache::evict_one() {
  if (entries_.empty()) return false;
  remove(std::prev(entries_.end()));
  return true;
}

}  // namespace cyb
