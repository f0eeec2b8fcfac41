// Layers with a window give back the K and V that no query sees again: the bits are those of a
// cache that keeps everything, whatever is rolled back, forked, saved or cut into chunks (case
// N07).
#include <gtest/gtest.h>

#include <tuple>

#include "runtime/session_file.hpp"
#include "support/engine_support.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"

namespace cyb::test {
namespace {

constexpr std::uint32_t kContext = 128;  // of the tiny models; their windows are 8 wide

EngineOptions ring_options(DType kv, bool rings, std::uint32_t chunk) {
  EngineOptions options;
  options.backend = "cpu";
  options.path = "curated";
  options.isa = regime_isa();
  options.n_threads = regime_threads();
  options.kv_dtype = kv;
  options.rings = rings;
  options.chunk_tokens = chunk;
  options.max_outputs = chunk;
  return options;
}

using Rows = std::vector<float>;

/// Logits of every row of `ids`, appended in runs of `chunk`.
Rows run(Engine& engine, Sequence& sequence, std::span<const std::int32_t> ids, std::size_t chunk) {
  Rows out;
  while (!ids.empty()) {
    const SequenceStep step{&sequence, ids.first(std::min(chunk, ids.size())), LogitRows::kAll};
    const auto done = engine.step({&step, 1}, [&](std::size_t, std::span<const float> rows) {
      out.insert(out.end(), rows.begin(), rows.end());
    });
    if (!done) throw std::runtime_error(done.error().text());
    ids = ids.subspan(step.ids.size());
  }
  return out;
}

class WindowRings : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  std::shared_ptr<Engine> engine(bool rings, std::uint32_t chunk = 64) const {
    const auto& [name, kv] = GetParam();
    return tiny_engine(name, ring_options(kv, rings, chunk));
  }
  /// What a cache that keeps everything computes.
  Rows whole(std::span<const std::int32_t> ids) const {
    const auto plain = engine(false);
    Sequence sequence = plain->new_sequence();
    return run(*plain, sequence, ids, 64);
  }
  const std::vector<std::int32_t> ids_ = some_ids(kContext);
};

TEST_P(WindowRings, HaveTheBitsOfTheWholeCache) {
  const Rows want = whole(ids_);
  for (const std::uint32_t chunk : {64u, 16u, 7u, 1u}) {
    SCOPED_TRACE(chunk);
    const auto ring = engine(true, chunk);
    Sequence sequence = ring->new_sequence();
    EXPECT_EQ(run(*ring, sequence, ids_, chunk), want);
    EXPECT_GT(sequence.first_windowed_page(), 2u);
  }
}

TEST_P(WindowRings, RollBackInsideAndBeforeThem) {
  const auto ring = engine(true);
  const Rows want = whole(ids_);
  const std::size_t vocab = ring->vocab_size();
  for (const std::uint32_t to : {127u, 64u, 57u, 55u, 54u, 20u, 1u}) {
    SCOPED_TRACE(to);
    Session session(ring);
    CYB_ASSERT_OK(session.prefill(ids_));
    CYB_ASSERT_OK(session.truncate(to));
    EXPECT_EQ(value(session.tokens()).size(), to);
    CYB_ASSERT_OK(session.append(std::span(ids_).subspan(to)));
    EXPECT_EQ(value(session.logits()),
              Rows(want.end() - static_cast<std::ptrdiff_t>(vocab), want.end()));
  }
}

/// A conversation that is changed before what the windows hold is computed anew, never read stale.
TEST_P(WindowRings, AnotherTextAfterAnEarlyPrefix) {
  const auto ring = engine(true);
  const std::size_t vocab = ring->vocab_size();
  for (const auto& [same, reused] : {std::pair(100u, 100u), std::pair(30u, 0u)}) {
    std::vector<std::int32_t> other = ids_;
    for (std::size_t i = same; i < other.size(); ++i) other[i] = (other[i] + 1) % 256;
    Session session(ring);
    CYB_ASSERT_OK(session.prefill(ids_));
    const PrefillReport report = value(session.prefill(other));
    EXPECT_EQ(report.n_reused, reused);
    const Rows want = whole(other);
    EXPECT_EQ(value(session.logits()),
              Rows(want.end() - static_cast<std::ptrdiff_t>(vocab), want.end()));
  }
}

TEST_P(WindowRings, ForksKeepWhatTheyStillSee) {
  EngineOptions options = ring_options(std::get<1>(GetParam()), true, 64);
  options.max_sequences = 2;
  const auto ring = tiny_engine(std::get<0>(GetParam()), options);
  const std::span<const std::int32_t> ids = ids_;
  std::vector<std::int32_t> other(ids.begin(), ids.end());
  for (std::size_t i = 21; i < other.size(); ++i) other[i] = (other[i] + 3) % 256;
  const Rows want = whole(ids), want_other = whole(other);
  const auto row = static_cast<std::ptrdiff_t>(21 * ring->vocab_size());
  Sequence second = ring->new_sequence();
  {
    Sequence first = ring->new_sequence();
    run(*ring, first, ids.first(21), 64);
    second = first.fork();
    // The first goes far enough to let go of the pages that both hold.
    EXPECT_EQ(run(*ring, first, ids.subspan(21), 64), Rows(want.begin() + row, want.end()));
    EXPECT_GT(first.first_windowed_page(), 2u);
  }
  EXPECT_EQ(run(*ring, second, std::span(other).subspan(21), 16),
            Rows(want_other.begin() + row, want_other.end()));
}

TEST_P(WindowRings, AreSavedAndRestored) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.session");
  const std::span<const std::int32_t> ids = ids_;
  const Rows want = whole(ids_);
  {
    Session session(engine(true));
    CYB_ASSERT_OK(session.prefill(ids.first(125)));
    CYB_ASSERT_OK(save_session(session, path, {}));
  }
  const auto ring = engine(true);
  const auto vocab = static_cast<std::ptrdiff_t>(ring->vocab_size());
  for (const std::size_t n : {128u, 113u, 80u, 40u}) {
    SCOPED_TRACE(n);
    Session session(ring);
    EXPECT_EQ(value(restore_session(session, path, {})).n_tokens, 112u);
    CYB_ASSERT_OK(session.prefill(ids.first(n)));
    const auto end = want.begin() + static_cast<std::ptrdiff_t>(n) * vocab;
    EXPECT_EQ(value(session.logits()), Rows(end - vocab, end));
  }
  Session plain(engine(false));
  const auto refused = restore_session(plain, path, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), "K03");
}

/// Pages of 16, a window of 8, 64 tokens to roll back by and a run of 16: 7 pages at most of the 8
/// that the context has.
TEST_P(WindowRings, TakeLessAndAsMuchAsPlanned) {
  EngineOptions options = ring_options(std::get<1>(GetParam()), true, 16);
  options.pack_cache = false;
  const auto ring = tiny_engine(std::get<0>(GetParam()), options);
  Sequence sequence = ring->new_sequence();
  run(*ring, sequence, ids_, 16);
  const KvPool& pool = ring->kv_pool();
  EXPECT_EQ(pool.peak_pages(), 8u);
  EXPECT_GT(pool.store().windowed_bytes(), 0u);
  EXPECT_LT(pool.peak_windowed(), 8u);
  const MemoryPlan plan = value(Engine::plan(tiny_model(std::get<0>(GetParam())), options));
  EXPECT_EQ(plan.bytes.kv, pool.bytes_of(8, 7));
  EXPECT_LE(ring->memory().kv, plan.bytes.kv);
  EXPECT_GE(pool.peak_windowed() + 1, 7u);
}

std::string ring_name(const ::testing::TestParamInfo<std::tuple<std::string, DType>>& info) {
  return std::get<0>(info.param) + "_" + std::string(dtype_name(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, WindowRings,
    ::testing::Combine(::testing::Values("gemma2", "gemma3", "mistral", "phi3"),
                       ::testing::Values(DType::kF32, DType::kF16, DType::kQ8, DType::kQ4)),
    ring_name);

/// Gemma 3 270M: 15 of 18 layers see 512 keys. At 32768 tokens they take a sixtieth, and the memory
/// is the system's again.
TEST(WindowRing, OfAGemmaTakesASixtieth) {
  KvLayout layout;
  for (int i = 0; i < 18; ++i) layout.layers.push_back({1, 256, i % 6 == 5 ? 0u : 512u});
  BackendOptions wanted;
  wanted.isa = regime_isa();
  const auto backend = value(create_backend("cpu", wanted));
  const auto pool = std::make_shared<KvPool>(backend, value(backend->alloc_kv(layout, 32768 / 16)));
  Sequence sequence(pool, 32768);
  const std::vector<std::int32_t> ids(32768);
  CYB_ASSERT_OK(sequence.adopt(ids));
  EXPECT_EQ(pool->peak_pages(), 2048u);
  EXPECT_EQ(pool->peak_windowed(), 35u);
  EXPECT_EQ(pool->most_windowed(1, 512, 2048), 37u + 32u);
  std::vector<std::byte> ones(static_cast<std::size_t>(pool->page_bytes()), std::byte{1});
  const std::uint64_t before = resident_bytes();
  for (const PageId page : sequence.pages()) {
    CYB_ASSERT_OK(pool->store().write_page(page, ones));
    pool->store().forget_windowed(page);
  }
  const std::uint64_t full = 2048 * (pool->page_bytes() - pool->store().windowed_bytes());
  EXPECT_LT(resident_bytes() - before, full + full / 8);
  // Forgotten bytes read as zeros, the others are there.
  CYB_ASSERT_OK(pool->store().read_page(5, ones));
  EXPECT_EQ(ones.front(), std::byte{1});
  EXPECT_EQ(ones.back(), std::byte{0});
}

}  // namespace
}  // namespace cyb::test
