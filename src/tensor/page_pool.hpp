// PagePool: reference-counted page ids 0..capacity-1; ids only, the memory belongs to whoever
// indexes it. A page with one reference may be written; a shared page is copied first
// (make_writable). One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cyb {

using PageId = std::uint32_t;

class PagePool {
 public:
  explicit PagePool(std::uint32_t capacity);

  /// A free page with one reference, the lowest id that was never used or else the one freed last;
  /// nullopt: none left.
  std::optional<PageId> alloc() noexcept;
  /// `page` must be in use.
  void retain(PageId page) noexcept { ++references_[page]; }
  /// Drops one reference; true if that freed the page (its bytes must not be shown to another
  /// owner).
  bool release(PageId page) noexcept;

  struct Writable {
    PageId page;
    bool copy;  // the caller must copy the old page's bytes to `page`
  };
  /// The page to write in place of `page`, which the caller holds one reference to: itself when not
  /// shared, else a new one that takes over the caller's reference. nullopt: none left, nothing
  /// changed.
  std::optional<Writable> make_writable(PageId page) noexcept;

  std::uint32_t references(PageId page) const noexcept { return references_[page]; }
  bool shared(PageId page) const noexcept { return references_[page] > 1; }
  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t free_count() const noexcept { return capacity() - used_; }
  std::uint32_t used_count() const noexcept { return used_; }

 private:
  std::vector<std::uint32_t> references_;
  std::vector<PageId> free_;  // a stack; capacity reserved once
  std::uint32_t next_ = 0;    // pages from here on were never used
  std::uint32_t used_ = 0;
};

}  // namespace cyb
