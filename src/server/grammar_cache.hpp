// GrammarCache: compiled grammars by their texts, the latest ones: clients send the same schema
// with every request, and the masks that a grammar has learnt stay with it.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "text/grammar/grammar.hpp"

namespace cyb::server {

/// Thread-safe.
class GrammarCache {
 public:
  using Made = Result<std::shared_ptr<const Grammar>>;
  static constexpr std::size_t kMost = 64;  // grammars

  /// The grammar of `key`, which says all that `make` depends on; made outside of the lock, by the
  /// thread that asks. Errors: those of `make`, which are not kept.
  Made find_or_make(std::string_view key, const std::function<Made()>& make);
  std::size_t size() const;

 private:
  struct Kept {
    std::string key;  // a hash
    std::shared_ptr<const Grammar> grammar;
  };
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // the latest first
};

}  // namespace cyb::server
