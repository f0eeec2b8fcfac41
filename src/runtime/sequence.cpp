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

KvPool::KvPool(std::shared_ptr<Backend> backend, std::unique_ptr<KvStore> store,
               std::uint32_t roll_back)
    : backend_(std::move(backend)),
      store_(std::move(store)),
      pages_(store_->n_pages()),
      roll_back_(roll_back),
      page_tokens_(store_->layout().page_tokens) {
  if (store_->windowed_bytes() == 0) return;
  for (const KvLayerShape& layer : store_->layout().layers)
    window_ = std::max(window_, layer.window);
  windowed_refs_.resize(store_->n_pages());
}

std::uint32_t KvPool::first_windowed(std::uint64_t position) const noexcept {
  const std::uint64_t kept = std::uint64_t{window_} + roll_back_;
  if (window_ == 0 || position + 1 <= kept) return 0;
  return static_cast<std::uint32_t>((position + 1 - kept) / page_tokens_);
}

void KvPool::take_windowed(PageId page) noexcept {
  if (window_ == 0 || windowed_refs_[page]++ != 0) return;
  peak_windowed_ = std::max(peak_windowed_, ++live_windowed_);
}

void KvPool::drop_windowed(PageId page) noexcept {
  if (window_ == 0 || --windowed_refs_[page] != 0) return;
  --live_windowed_;
  store_->forget_windowed(page);
}

std::uint32_t KvPool::peak_windowed() const {
  const std::lock_guard lock(mutex_);
  return window_ == 0 ? peak_pages_ : peak_windowed_;
}

std::uint64_t KvPool::most_windowed(std::uint32_t n_sequences, std::uint32_t n_rows,
                                    std::uint64_t n_pages) const noexcept {
  if (window_ == 0) return n_pages;
  // One page more where the first and the last key lie inside a page.
  const std::uint64_t each = pages_for(std::size_t{window_} + roll_back_, page_tokens_) + 1;
  const std::uint64_t all = n_sequences * each + pages_for(n_rows, page_tokens_);
  return std::min(all, n_pages);
}

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
      sets_(std::move(other.sets_)),
      first_windowed_(std::exchange(other.first_windowed_, 0)) {
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
  std::swap(first_windowed_, other.first_windowed_);
  return *this;
}

Sequence::~Sequence() {
  release_from(0);
}

void Sequence::release_from(std::size_t n_kept) noexcept {
  if (pages_.size() <= n_kept) return;
  const std::lock_guard lock(pool_->mutex_);
  // Last first: the pool lends the page freed last, so a page table stays in ascending order.
  for (std::size_t i = pages_.size(); i > n_kept; --i) {
    if (i > first_windowed_) pool_->drop_windowed(pages_[i - 1]);
    pool_->pages_.release(pages_[i - 1]);
  }
  pages_.resize(n_kept);
  if (n_kept == 0) first_windowed_ = 0;
}

void Sequence::forget_before(std::uint64_t position) noexcept {
  const std::uint32_t first = pool_->first_windowed(position);
  if (first <= first_windowed_) return;
  const std::lock_guard lock(pool_->mutex_);
  for (; first_windowed_ < first; ++first_windowed_) pool_->drop_windowed(pages_[first_windowed_]);
}

std::uint32_t Sequence::resumable(std::uint32_t position) const noexcept {
  if (first_windowed_ == 0) return position;
  const std::uint64_t end = std::uint64_t{position} + 1;
  const std::uint64_t first_key = end > pool_->window_ ? end - pool_->window_ : 0;
  return first_key / pool_->page_tokens() >= first_windowed_ ? position : 0;
}

void Sequence::truncate(std::uint32_t position) noexcept {
  if (position < tokens_.size()) position = resumable(position);
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
  copy.first_windowed_ = first_windowed_;
  for (std::size_t i = 0; i < n_pages; ++i) {
    pool_->pages_.retain(pages_[i]);
    if (i >= first_windowed_) pool_->take_windowed(pages_[i]);
    copy.pages_.push_back(pages_[i]);
  }
  return copy;
}

Result<void> Sequence::adopt(std::span<const std::int32_t> ids) {
  truncate(0);
  if (ids.size() > limit_tokens_) return fail(context_overflow(ids.size(), limit_tokens_));
  // They may have been saved up to a page further on: what was given back there is not here.
  first_windowed_ = pool_->first_windowed(ids.size() + pool_->page_tokens() - 1);
  if (auto room = reserve(static_cast<std::uint32_t>(ids.size())); !room) {
    first_windowed_ = 0;
    return room;
  }
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
    if (writable.copy) pool_->take_windowed(writable.page);
  }
  const PageId from = std::exchange(page, writable.page);
  if (!writable.copy) return {};
  auto copied = pool_->store().copy_page(from, writable.page);
  const std::lock_guard lock(pool_->mutex_);
  pool_->drop_windowed(from);
  return copied;
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
  for (std::size_t i = have; i < need; ++i) {
    pages_.push_back(*pool_->pages_.alloc());
    if (i >= first_windowed_) pool_->take_windowed(pages_.back());
  }
  pool_->note_peak();
  return {};
}

void Sequence::commit(std::span<const std::int32_t> ids, std::optional<std::uint32_t> set) {
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  forget_before(tokens_.size());
  if (!set) return;
  if (sets_.capacity() == 0) sets_.reserve(limit_tokens_);
  sets_.insert(sets_.end(), ids.size(), *set);
}

}  // namespace cyb
