// Sessions and joint runs over a backend that reads its history back through the page tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "support/engine_support.hpp"

namespace cyb::test {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  std::shared_ptr<ScriptedBackend> backend_ = std::make_shared<ScriptedBackend>();
  std::shared_ptr<Engine> engine(EngineOptions options = {}) {
    return scripted_engine(tiny_model("llama2"), backend_, options);
  }
  /// Logits of the last token of `ids` from a fresh session.
  std::vector<float> cold(const std::shared_ptr<Engine>& engine,
                          const std::vector<std::int32_t>& ids) {
    Session session(engine);
    value(session.prefill(ids));
    return value(session.logits());
  }
};

TEST_F(SessionTest, EveryChunkSizeGivesTheSameLogits) {
  const auto ids = some_ids(61);
  const auto reference = cold(engine(), ids);
  for (const std::uint32_t chunk : {1u, 3u, 16u, 17u, 512u}) {
    EXPECT_EQ(cold(engine({.chunk_tokens = chunk}), ids), reference) << chunk;
  }
}

TEST_F(SessionTest, PrefillRunsInChunksAndAsksForOneRow) {
  Session session(engine({.chunk_tokens = 16}));
  backend_->run_sizes.clear();
  std::vector<std::uint32_t> done;
  CYB_ASSERT_OK(session.prefill(some_ids(40),
                                {.stop = {}, .progress = [&](std::uint32_t n, std::uint32_t total) {
                                   EXPECT_EQ(total, 40u);
                                   done.push_back(n);
                                 }}));
  EXPECT_EQ(backend_->run_sizes, (std::vector<std::uint32_t>{16, 16, 8}));
  EXPECT_EQ(done, (std::vector<std::uint32_t>{16, 32, 40}));
}

TEST_F(SessionTest, KeepsTheLongestCommonPrefix) {
  const auto e = engine();
  Session session(e);
  const auto first = some_ids(50);
  value(session.prefill(first));
  auto second = first;
  second[37] ^= 1;
  second.push_back(9);
  backend_->run_sizes.clear();
  const PrefillReport report = value(session.prefill(second));
  EXPECT_EQ(report.n_reused, 37u);
  EXPECT_EQ(report.n_computed, 14u);
  EXPECT_EQ(backend_->run_sizes, (std::vector<std::uint32_t>{14}));
  EXPECT_EQ(value(session.logits()), cold(e, second));
  EXPECT_EQ(value(session.tokens()), second);
}

TEST_F(SessionTest, APromptThatIsAllThereStillGivesLogits) {
  const auto e = engine();
  Session session(e);
  const auto ids = some_ids(20);
  value(session.prefill(ids));
  EXPECT_EQ(value(session.prefill(ids)).n_reused, 19u);
  EXPECT_EQ(value(session.logits()), cold(e, ids));
  const std::vector<std::int32_t> shorter(ids.begin(), ids.begin() + 7);
  EXPECT_EQ(value(session.prefill(shorter)).n_reused, 6u);
  EXPECT_EQ(value(session.tokens()), shorter);
  EXPECT_EQ(value(session.logits()), cold(e, shorter));
}

TEST_F(SessionTest, TruncateRollsBack) {
  const auto e = engine();
  Session session(e);
  const auto ids = some_ids(40);
  value(session.prefill(ids));
  const std::uint32_t free_pages = e->kv_pool().free_pages();
  CYB_ASSERT_OK(session.truncate(17));
  EXPECT_EQ(e->kv_pool().free_pages(), free_pages + 1);
  EXPECT_TRUE(value(session.logits()).empty());
  CYB_ASSERT_OK(session.append(std::vector<std::int32_t>{3, 4}));
  std::vector<std::int32_t> expected(ids.begin(), ids.begin() + 17);
  expected.insert(expected.end(), {3, 4});
  EXPECT_EQ(value(session.logits()), cold(e, expected));
  CYB_EXPECT_ERROR(session.truncate(20),
                   "input: cannot roll back to position 20: the session holds 19");
  CYB_ASSERT_OK(session.reset());
  EXPECT_TRUE(value(session.tokens()).empty());
}

TEST_F(SessionTest, OverflowChangesNothing) {
  Session session(engine({.ctx_tokens = 32}));
  const auto ids = some_ids(30);
  value(session.prefill(ids));
  const auto logits = value(session.logits());
  CYB_EXPECT_ERROR(session.append(some_ids(3)),
                   "context overflow: position 33 reaches the limit 32");
  CYB_EXPECT_ERROR(session.prefill(some_ids(33)),
                   "context overflow: position 33 reaches the limit 32");
  EXPECT_EQ(value(session.tokens()), ids);
  EXPECT_EQ(value(session.logits()), logits);
  CYB_EXPECT_OK(session.append(some_ids(2)));
}

TEST_F(SessionTest, BadIdsChangeNothing) {
  Session session(engine());
  const auto ids = some_ids(5);
  value(session.prefill(ids));
  CYB_EXPECT_ERROR(session.append(std::vector<std::int32_t>{1, 256}),
                   "input: token id 256 is not in 0..255");
  CYB_EXPECT_ERROR(session.prefill(std::vector<std::int32_t>{-1}),
                   "input: token id -1 is not in 0..255");
  CYB_EXPECT_ERROR(session.prefill(std::vector<std::int32_t>{}), "input: empty prompt");
  EXPECT_EQ(value(session.tokens()), ids);
}

TEST_F(SessionTest, CancellationKeepsFinishedChunks) {
  const auto e = engine({.chunk_tokens = 8});
  Session session(e);
  const auto ids = some_ids(30);
  std::stop_source source;
  const auto stop_after = [&](std::uint32_t done, std::uint32_t) {
    if (done == 16) source.request_stop();
  };
  const auto result = session.prefill(ids, {.stop = source.get_token(), .progress = stop_after});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(value(session.tokens()), std::vector<std::int32_t>(ids.begin(), ids.begin() + 16));
  EXPECT_EQ(value(session.prefill(ids)).n_reused, 16u);
  EXPECT_EQ(value(session.logits()), cold(e, ids));
}

TEST_F(SessionTest, AFailedRunLeavesTheSessionAsItWas) {
  const auto e = engine();
  Session session(e);
  const auto ids = some_ids(20);
  value(session.prefill(ids));
  const std::uint32_t free_pages = e->kv_pool().free_pages();
  backend_->script.before_run = [](const StepParams&) -> Result<void> {
    return fail(internal_error("told to"));
  };
  EXPECT_FALSE(session.append(some_ids(40)).has_value());
  backend_->script.before_run = nullptr;
  EXPECT_EQ(value(session.tokens()), ids);
  EXPECT_EQ(e->kv_pool().free_pages(), free_pages);
  CYB_ASSERT_OK(session.append(std::vector<std::int32_t>{5}));
  auto longer = ids;
  longer.push_back(5);
  EXPECT_EQ(value(session.logits()), cold(e, longer));
}

TEST_F(SessionTest, LogitsThatAreNotFiniteAreAnError) {
  backend_->script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 1.0f);
    if (history.size() == 3)
      logits[200] = history[2] == 1 ? std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::quiet_NaN();
  };
  Session session(engine());
  value(session.prefill(some_ids(2)));
  for (const std::int32_t last : {1, 2}) {
    CYB_EXPECT_ERROR(session.append(std::vector<std::int32_t>{last}),
                     "Op::Matmul: non-finite value in \"logits\" at 200");
    EXPECT_EQ(value(session.tokens()).size(), 2u);
  }
}

TEST_F(SessionTest, ASecondUserGetsBusy) {
  Session session(engine());
  {
    const auto user = session.use();
    ASSERT_TRUE(user.has_value());
    CYB_EXPECT_ERROR(session.append(some_ids(1)), "session is in use by another run");
    CYB_EXPECT_ERROR(session.tokens(), "session is in use by another run");
  }
  CYB_EXPECT_OK(session.append(some_ids(1)));
}

TEST_F(SessionTest, SessionsOfOneEngineDoNotSeeEachOther) {
  const auto e = engine({.chunk_tokens = 5, .max_sequences = 4});
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<float>> expected, got(4);
  for (int i = 0; i < 4; ++i) {
    ids.push_back(some_ids(static_cast<std::size_t>(20 + 7 * i), i));
    expected.push_back(cold(e, ids.back()));
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { got[i] = cold(e, ids[i]); });
    }
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(e->kv_pool().free_pages(), e->kv_pool().n_pages());
}

TEST_F(SessionTest, ASessionKeepsItsEngine) {
  auto e = engine();
  Session session(e);
  const std::weak_ptr<Engine> watch = e;
  e.reset();
  EXPECT_FALSE(watch.expired());
  CYB_EXPECT_OK(session.append(some_ids(4)));
}

TEST_F(SessionTest, PagesRunOut) {
  const auto e = engine({.ctx_tokens = 32});  // two pages
  Session first(e), second(e);
  value(first.prefill(some_ids(17)));
  CYB_EXPECT_ERROR(second.prefill(some_ids(3)),
                   "kv cache: out of memory: need 64 bytes, 0 available");
  EXPECT_TRUE(value(second.tokens()).empty());
  CYB_ASSERT_OK(first.reset());
  CYB_EXPECT_OK(second.prefill(some_ids(3)));
}

TEST_F(SessionTest, ForksShareAndCopyOnWrite) {
  const auto e = engine({.max_sequences = 3});
  const auto ids = some_ids(20);
  Sequence first = e->new_sequence();
  const auto run = [&](Sequence& sequence, std::vector<std::int32_t> more) {
    std::vector<float> logits;
    const SequenceStep step{&sequence, more, LogitRows::kLast};
    const auto done = e->step({&step, 1}, [&](std::size_t, std::span<const float> row) {
      logits.assign(row.begin(), row.end());
    });
    EXPECT_TRUE(done.has_value());
    return logits;
  };
  run(first, ids);
  const std::uint32_t used = e->kv_pool().n_pages() - e->kv_pool().free_pages();
  Sequence second = first.fork();
  EXPECT_EQ(e->kv_pool().n_pages() - e->kv_pool().free_pages(), used);
  EXPECT_EQ(backend_->n_copies, 0u);
  const auto a = run(second, {1, 2});
  EXPECT_EQ(backend_->n_copies, 1u);  // the page both were in the middle of
  const auto b = run(first, {3, 4});
  EXPECT_EQ(backend_->n_copies, 1u);  // the last owner writes in place
  auto with_a = ids, with_b = ids;
  with_a.insert(with_a.end(), {1, 2});
  with_b.insert(with_b.end(), {3, 4});
  EXPECT_EQ(a, cold(e, with_a));
  EXPECT_EQ(b, cold(e, with_b));
  EXPECT_EQ(first.pages()[0], second.pages()[0]);
  EXPECT_NE(first.pages()[1], second.pages()[1]);
}

TEST_F(SessionTest, JointRunsAreWhatEachWouldBeAlone) {
  const auto e = engine({.max_outputs = 64, .max_sequences = 16});
  for (const std::size_t batch : {1u, 2u, 3u, 7u, 16u}) {
    std::vector<Sequence> sequences;
    std::vector<std::vector<std::int32_t>> ids;
    std::vector<SequenceStep> steps;
    for (std::size_t i = 0; i < batch; ++i) {
      sequences.push_back(e->new_sequence());
      ids.push_back(some_ids(1 + 3 * i % 11, static_cast<std::int32_t>(i)));
    }
    for (std::size_t i = 0; i < batch; ++i)
      steps.push_back({&sequences[i], ids[i], LogitRows::kLast});
    std::vector<std::vector<float>> rows(batch);
    CYB_ASSERT_OK(e->step(steps, [&](std::size_t i, std::span<const float> row) {
      rows[i].assign(row.begin(), row.end());
    }));
    for (std::size_t i = 0; i < batch; ++i)
      EXPECT_EQ(rows[i], cold(e, ids[i])) << batch << " " << i;
  }
}

TEST_F(SessionTest, RowsComeInStepOrderAndOnlyWhereAsked) {
  const auto e = engine({.max_outputs = 16, .max_sequences = 3});
  std::vector<Sequence> s;
  for (int i = 0; i < 3; ++i) s.push_back(e->new_sequence());
  const auto a = some_ids(4), b = some_ids(5, 1), c = some_ids(3, 2);
  const std::vector<SequenceStep> steps = {
      {&s[0], a, LogitRows::kAll}, {&s[1], b, LogitRows::kNone}, {&s[2], c, LogitRows::kLast}};
  std::vector<std::pair<std::size_t, std::size_t>> seen;
  CYB_ASSERT_OK(e->step(steps, [&](std::size_t i, std::span<const float> rows) {
    seen.emplace_back(i, rows.size() / e->vocab_size());
  }));
  EXPECT_EQ(seen, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 4}, {2, 1}}));
}

TEST_F(SessionTest, WrongStepsAreRefused) {
  const auto e = engine({.chunk_tokens = 8, .max_outputs = 2});
  const auto other = engine();
  Sequence s = e->new_sequence(), foreign = other->new_sequence();
  const auto ids = some_ids(9);
  const auto step = [&](std::vector<SequenceStep> steps) { return e->step(steps, {}); };
  CYB_EXPECT_ERROR(step({}), "input: no sequence to run");
  CYB_EXPECT_ERROR(step({{&s, {}, LogitRows::kLast}}), "input: no tokens");
  CYB_EXPECT_ERROR(step({{&foreign, some_ids(1), LogitRows::kLast}}),
                   "input: a sequence of another engine");
  CYB_EXPECT_ERROR(
      step({{&s, {ids.data(), 1}, LogitRows::kNone}, {&s, {ids.data(), 1}, LogitRows::kNone}}),
      "input: a sequence twice in one run");
  CYB_EXPECT_ERROR(step({{&s, ids, LogitRows::kLast}}), "input: 9 tokens in one run; at most 8");
  CYB_EXPECT_ERROR(step({{&s, {ids.data(), 3}, LogitRows::kAll}}),
                   "input: 3 logit rows in one run; at most 2");
  EXPECT_EQ(s.position(), 0u);
}

TEST_F(SessionTest, OneOverflowStopsTheWholeRun) {
  const auto e = engine({.ctx_tokens = 16, .max_sequences = 2});
  Sequence a = e->new_sequence(), b = e->new_sequence();
  const auto ids = some_ids(16);
  const SequenceStep fill{&b, ids, LogitRows::kNone};
  CYB_ASSERT_OK(e->step({&fill, 1}, {}));
  const std::uint32_t free_pages = e->kv_pool().free_pages();
  const std::vector<SequenceStep> steps = {{&a, {ids.data(), 2}, LogitRows::kLast},
                                           {&b, {ids.data(), 1}, LogitRows::kLast}};
  CYB_EXPECT_ERROR(e->step(steps, {}), "context overflow: position 17 reaches the limit 16");
  EXPECT_EQ(a.position(), 0u);
  EXPECT_EQ(b.position(), 16u);
  EXPECT_EQ(e->kv_pool().free_pages(), free_pages);
}

TEST_F(SessionTest, AContextLongerThanTheModelIsRefused) {
  const auto loaded = Engine::load(tiny_model("llama2"), backend_, {.ctx_tokens = 129});
  CYB_EXPECT_ERROR(loaded,
                   "config: ctx_tokens: 129 is more than the 128 positions of the model: it has no "
                   "rope_scaling that reaches further");
  EXPECT_EQ(engine()->ctx_tokens(), 128u);
}

}  // namespace
}  // namespace cyb::test
