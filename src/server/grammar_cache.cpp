#include "server/grammar_cache.hpp"

#include <algorithm>

#include "base/hash.hpp"

namespace cyb::server {

GrammarCache::Made GrammarCache::find_or_make(std::string_view key,
                                              const std::function<Made()>& make) {
  const std::string hash = hex(blake3(key));
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, hash, &Kept::key);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return found->grammar;
    }
  }
  auto made = make();
  if (!made) return made;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, hash, &Kept::key);
  if (found != kept_.end()) return found->grammar;  // somebody else was faster
  kept_.push_front({hash, *made});
  if (kept_.size() > kMost) kept_.pop_back();
  return made;
}

std::size_t GrammarCache::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace cyb::server
