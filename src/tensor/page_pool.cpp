// PagePool: a stack of freed ids over a high-water mark; no allocation after construction.
#include "tensor/page_pool.hpp"

namespace cyb {

PagePool::PagePool(std::uint32_t capacity) : references_(capacity, 0) {
  free_.reserve(capacity);
}

std::optional<PageId> PagePool::alloc() noexcept {
  PageId page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else if (next_ < capacity()) {
    page = next_++;
  } else {
    return std::nullopt;
  }
  references_[page] = 1;
  ++used_;
  return page;
}

bool PagePool::release(PageId page) noexcept {
  if (--references_[page] != 0) return false;
  free_.push_back(page);
  --used_;
  return true;
}

std::optional<PagePool::Writable> PagePool::make_writable(PageId page) noexcept {
  if (!shared(page)) return Writable{page, false};
  const std::optional<PageId> fresh = alloc();
  if (!fresh) return std::nullopt;
  release(page);
  return Writable{*fresh, true};
}

}  // namespace cyb
