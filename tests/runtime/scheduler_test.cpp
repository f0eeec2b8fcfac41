// Many requests on one engine: the bits of solo runs under any load, fair turns, prefixes, short
// memory, cancellation, and faults that end only their own request.
#include <gtest/gtest.h>

#include <future>
#include <limits>

#include "runtime/scheduler.hpp"
#include "support/engine_support.hpp"
#include "support/scheduler_support.hpp"

namespace cyb::test {
namespace {

std::uint32_t used_pages(const Engine& engine) {
  return engine.kv_pool().n_pages() - engine.kv_pool().free_pages();
}

/// Requests of every kind: lengths, samplers, several answers, guesses, shared beginnings.
std::vector<GenerateRequest> mixed_requests(std::size_t n) {
  std::vector<GenerateRequest> out;
  for (std::size_t i = 0; i < n; ++i) {
    GenerateRequest request;
    request.prompt = some_ids(24, 7);  // all begin alike
    const auto own = some_ids(3 + (i * 11) % 40, static_cast<std::int32_t>(i * 5));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.options.max_tokens = static_cast<std::uint32_t>(4 + (i * 7) % 29);
    request.options.seed = 100 + i;
    request.options.logprobs = 2;
    request.options.ignore_stop_ids = i % 3 == 0;
    if (i % 2 == 0) request.options.sampling.temperature = 1.1;
    if (i % 5 == 0) request.options.speculation.lookup_tokens = 3;
    if (i % 7 == 3) request.options.overflow = Overflow::kShift;
    if (i % 7 == 3) request.options.max_tokens = 150;
    request.n_answers = i % 4 == 1 ? 3 : 1;
    request.tenant = i % 3 == 0 ? "a" : "b";
    out.push_back(std::move(request));
  }
  return out;
}

struct Load {
  const char* model;
  std::uint32_t running, sequences, prefill, prefixes;
  bool reuses, preempts;  // what must have happened
};

class SchedulerLoad : public ::testing::TestWithParam<Load> {};

TEST_P(SchedulerLoad, EveryAnswerHasTheBitsOfASoloRun) {
  const Load& load = GetParam();
  EngineOptions options;
  options.backend = "cpu";
  options.n_threads = 2;
  options.chunk_tokens = 64;
  options.max_outputs = 8;
  options.max_sequences = load.sequences;
  const auto engine = tiny_engine(load.model, options);
  const auto requests = mixed_requests(24);
  std::vector<Heard> heard(requests.size());
  {
    Scheduler scheduler(engine,
                        {.max_running = load.running,
                         .prefill_tokens = load.prefill,
                         .cached_prefixes = load.prefixes},
                        false);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      value(scheduler.submit(requests[i], ears(heard[i])));
      if (i % 3 == 2) scheduler.turn();  // the others come while these run
    }
    run_all(scheduler);
    const SchedulerStats stats = scheduler.stats();
    EXPECT_EQ(stats.finished, requests.size());
    EXPECT_EQ(stats.running + stats.waiting, 0u);
    EXPECT_EQ(stats.reused_tokens > 0, load.reuses);
    EXPECT_EQ(stats.preempted > 0, load.preempts);
  }
  EXPECT_EQ(used_pages(*engine), 0u);
  for (std::size_t i = 0; i < requests.size(); ++i) expect_solo(engine, requests[i], heard[i], i);
}

std::string load_name(const ::testing::TestParamInfo<Load>& info) {
  const Load& load = info.param;
  return std::string(load.model) + "_" + std::to_string(load.running) + "_" +
         std::to_string(load.sequences) + "_" + std::to_string(load.prefill) + "_" +
         std::to_string(load.prefixes);
}

INSTANTIATE_TEST_SUITE_P(Tiny, SchedulerLoad,
                         ::testing::Values(Load{"llama3", 3, 8, 16, 64, true, false},
                                           Load{"llama3", 16, 8, 7, 0, false, false},
                                           Load{"llama3", 12, 1, 32, 4, false, true},
                                           Load{"gemma3", 8, 4, 16, 16, true, true},
                                           Load{"phi3_longrope", 8, 8, 16, 16, true, false},
                                           Load{"llama_dynamic", 8, 8, 16, 16, true, false}),
                         load_name);

std::shared_ptr<Engine> scripted(std::shared_ptr<ScriptedBackend> backend, std::uint32_t sequences,
                                 std::uint32_t outputs = 8) {
  EngineOptions options;
  options.max_sequences = sequences;
  options.max_outputs = outputs;
  options.chunk_tokens = 64;
  TextModelOptions text;
  text.max_positions = 128;
  return scripted_engine(text_model(text), std::move(backend), options);
}

GenerateRequest simple(std::vector<std::int32_t> prompt, std::uint32_t max_tokens,
                       std::string tenant = "") {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.options.max_tokens = max_tokens;
  request.tenant = std::move(tenant);
  return request;
}

TEST(SchedulerRuns, PromptsLeaveRoomForThoseThatWaitForAToken) {
  const auto backend = std::make_shared<ScriptedBackend>();
  const auto engine = scripted(backend, 4);
  Scheduler scheduler(engine, {.max_running = 4, .prefill_tokens = 16, .cached_prefixes = 0},
                      false);
  Heard first, second;
  value(scheduler.submit(simple(some_ids(10), 20), ears(first)));
  scheduler.turn();
  value(scheduler.submit(simple(some_ids(50, 99), 4), ears(second)));
  backend->run_sizes.clear();
  for (int i = 0; i < 5; ++i) scheduler.turn();
  EXPECT_EQ(backend->run_sizes, (std::vector<std::uint32_t>{17, 17, 17, 3, 2}));
  run_all(scheduler);
  EXPECT_EQ(first.results.at(0).tokens.size(), 20u);
}

TEST(SchedulerRuns, PrefixesAreFoundByTheirTenantOnly) {
  const auto backend = std::make_shared<ScriptedBackend>();
  const auto engine = scripted(backend, 6);
  Scheduler scheduler(engine, {}, false);
  const auto ask = [&](const std::vector<std::int32_t>& prompt, const std::string& tenant) {
    Heard heard;
    value(scheduler.submit(simple(prompt, 2, tenant), ears(heard)));
    run_all(scheduler);
    return heard.results.at(0).reused_tokens;
  };
  const auto prompt = some_ids(40);
  EXPECT_EQ(ask(prompt, "a"), 0u);
  EXPECT_EQ(ask(prompt, "a"), 39u);
  EXPECT_EQ(ask(prompt, "b"), 0u);
  auto other = prompt;
  other[35] += 1;
  EXPECT_EQ(ask(other, "a"), 35u);
  EXPECT_EQ(ask(some_ids(40, 8), "a"), 0u);
  EXPECT_EQ(scheduler.stats().reused_tokens, 39u + 35u);
}

TEST(SchedulerRuns, FairBetweenTenantsAndByPriority) {
  const auto engine = scripted(std::make_shared<ScriptedBackend>(), 2);
  Scheduler scheduler(engine, {.max_running = 1}, false);
  std::vector<std::string> order;
  const auto ask = [&](const std::string& name, const std::string& tenant, int priority = 0) {
    GenerateRequest request = simple(some_ids(20), 3, tenant);
    request.priority = priority;
    RequestEvents events;
    events.on_done = [&order, name](const auto&) { order.push_back(name); };
    value(scheduler.submit(std::move(request), std::move(events)));
  };
  ask("a1", "a");
  scheduler.turn();
  ask("a2", "a");
  ask("a3", "a");
  ask("b1", "b");
  ask("c1", "a", 5);
  run_all(scheduler);
  EXPECT_EQ(order, (std::vector<std::string>{"a1", "c1", "b1", "a2", "a3"}));
}

TEST(SchedulerRuns, CancelledAtEveryStage) {
  const auto engine = scripted(std::make_shared<ScriptedBackend>(), 4);
  for (int stage = 0; stage < 60; ++stage) {
    Scheduler scheduler(engine, {.max_running = 2, .prefill_tokens = 8, .cached_prefixes = 0},
                        false);
    Heard other, heard;
    value(scheduler.submit(simple(some_ids(30, 3), 40), ears(other)));
    GenerateRequest request = simple(some_ids(60), 20);
    request.n_answers = 1 + static_cast<std::uint32_t>(stage % 2);
    const RequestId id = value(scheduler.submit(std::move(request), ears(heard)));
    for (int i = 0; i < stage / 2; ++i) scheduler.turn();
    scheduler.cancel(id);
    scheduler.turn();
    if (heard.ends == 0) scheduler.turn();
    ASSERT_EQ(heard.ends, 1) << stage;
    ASSERT_FALSE(heard.error.has_value());
    run_all(scheduler);
    EXPECT_EQ(other.results.at(0).tokens.size(), 40u);
    EXPECT_EQ(used_pages(*engine), 0u) << stage;
    const SchedulerStats stats = scheduler.stats();
    EXPECT_EQ(stats.cancelled + stats.finished, 2u);
  }
}

TEST(SchedulerRuns, AFaultEndsOnlyItsOwnRequest) {
  const auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    logits[history.size() % 256] = 9.0f;
    if (history[0] == 66 && history.size() > 12)
      logits[3] = std::numeric_limits<float>::quiet_NaN();
  };
  const auto engine = scripted(backend, 6);
  Scheduler scheduler(engine, {.max_running = 6}, false);
  std::vector<Heard> heard(5);
  for (std::int32_t i = 0; i < 5; ++i) {
    const std::int32_t first = i == 2 ? 66 : 10 + i;
    value(scheduler.submit(simple({first, 1, 2, 3, 4, 5, 6, 7}, 20),
                           ears(heard[static_cast<std::size_t>(i)])));
  }
  run_all(scheduler);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(heard[i].ends, 1);
    if (i == 2) {
      ASSERT_TRUE(heard[i].error.has_value());
      EXPECT_EQ(heard[i].error->kind(), ErrorKind::kNonFinite);
    } else {
      ASSERT_FALSE(heard[i].error.has_value()) << heard[i].error->text();
      EXPECT_EQ(heard[i].results.at(0).tokens.size(), 20u);
    }
  }
  EXPECT_EQ(scheduler.stats().failed, 1u);
}

TEST(SchedulerDoor, WhatCannotBeTakenIsRefusedAtOnce) {
  const auto engine = scripted(std::make_shared<ScriptedBackend>(), 2);
  Scheduler scheduler(engine, {.max_running = 2, .max_waiting = 2, .max_per_tenant = 2}, false);
  const auto submit = [&](GenerateRequest request) {
    return scheduler.submit(std::move(request), {});
  };
  CYB_EXPECT_ERROR(submit(simple({}, 1)), "input: empty prompt");
  CYB_EXPECT_ERROR(submit(simple({1, 9999}, 1)), "input: token id 9999 is not in 0..255");
  EXPECT_EQ(submit(simple(some_ids(129), 1)).error().kind(), ErrorKind::kContextOverflow);
  GenerateRequest many = simple({1}, 1);
  many.n_answers = 3;
  CYB_EXPECT_ERROR(submit(many), "input: 3 answers; at most 2 grow at the same time");
  many.n_answers = 0;
  CYB_EXPECT_ERROR(submit(many), "input: no answers are asked for");
  GenerateRequest odd = simple({1}, 1);
  odd.options.sampling.temperature = -1;
  EXPECT_FALSE(submit(odd).has_value());
  EXPECT_EQ(scheduler.stats().submitted, 0u);
  CYB_EXPECT_OK(submit(simple({1}, 1, "a")));
  CYB_EXPECT_OK(submit(simple({1}, 1, "b")));
  EXPECT_EQ(submit(simple({1}, 1, "c")).error().text(), busy("queue").text());
  scheduler.turn();
  CYB_EXPECT_OK(submit(simple({1}, 1, "a")));
  run_all(scheduler);
  CYB_EXPECT_OK(submit(simple({1}, 1, "a")));
  scheduler.turn();
  EXPECT_EQ(scheduler.stats().refused, 1u);
  EXPECT_TRUE(scheduler.drain());
  EXPECT_EQ(submit(simple({1}, 1)).error().text(), busy("shutdown").text());
}

TEST(SchedulerDoor, ATenantHasItsShareOfTheQueue) {
  const auto engine = scripted(std::make_shared<ScriptedBackend>(), 2);
  Scheduler scheduler(engine, {.max_running = 1, .max_per_tenant = 2}, false);
  CYB_EXPECT_OK(scheduler.submit(simple({1}, 1, "a"), {}));
  CYB_EXPECT_OK(scheduler.submit(simple({1}, 1, "a"), {}));
  EXPECT_EQ(scheduler.submit(simple({1}, 1, "a"), {}).error().text(), busy("tenant").text());
  CYB_EXPECT_OK(scheduler.submit(simple({1}, 1, "b"), {}));
  run_all(scheduler);
  CYB_EXPECT_OK(scheduler.submit(simple({1}, 1, "a"), {}));
  run_all(scheduler);
}

TEST(SchedulerThread, AnswersManyThreadsAndEndsWhatIsLeft) {
  EngineOptions options;
  options.backend = "cpu";
  options.n_threads = 1;
  options.max_sequences = 3;
  const auto engine = tiny_engine("llama3", options);
  const auto requests = mixed_requests(12);
  std::vector<Heard> heard(requests.size());
  std::atomic<int> n_cancelled = 0;
  {
    Scheduler scheduler(engine, {.max_running = 5});
    std::vector<std::jthread> clients;
    for (std::size_t c = 0; c < 3; ++c) {
      clients.emplace_back([&, c] {
        for (std::size_t i = c; i < requests.size(); i += 3) {
          std::promise<void> done;
          RequestEvents events = ears(heard[i]);
          events.on_done = [&, tell = events.on_done](Result<std::vector<GenerateResult>> got) {
            tell(std::move(got));
            done.set_value();
          };
          value(scheduler.submit(requests[i], std::move(events)));
          done.get_future().wait();
        }
      });
    }
    clients.clear();  // joins
    for (int i = 0; i < 20; ++i) {
      GenerateRequest endless = simple(some_ids(20), 0);
      endless.options.ignore_stop_ids = true;
      endless.options.overflow = Overflow::kShift;
      RequestEvents events;
      events.on_done = [&](const Result<std::vector<GenerateResult>>& got) {
        n_cancelled += got && got->at(0).finish_reason == FinishReason::kCancelled;
      };
      value(scheduler.submit(std::move(endless), std::move(events)));
    }
  }
  EXPECT_EQ(n_cancelled, 20);
  EXPECT_EQ(used_pages(*engine), 0u);
  for (std::size_t i = 0; i < requests.size(); ++i) expect_solo(engine, requests[i], heard[i], i);
}

}  // namespace
}  // namespace cyb::test
