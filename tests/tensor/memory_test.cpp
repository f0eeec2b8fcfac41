// Buffer, FrameAllocator and PagePool: ownership, alignment, budgets, reference counts.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>

#include "support/alloc_count.hpp"
#include "tensor/buffer.hpp"
#include "tensor/frame_allocator.hpp"
#include "tensor/page_pool.hpp"

namespace cyb {
namespace {

bool aligned(const void* p, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(p) % to == 0;
}

TEST(Buffer, AlignedZeroedMovable) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{3} << 20}) {
    auto made = Buffer::allocate(size);
    ASSERT_TRUE(made);
    Buffer a = std::move(*made);
    EXPECT_EQ(a.size(), size);
    EXPECT_TRUE(aligned(a.data(), Buffer::kAlignment));
    for (const std::byte b : a.bytes()) ASSERT_EQ(b, std::byte{0});
    a.bytes().back() = std::byte{7};
    const std::byte* at = a.data();
    Buffer b = std::move(a);
    EXPECT_EQ(b.data(), at);
    EXPECT_EQ(a.data(), nullptr);
    EXPECT_EQ(b.bytes().back(), std::byte{7});
  }
  EXPECT_EQ(Buffer::allocate(0)->size(), 0u);
}

TEST(Buffer, TooMuchIsOutOfMemory) {
  const auto made = Buffer::allocate(std::uint64_t{1} << 62, "kv");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::kOutOfMemory);
  EXPECT_TRUE(made.error().text().starts_with("kv: out of memory: need 4611686018427387904 bytes"));
  EXPECT_FALSE(Buffer::allocate(UINT64_MAX));
}

TEST(FrameAllocator, SteadyStateAllocatesNothing) {
  FrameAllocator frame;
  const auto step = [&] {
    frame.reset();
    std::set<const std::byte*> seen;
    bool ok = true;
    for (const std::uint64_t size : {100, 128, 100, 5000, 1}) {
      const auto block = frame.alloc(size, FrameUsage::kActivation);
      ok = ok && block && block->size() == size && aligned(block->data(), 64);
    }
    return ok;
  };
  EXPECT_TRUE(step());
  const std::uint64_t pooled = frame.pooled_bytes();
  test::AllocationCount count;
  for (int i = 0; i < 10; ++i) {
    frame.reset();
    for (const std::uint64_t size : {100, 128, 100, 5000, 1}) {
      ASSERT_TRUE(frame.alloc(size, FrameUsage::kActivation));
    }
  }
  EXPECT_EQ(count.news(), 0u);
  EXPECT_EQ(frame.pooled_bytes(), pooled);
  EXPECT_EQ(frame.lent_bytes(), 128u + 128 + 128 + 5056 + 64);
  EXPECT_EQ(frame.peak_bytes(), frame.lent_bytes());
}

TEST(FrameAllocator, BlocksOfOneStepAreDisjoint) {
  FrameAllocator frame(0, 256);
  const auto a = frame.alloc(300, FrameUsage::kScratch);
  const auto b = frame.alloc(300, FrameUsage::kScratch);
  const auto c = frame.alloc(300, FrameUsage::kOutput);
  ASSERT_TRUE(a && b && c);
  EXPECT_TRUE(aligned(a->data(), 256));
  EXPECT_TRUE(aligned(b->data(), 256));
  EXPECT_NE(a->data(), b->data());
  EXPECT_NE(b->data(), c->data());
  const std::byte* first = a->data();
  frame.reset();
  EXPECT_EQ(frame.alloc(299, FrameUsage::kScratch)->data(), first);
}

TEST(FrameAllocator, BudgetIsAnErrorThatChangesNothing) {
  FrameAllocator frame(1024);
  ASSERT_TRUE(frame.alloc(1000, FrameUsage::kActivation));
  const auto more = frame.alloc(64, FrameUsage::kActivation);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind(), ErrorKind::kOutOfMemory);
  EXPECT_EQ(frame.lent_bytes(), 1024u);
  EXPECT_FALSE(frame.alloc(UINT64_MAX, FrameUsage::kActivation));
  frame.reset();
  EXPECT_TRUE(frame.alloc(1000, FrameUsage::kActivation));
}

TEST(PagePool, CountsReferences) {
  PagePool pool(3);
  const auto a = pool.alloc(), b = pool.alloc(), c = pool.alloc();
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ((std::set<PageId>{*a, *b, *c}), (std::set<PageId>{0, 1, 2}));
  EXPECT_FALSE(pool.alloc());
  pool.retain(*b);
  EXPECT_TRUE(pool.shared(*b));
  EXPECT_FALSE(pool.release(*b));
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_TRUE(pool.release(*b));
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(pool.alloc(), *b);
}

TEST(PagePool, CopyOnWrite) {
  PagePool pool(2);
  const PageId page = *pool.alloc();
  auto own = pool.make_writable(page);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->page, page);
  EXPECT_FALSE(own->copy);
  pool.retain(page);
  auto fresh = pool.make_writable(page);
  ASSERT_TRUE(fresh);
  EXPECT_NE(fresh->page, page);
  EXPECT_TRUE(fresh->copy);
  EXPECT_EQ(pool.references(page), 1u);
  EXPECT_EQ(pool.references(fresh->page), 1u);
  pool.retain(page);
  EXPECT_FALSE(pool.make_writable(page));  // full: nothing changed
  EXPECT_EQ(pool.references(page), 2u);
}

TEST(PagePool, NoHeapAfterConstruction) {
  PagePool pool(1000);
  test::AllocationCount count;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE(pool.alloc());
    for (std::uint32_t i = 0; i < 1000; ++i) pool.release(i);
  }
  EXPECT_EQ(count.news(), 0u);
  EXPECT_EQ(pool.free_count(), 1000u);
}

}  // namespace
}  // namespace cyb
