// Sequence and KvPool: page tables with copy on write.
#include "runtime/sequence.hpp"

#include <algorithm>
#include <utility>

namespace cyb {
namespace {

std::size_t pages_for(std::size_t n_tokens, std::uint32_t page_tokens) noexcept {
  return (n_tokens + page_tokens - 1) / page_tokens;
}

}  // namespace

KvPool::KvPool(std::shared_ptr<Backend> backend, std::unique_ptr<KvStore> store)
    : backend_(std::move(backend)),
      store_(std::move(store)),
      pages_(store_->n_pages()),
      page_tokens_(store_->layout().page_tokens) {}

std::uint32_t KvPool::free_pages() const {
  const std::lock_guard lock(mutex_);
  return pages_.free_count();
}

std::uint32_t KvPool::peak_pages() const {
  const std::lock_guard lock(mutex_);
  return peak_pages_;
}

Sequence::Sequence(std::shared_ptr<KvPool> pool, std::uint32_t limit_tokens)
    : pool_(std::move(pool)), limit_tokens_(limit_tokens) {
  tokens_.reserve(limit_tokens);
  pages_.reserve(pages_for(limit_tokens, pool_->page_tokens()));
}

Sequence::Sequence(Sequence&& other) noexcept
    : pool_(std::move(other.pool_)),
      limit_tokens_(std::exchange(other.limit_tokens_, 0)),
      tokens_(std::move(other.tokens_)),
      pages_(std::move(other.pages_)),
      sets_(std::move(other.sets_)) {
  other.tokens_.clear();
  other.sets_.clear();
  other.pages_.clear();
}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(limit_tokens_, other.limit_tokens_);
  std::swap(tokens_, other.tokens_);
  std::swap(pages_, other.pages_);
  std::swap(sets_, other.sets_);
  return *this;
}

Sequence::~Sequence() {
  release_from(0);
}

void Sequence::release_from(std::size_t n_kept) noexcept {
  if (pages_.size() <= n_kept) return;
  const std::lock_guard lock(pool_->mutex_);
  // Last first: the pool lends the page freed last, so a page table stays in ascending order.
  for (std::size_t i = pages_.size(); i > n_kept; --i) pool_->pages_.release(pages_[i - 1]);
  pages_.resize(n_kept);
}

void Sequence::truncate(std::uint32_t position) noexcept {
  if (position < tokens_.size()) tokens_.resize(position);
  if (position < sets_.size()) sets_.resize(position);
  if (pool_ != nullptr) release_from(pages_for(tokens_.size(), pool_->page_tokens()));
}

Sequence Sequence::fork() const {
  Sequence copy(pool_, limit_tokens_);
  copy.tokens_.assign(tokens_.begin(), tokens_.end());
  copy.sets_.assign(sets_.begin(), sets_.end());
  const std::lock_guard lock(pool_->mutex_);
  const std::size_t n_pages = pages_for(tokens_.size(), pool_->page_tokens());
  for (std::size_t i = 0; i < n_pages; ++i) {
    pool_->pages_.retain(pages_[i]);
    copy.pages_.push_back(pages_[i]);
  }
  return copy;
}

Result<void> Sequence::adopt(std::span<const std::int32_t> ids) {
  truncate(0);
  if (ids.size() > limit_tokens_) return fail(context_overflow(ids.size(), limit_tokens_));
  CYB_TRY(reserve(static_cast<std::uint32_t>(ids.size())));
  commit(ids, std::nullopt);  // sessions with frequency sets are not saved
  return {};
}

Result<void> Sequence::unshare_last() {
  if (tokens_.size() % pool_->page_tokens() == 0) return {};
  PageId& page = pages_[tokens_.size() / pool_->page_tokens()];
  PagePool::Writable writable{};
  {
    const std::lock_guard lock(pool_->mutex_);
    if (!pool_->pages_.shared(page)) return {};
    const auto got = pool_->pages_.make_writable(page);
    if (!got) return fail(out_of_memory("kv cache", pool_->page_bytes(), 0));
    writable = *got;
    pool_->note_peak();
  }
  const PageId from = std::exchange(page, writable.page);
  if (!writable.copy) return {};
  return pool_->store().copy_page(from, writable.page);
}

Result<void> Sequence::reserve(std::uint32_t n_new) {
  const std::uint64_t end = std::uint64_t{position()} + n_new;
  if (end > limit_tokens_) return fail(context_overflow(end, limit_tokens_));
  CYB_TRY(unshare_last());
  const std::size_t have = pages_.size(), need = pages_for(end, pool_->page_tokens());
  if (need <= have) return {};
  const std::lock_guard lock(pool_->mutex_);
  if (need - have > pool_->pages_.free_count()) {
    const std::uint64_t bytes = pool_->page_bytes();
    return fail(out_of_memory("kv cache", (need - have) * bytes,
                              std::uint64_t{pool_->pages_.free_count()} * bytes));
  }
  for (std::size_t i = have; i < need; ++i) pages_.push_back(*pool_->pages_.alloc());
  pool_->note_peak();
  return {};
}

void Sequence::commit(std::span<const std::int32_t> ids, std::optional<std::uint32_t> set) {
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  if (!set) return;
  if (sets_.capacity() == 0) sets_.reserve(limit_tokens_);
  sets_.insert(sets_.end(), ids.size(), *set);
}

}  // namespace cyb
