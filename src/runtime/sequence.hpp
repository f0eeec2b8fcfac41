// Sequence: tokens whose K and V are in the cache, with their page table. KvPool: the pages of one
// engine, reference-counted. A sequence changes only in Engine::step (after a run succeeded) and in
// truncate(); pages shared by a fork are copied before they are written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "tensor/page_pool.hpp"

namespace cyb {

/// KV pages of one engine. Thread-safe; the store's bytes are touched by one run at a time only.
/// Where layers have a window, their part of a page is given back as soon as no sequence that holds
/// the page can see a key of it again.
class KvPool {
 public:
  /// `roll_back`: positions that a sequence may go back by and still find the keys of its windows.
  KvPool(std::shared_ptr<Backend> backend, std::unique_ptr<KvStore> store,
         std::uint32_t roll_back = 64);

  KvStore& store() noexcept { return *store_; }
  const KvStore& store() const noexcept { return *store_; }
  std::uint32_t page_tokens() const noexcept { return page_tokens_; }
  std::uint64_t page_bytes() const noexcept { return store_->page_bytes(); }
  std::uint32_t n_pages() const noexcept { return store_->n_pages(); }
  std::uint32_t free_pages() const;
  /// Most pages that were in use at a time.
  std::uint32_t peak_pages() const;
  /// The same of the parts that layers with a window use.
  std::uint32_t peak_windowed() const;
  /// Pages of `n_pages` whose windowed part `n_sequences` sequences hold at most, where one run has
  /// up to `n_rows` rows; all of them without windows.
  std::uint64_t most_windowed(std::uint32_t n_sequences, std::uint32_t n_rows,
                              std::uint64_t n_pages) const noexcept;
  /// Bytes of so many pages, of which so many hold their windowed part.
  std::uint64_t bytes_of(std::uint64_t pages, std::uint64_t windowed) const noexcept {
    const std::uint64_t part = store_->windowed_bytes();
    return pages * (page_bytes() - part) + windowed * part;
  }

 private:
  friend class Sequence;
  mutable std::mutex mutex_;
  std::shared_ptr<Backend> backend_;  // outlives the store
  std::unique_ptr<KvStore> store_;
  void note_peak() noexcept { peak_pages_ = std::max(peak_pages_, pages_.used_count()); }
  PagePool pages_;
  std::uint32_t peak_pages_ = 0;
  /// First page of a sequence at `position` whose windowed part may be seen again.
  std::uint32_t first_windowed(std::uint64_t position) const noexcept;
  // With the lock held: one more, one less sequence that may look at the page's windowed part.
  void take_windowed(PageId page) noexcept;
  void drop_windowed(PageId page) noexcept;
  std::uint32_t window_ = 0;  // the widest; 0: the store forgets nothing
  std::uint32_t roll_back_ = 0;
  std::vector<std::uint32_t> windowed_refs_;  // per page; empty without windows
  std::uint32_t live_windowed_ = 0, peak_windowed_ = 0;
  std::uint32_t page_tokens_;
};

/// One thread at a time. Move-only; gives its pages back when destroyed.
class Sequence {
 public:
  /// `limit_tokens`: positions it may ever hold; its tables are reserved for them at once.
  Sequence(std::shared_ptr<KvPool> pool, std::uint32_t limit_tokens);
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;
  ~Sequence();

  std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
  std::uint32_t position() const noexcept { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t limit_tokens() const noexcept { return limit_tokens_; }
  std::span<const PageId> pages() const noexcept { return pages_; }
  /// Rope frequency set of each token (LengthRule::set_of); empty where the model has one set.
  std::span<const std::uint32_t> frequency_sets() const noexcept { return sets_; }
  /// The longest part of the first `position` tokens that it can go on from: all of them, or none
  /// where the windows of the next token reach back to keys that were given back.
  std::uint32_t resumable(std::uint32_t position) const noexcept;
  /// Pages before this one have no keys any more in layers with a window.
  std::uint32_t first_windowed_page() const noexcept { return first_windowed_; }
  /// Forgets the tokens from `position` on (no-op at or past the end) and returns pages no longer
  /// needed. Where it could not go on from there (resumable()), everything is forgotten.
  void truncate(std::uint32_t position) noexcept;
  /// A sequence of the same tokens that shares all pages.
  Sequence fork() const;
  /// Holds exactly `ids` on pages of its own, whose K and V the caller writes to pool().store()
  /// before anything runs. Errors: ContextOverflow, OutOfMemory{"kv cache"}; then it is empty.
  Result<void> adopt(std::span<const std::int32_t> ids);
  KvPool& pool() const noexcept { return *pool_; }

 private:
  friend class Engine;
  /// Makes room for `n_new` tokens after the position; on error nothing has changed. Errors:
  /// ContextOverflow, OutOfMemory{"kv cache"}.
  Result<void> reserve(std::uint32_t n_new);
  /// Returns the pages past the position (after a run that failed).
  void trim() noexcept { truncate(position()); }
  /// `set`: the frequency set that they were rotated with; nullopt: the model has one.
  void commit(std::span<const std::int32_t> ids, std::optional<std::uint32_t> set = {});
  /// Copies the page that the next token falls into, if a fork shares it.
  Result<void> unshare_last();
  void release_from(std::size_t n_kept) noexcept;
  /// Gives back what layers with a window no longer need at this position.
  void forget_before(std::uint64_t position) noexcept;

  std::shared_ptr<KvPool> pool_;
  std::uint32_t limit_tokens_ = 0;
  std::vector<std::int32_t> tokens_;
  std::vector<PageId> pages_;
  std::vector<std::uint32_t> sets_;
  std::uint32_t first_windowed_ = 0;
};

enum class LogitRows : std::uint8_t { kNone, kLast, kAll };

/// What one sequence does in a joint run.
struct SequenceStep {
  Sequence* sequence = nullptr;
  std::span<const std::int32_t> ids;  // n >= 1 new tokens
  LogitRows rows = LogitRows::kLast;
  std::uint32_t length =
      0;  // T where more tokens of the same text follow; 0: up to the last of ids
};

}  // namespace cyb
