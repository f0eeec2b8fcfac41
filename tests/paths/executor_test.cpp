// The executor: memory in place, plans kept, runs without allocations, hostile sizes, cancellation
// between steps, measured steps.
#include <cmath>
#include <thread>

#include "paths/executor_support.hpp"
#include "support/alloc_count.hpp"

namespace cyb {
namespace {

TEST(InPlace, ChainsNeedOneBuffer) {
  constexpr std::int64_t kN = 1 << 16;
  GraphMaker m;
  const std::string x = m.input("x", DType::kF32, {kN});
  std::string y = m.node(OpTag::kNeg, {}, {x});
  for (int i = 0; i < 6; ++i) y = m.node(i % 2 == 0 ? OpTag::kExp : OpTag::kNeg, {}, {y});
  m.graph.outputs = {y};
  const std::vector<float> in = numbers(kN);
  const std::vector<TensorView> inputs = {view(DType::kF32, {kN}, in)};
  for (const char* name : {"reference", "cpu"}) {
    GraphRunner off(m, backend(name), kAllOff), on(m, backend(name), {.fuse = false});
    const auto want = run_all(off, inputs), got = run_all(on, inputs);
    EXPECT_TRUE(same_bits(got[0], want[0])) << name;
    EXPECT_GE(off.forward->plan_bytes(), on.forward->plan_bytes() + kN * sizeof(float)) << name;
  }
}

TEST(InPlace, WhatIsReadLaterStays) {
  GraphMaker m;
  const std::string x = m.input("x", DType::kF32, {4, 3});
  const std::string a = m.node(OpTag::kExp, {}, {x});
  const std::string b = m.node(OpTag::kNeg, {}, {a});                            // a is read again
  const std::string flat = m.node(OpTag::kReshape, {{"shape", Ints{12}}}, {b});  // a view of b
  const std::string c = m.node(OpTag::kAbs, {}, {flat});
  const std::string square = m.node(OpTag::kMul, {}, {c, c});
  const std::string largest = m.node(OpTag::kMax, {}, {a, b});
  m.graph.outputs = {m.node(OpTag::kSub, {}, {b, a}), square, largest};
  const std::vector<float> in = numbers(12);
  expect_equal_everywhere(m, {view(DType::kF32, {4, 3}, in)});
}

TEST(Plans, AreKeptUpToTheirBytes) {
  GraphMaker m;
  m.graph.symbols.push_back("N");
  const std::string x = m.input("x", DType::kF32, {Dim::symbol(3)});
  m.graph.outputs = {m.node(OpTag::kExp, {}, {x})};
  constexpr std::uint64_t kLimit = 4 << 20;
  GraphRunner run(m, backend("reference"), {.plan_bytes = kLimit});
  const auto run_size = [&](std::int64_t n) {
    const std::vector<float> in = numbers(static_cast<std::size_t>(n));
    const auto out = run_all(run, {view(DType::kF32, {n}, in)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0][static_cast<std::size_t>(n) - 1],
              static_cast<float>(std::exp(static_cast<double>(in.back()))));
  };
  for (std::int64_t n = 1; n <= 40; ++n) {
    run_size(65536 + n);
    run_size(65536);  // always the last but one used: never dropped
    EXPECT_LE(run.forward->plan_bytes(), kLimit);
  }
  EXPECT_GE(run.forward->n_plans(), 8u);
  EXPECT_LT(run.forward->n_plans(), 20u);
  test::AllocationCount count;
  run_size(65536);  // kept: the numbers of the test alone are allocated
  EXPECT_LE(count.news(), 8u);
  run_size(4 << 20);  // larger than the limit: runs, and is the only one kept
  EXPECT_EQ(run.forward->n_plans(), 1u);
}

/// Shapes that depend on data: each has a plan of its own, and those are dropped too.
TEST(Plans, OfDataAreDroppedToo) {
  GraphMaker m;
  const std::string x = m.input("x", DType::kF32, {512});
  m.graph.outputs = {m.node(OpTag::kNonZero, {}, {m.node(OpTag::kRelu, {}, {x})})};
  GraphRunner run(m, backend("reference"));
  ASSERT_TRUE(run.forward) << run.error;
  for (std::size_t n = 1; n <= 400; ++n) {
    std::vector<float> in(512, -1.0f);
    for (std::size_t i = 0; i < n; ++i) in[i] = 1.0f;
    const auto done = run.forward->run(std::vector{view(DType::kF32, {512}, in)});
    ASSERT_TRUE(done) << done.error().text();
    ASSERT_EQ(run.forward->output(0).value().shape, (Shape{1, static_cast<std::int64_t>(n)}));
    EXPECT_LE(run.forward->n_plans(), 256u);
  }
}

std::uint64_t news_of_five_runs(GraphMaker& m, const char* name,
                                const std::vector<TensorView>& inputs) {
  GraphRunner run(m, backend(name));
  EXPECT_TRUE(run.forward) << run.error;
  if (!run.forward || !run.forward->run(inputs)) return ~0u;
  const test::AllocationCount count;
  for (int i = 0; i < 5; ++i) {
    if (!run.forward->run(inputs)) return ~0u;
  }
  return count.news();
}

TEST(Allocations, NoneAfterTheFirstRunOnCpu) {
  Picture p;
  const std::string c = p.conv(p.x, 4);
  const std::string silu = p.m.node(OpTag::kMul, {}, {c, p.m.node(OpTag::kSigmoid, {}, {c})});
  const std::string rows = p.m.node(OpTag::kReshape, {{"shape", Ints{24, 6}}}, {silu});
  p.m.weights.push_back(weight<float>("fc", DType::kF32, {6, 6}, numbers(36)));
  const std::string y = p.m.node(OpTag::kMatmul, {}, {rows, "fc"});
  const std::string erf = p.m.node(OpTag::kErf, {}, {y});
  const std::string both = p.m.node(OpTag::kConcat, {{"axis", std::int64_t{0}}}, {erf, y});
  p.m.graph.outputs = {p.m.node(OpTag::kTranspose, {}, {both}), silu};
  const std::vector<float> in = numbers(144);
  EXPECT_EQ(news_of_five_runs(p.m, "cpu", {view(DType::kF32, {1, 4, 6, 6}, in)}), 0u);
}

/// Ops whose references need no memory of their own; fallbacks of cpu among them.
TEST(Allocations, NoneOfTheExecutorOnAnyBackend) {
  GraphMaker m;
  const std::string x = m.input("x", DType::kF32, {2, 6});
  const std::string a = m.node(OpTag::kExp, {}, {x});
  const std::string b = m.node(OpTag::kMul, {}, {a, x});
  const std::string at_zero = m.node(OpTag::kCompare, {{"kind", std::int64_t{4}}}, {x, b});
  const std::string flat = m.node(OpTag::kFlatten, {{"axis", std::int64_t{0}}}, {a});
  const std::string shape =
      m.node(OpTag::kShape, {{"start", std::int64_t{0}}, {"end", std::int64_t{2}}}, {x});
  m.graph.outputs = {m.node(OpTag::kWhere, {}, {at_zero, a, b}), flat, shape};
  const std::vector<float> in = numbers(12);
  for (const char* name : {"reference", "cpu"})
    EXPECT_EQ(news_of_five_runs(m, name, {view(DType::kF32, {2, 6}, in)}), 0u) << name;
}

/// Four tensors whose sizes add up to 0 in 64 bits, and one whose size is no number of 64 bits.
TEST(HostileSizes, AreRefusedBeforeTheyArePlanned) {
  for (const Ints& shape : {Ints{std::int64_t{1} << 60}, Ints{std::int64_t{1} << 60, 64}}) {
    GraphMaker m;
    const std::string x = m.input("x", DType::kF32, {1});
    std::vector<std::string> large;
    for (int i = 0; i < 4; ++i) large.push_back(m.node(OpTag::kExpand, {{"shape", shape}}, {x}));
    std::string sum = large[0];
    for (const std::string& name : large) sum = m.node(OpTag::kAdd, {}, {sum, name});
    m.graph.outputs = {sum};
    for (const char* name : {"reference", "cpu"}) {
      GraphRunner run(m, backend(name));
      if (!run.forward) continue;  // refused at load
      const std::vector<float> in = {1.0f};
      EXPECT_FALSE(run.forward->run(std::vector{view(DType::kF32, {1}, in)})) << name;
    }
  }
}

TEST(Cancellation, EndsBetweenTwoSteps) {
  constexpr std::int64_t kN = 96;
  for (const char* name : {"reference", "cpu"}) {
    GraphMaker m;
    std::string y = m.input("x", DType::kF32, {kN, kN});
    m.weights.push_back(weight<float>("w", DType::kF32, {kN, kN}, numbers(kN * kN, 0.01f)));
    for (int i = 0; i < 20000; ++i) y = m.node(OpTag::kMatmul, {}, {y, "w"});
    m.graph.outputs = {y};
    GraphRunner run(m, backend(name));
    ASSERT_TRUE(run.forward) << run.error;
    const std::vector<float> in = numbers(kN * kN);
    const std::vector<TensorView> inputs = {view(DType::kF32, {kN, kN}, in)};
    std::stop_source at_once, stop;
    at_once.request_stop();
    ASSERT_FALSE(run.forward->run(inputs, at_once.get_token())) << "this plans the graph";
    run.forward->measure(true);
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stop.request_stop();
    });
    const auto done = run.forward->run(inputs, stop.get_token());
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().kind(), ErrorKind::kCancelled);
    ASSERT_EQ(run.forward->path().size(), 1u);
    const std::vector<StepTime>& times = run.forward->path()[0]->times;
    EXPECT_GT(times.front().end_ns, 0) << "the first step ran";
    EXPECT_EQ(times.back().begin_ns, 0) << "the last step did not run";
    EXPECT_FALSE(run.forward->output(0)) << "nothing is given out";
  }
}

TEST(RunErrors, HaveTheNameOfTheResultInTheModel) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> in = {-inf, -inf};
  for (const char* name : {"reference", "cpu"}) {
    GraphMaker m;
    const std::string x = m.node(OpTag::kNeg, {}, {m.input("x", DType::kF32, {1, 2})});
    m.graph.outputs = {
        m.node(OpTag::kSoftmax, {{"dim", std::int64_t{1}}}, {m.node(OpTag::kNeg, {}, {x})})};
    GraphRunner run(m, backend(name));
    ASSERT_TRUE(run.forward) << run.error;
    const auto done = run.forward->run(std::vector{view(DType::kF32, {1, 2}, in)});
    ASSERT_FALSE(done) << name;
    EXPECT_NE(done.error().text().find("node 2 Softmax \"v2\""), std::string::npos)
        << done.error().text();
  }
}

TEST(Cancellation, InTheLastStepGivesNothing) {
  constexpr std::int64_t kN = 640;
  GraphMaker m;
  const std::string x = m.input("x", DType::kF32, {kN, kN});
  m.weights.push_back(weight<float>("w", DType::kF32, {kN, kN}, numbers(kN * kN, 0.01f)));
  m.graph.outputs = {m.node(OpTag::kMatmul, {}, {x, "w"})};
  GraphRunner run(m, backend("reference"));
  ASSERT_TRUE(run.forward) << run.error;
  const std::vector<float> in = numbers(kN * kN);
  const std::vector<TensorView> inputs = {view(DType::kF32, {kN, kN}, in)};
  ASSERT_TRUE(run.forward->run(inputs));
  std::stop_source stop;
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    stop.request_stop();
  });
  const auto done = run.forward->run(inputs, stop.get_token());
  ASSERT_FALSE(done) << "a step of more than 2 ms";
  EXPECT_EQ(done.error().kind(), ErrorKind::kCancelled);
  EXPECT_FALSE(run.forward->output(0));
}

TEST(Measured, StepsHaveNamesAndTimes) {
  for (const char* name : {"reference", "cpu"}) {
    Picture p;
    const std::string c = p.conv(p.x, 4), relu = p.m.node(OpTag::kRelu, {}, {c});
    p.m.graph.outputs = {p.m.node(OpTag::kCumSum, {{"axis", std::int64_t{3}}}, {relu})};
    GraphRunner run(p.m, backend(name));
    ASSERT_TRUE(run.forward) << run.error;
    run.forward->measure(true);
    const std::vector<float> in = numbers(144);
    run_all(run, {view(DType::kF32, {1, 4, 6, 6}, in)});
    ASSERT_EQ(run.forward->path().size(), 1u);
    const Stage& stage = *run.forward->path()[0];
    ASSERT_EQ(stage.steps.size(), 2u);
    ASSERT_EQ(stage.times.size(), 2u);
    EXPECT_EQ(stage.steps[0].op, "Conv+Relu");
    EXPECT_EQ(stage.steps[0].name, c);
    EXPECT_FALSE(stage.steps[0].fallback);
    EXPECT_EQ(stage.steps[1].fallback, run.forward->n_fallback_steps() == 1);
    for (const StepTime& time : stage.times) {
      EXPECT_GT(time.begin_ns, 0);
      EXPECT_GE(time.end_ns, time.begin_ns);
    }
    EXPECT_GE(stage.times[1].begin_ns, stage.times[0].end_ns);
  }
}

}  // namespace
}  // namespace cyb
