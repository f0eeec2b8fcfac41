// The far backend: the reference's bits over memory that the host cannot read, and the proof that
// it cannot.
#include <gtest/gtest.h>

#include <thread>

#include "backends/reference/reference_backend.hpp"
#include "backends/tiny_layers.hpp"
#include "support/far_backend.hpp"

namespace cyb::test {
namespace {

const std::vector<std::int32_t> kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

TEST(FarBackend, GivesTheBitsOfTheReference) {
  const TinyLayers model;
  TinyRunner reference(create_reference_backend({}).value(), model);
  TinyRunner far(make_far_backend().value(), model);
  const auto want = reference.run({{0, 0, kPrompt}});
  EXPECT_EQ(far.run({{0, 0, kPrompt}}), want);
  EXPECT_EQ(far.run_plain({1, 0, kPrompt}), want);
}

TEST(FarBackend, ParametersMayChangeAfterSubmit) {
  const TinyLayers model;
  TinyRunner far(make_far_backend().value(), model);
  const auto want = far.run({{0, 0, kPrompt}});
  std::vector<std::int32_t> ids = kPrompt, positions, rows;
  std::vector<std::uint32_t> pages = far.pages(1);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(ids.size()); ++i) {
    positions.push_back(i);
    rows.push_back(i);
  }
  SequenceSpan span{0, static_cast<std::uint32_t>(ids.size()), 0, pages};
  ASSERT_TRUE(far.executable().submit({ids, positions, rows, std::span(&span, 1), &far.kv()}));
  std::fill(ids.begin(), ids.end(), 0);
  std::fill(positions.begin(), positions.end(), 99);
  std::fill(pages.begin(), pages.end(), 0u);
  span = {};
  ASSERT_TRUE(far.executable().sync());
  const auto got = far.executable().output(0).value();
  EXPECT_EQ(std::vector<float>(got.begin(), got.end()), want);
}

TEST(FarBackend, WeightsAreCopiesOfTheirSource) {
  const auto backend = make_far_backend().value();
  const std::vector<float> values(64, 1.0F);
  const auto weight = backend->load_weight(
      {"w", DType::kF32, Shape{2, 32}, std::as_bytes(std::span(values))}, WeightUse::kMatmul, {});
  EXPECT_EQ((*weight)->own_bytes(), 256u);
}

TEST(FarMemory, FreedBlocksComeBackZeroed) {
  const auto memory = make_far_memory().value();
  std::byte* first = nullptr;
  {
    const auto block = memory->allocate(5000, "test").value();
    first = block->data();
    memory->execute([&] { block->data()[4999] = std::byte{7}; });
  }
  const auto block = memory->allocate(8000, "test").value();
  EXPECT_EQ(block->data(), first);
  std::byte seen{1};
  memory->execute([&] { seen = block->data()[4999]; });
  EXPECT_EQ(seen, std::byte{0});
}

TEST(FarMemory, WorkRunsOnAnotherThread) {
  const auto memory = make_far_memory().value();
  std::thread::id worker;
  memory->execute([&] { worker = std::this_thread::get_id(); });
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST(FarMemoryDeathTest, AHostThatReadsDies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto memory = make_far_memory().value();
  const auto block = memory->allocate(64, "test").value();
  memory->execute([&] { block->data()[0] = std::byte{1}; });
  volatile std::byte* data = block->data();
  EXPECT_DEATH({ [[maybe_unused]] const auto value = data[0]; }, "");
}

}  // namespace
}  // namespace cyb::test
