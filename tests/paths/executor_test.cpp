// The executor's passes: fusion, memory in place, plans kept, runs without allocations,
// cancellation between steps, measured steps. Passes on and off give the same bits on the reference
// and differ within class F elsewhere.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <thread>

#include "ops/elementwise.hpp"
#include "support/alloc_count.hpp"
#include "support/far_backend.hpp"
#include "support/graph_maker.hpp"
#include "support/tolerance.hpp"

namespace cyb {
namespace {

using test::GraphMaker;
using test::GraphRunner;
using test::threads;
using test::values;
using test::view;
using test::weight;

using Ints = std::vector<std::int64_t>;

std::shared_ptr<Backend> backend(const std::string& name) {
  return name == "far" ? test::make_far_backend(threads(2)).value()
                       : create_backend(name, threads(2)).value();
}

std::vector<float> numbers(std::size_t n, float scale = 1.0f) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = scale * (static_cast<float>((i * 37 + 11) % 101) / 50.0f - 1.0f);
  return out;
}

constexpr TensorOptions kAllOff{.fuse = false, .in_place = false};

/// x [1, 4, 6, 6] f32 goes in.
struct Picture {
  GraphMaker m;
  std::string x;
  Picture() { x = m.input("x", DType::kF32, {1, 4, 6, 6}); }

  std::string conv(const std::string& from, std::int64_t channels, float scale = 0.2f) {
    const std::string w = "w" + std::to_string(m.weights.size());
    const auto n = static_cast<std::size_t>(channels * 4 * 9);
    m.weights.push_back(weight<float>(w, DType::kF32, {channels, 4, 3, 3}, numbers(n, scale)));
    m.weights.push_back(weight<float>(w + "b", DType::kF32, {channels},
                                      numbers(static_cast<std::size_t>(channels))));
    return m.node(OpTag::kConv,
                  {{"strides", Ints{1, 1}},
                   {"dilations", Ints{1, 1}},
                   {"pads", Ints{1, 1, 1, 1}},
                   {"groups", std::int64_t{1}}},
                  {from, w, w + "b"});
  }
  std::string constant(const std::string& name, const Shape& shape, std::vector<float> data) {
    m.weights.push_back(weight<float>(name, DType::kF32, shape, data));
    return name;
  }
};

std::vector<std::vector<float>> run_all(GraphRunner& run, const std::vector<TensorView>& inputs) {
  EXPECT_TRUE(run.forward) << run.error;
  if (!run.forward) return {};
  const auto done = run.forward->run(inputs);
  EXPECT_TRUE(done) << done.error().text();
  if (!done) return {};
  std::vector<std::vector<float>> out;
  for (std::size_t i = 0; i < run.forward->outputs().size(); ++i)
    out.push_back(values<float>(run.forward->output(i).value()));
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// All passes off on the reference is the truth; every other way to run it is held against that.
void expect_equal_everywhere(GraphMaker& m, const std::vector<TensorView>& inputs) {
  GraphRunner plain(m, backend("reference"), kAllOff);
  const auto want = run_all(plain, inputs);
  for (const bool fuse : {false, true}) {
    for (const bool in_place : {false, true}) {
      for (const char* name : {"reference", "far", "cpu"}) {
        GraphRunner run(m, backend(name), {.fuse = fuse, .in_place = in_place});
        for (int repeat = 0; repeat < 2; ++repeat) {
          const auto got = run_all(run, inputs);
          ASSERT_EQ(got.size(), want.size());
          for (std::size_t i = 0; i < want.size(); ++i) {
            if (std::string(name) == "cpu") {
              EXPECT_LE(test::error_of(got[i], want[i]),
                        test::tolerance(ToleranceClass::kF, DType::kF32))
                  << "cpu fuse " << fuse << " in place " << in_place << " output " << i;
            } else {
              EXPECT_TRUE(same_bits(got[i], want[i]))
                  << name << " fuse " << fuse << " in place " << in_place << " output " << i;
            }
          }
        }
      }
    }
  }
}

std::string step_ops(const GraphRunner& run) {
  std::string text;
  for (const Stage* stage : run.forward->path()) {
    for (const StepInfo& step : stage->steps) text += (text.empty() ? "" : " ") + step.op;
  }
  return text;
}

/// The steps of a run of the picture graph with everything on.
std::string steps_of(Picture& p, const char* name) {
  GraphRunner run(p.m, backend(name));
  const std::vector<float> in = numbers(144);
  run_all(run, {view(DType::kF32, {1, 4, 6, 6}, in)});
  return step_ops(run);
}

void expect_steps(Picture& p, const std::string& steps) {
  EXPECT_EQ(steps_of(p, "reference"), steps);
  EXPECT_EQ(steps_of(p, "cpu"), steps);
  const std::vector<float> in = numbers(144);
  expect_equal_everywhere(p.m, {view(DType::kF32, {1, 4, 6, 6}, in)});
}

TEST(Fusion, ConvolutionAndWhatFollows) {
  Picture p;
  const std::string c = p.conv(p.x, 4);
  const std::string gate = p.m.node(OpTag::kSigmoid, {}, {c});
  const std::string silu = p.m.node(OpTag::kMul, {}, {c, gate});
  const std::string next = p.conv(silu, 4);
  const std::string scale = p.constant("s", {4, 1, 1}, numbers(4));
  const std::string scaled = p.m.node(OpTag::kMul, {}, {next, scale});
  p.m.graph.outputs = {p.m.node(OpTag::kAdd, {}, {p.m.node(OpTag::kRelu, {}, {scaled}), silu})};
  expect_steps(p, "Conv+Sigmoid+Mul Conv+Mul+Relu+Add");
}

TEST(Fusion, AValueReadTwiceOrGivenOutStays) {
  Picture p;
  const std::string c = p.conv(p.x, 4);
  const std::string relu = p.m.node(OpTag::kRelu, {}, {c});
  const std::string a = p.conv(relu, 4), b = p.m.node(OpTag::kTanh, {}, {relu});
  p.m.graph.outputs = {p.m.node(OpTag::kAdd, {}, {a, b}), c};
  // c is an output, so Relu leads; it is read by the Conv, so Tanh does not join it.
  expect_steps(p, "Conv Relu Conv Tanh+Add");
}

TEST(Fusion, WhatIsNotThereYetIsNotReadAhead) {
  Picture p;
  const std::string first = p.conv(p.x, 4);
  const std::string shifted = p.m.node(OpTag::kNeg, {}, {first});
  const std::string second = p.conv(p.x, 4, 0.1f);
  const std::string sum = p.m.node(OpTag::kSub, {}, {second, shifted});
  p.m.graph.outputs = {p.m.node(OpTag::kAbs, {}, {sum})};
  expect_steps(p, "Conv+Neg Conv+Sub+Abs");
}

TEST(Fusion, OperandsThatRepeatInEveryWay) {
  Picture p;
  std::string y = p.conv(p.x, 4);
  y = p.m.node(OpTag::kMul, {}, {y, p.constant("row", {6}, numbers(6))});
  y = p.m.node(OpTag::kAdd, {}, {p.constant("one", {}, {0.5f}), y});
  y = p.m.node(OpTag::kSub, {}, {p.constant("channel", {1, 4, 1, 1}, numbers(4)), y});
  y = p.m.node(OpTag::kDiv, {}, {y, p.constant("plane", {6, 6}, numbers(36, 0.3f))});
  y = p.m.node(OpTag::kMax, {}, {y, p.constant("low", {1}, {-3.0f})});
  y = p.m.node(OpTag::kPRelu, {}, {y, p.constant("slope", {4}, numbers(4))});
  p.m.graph.outputs = {p.m.node(
      OpTag::kClip, {}, {y, p.constant("min", {}, {-2.0f}), p.constant("max", {}, {2.0f})})};
  expect_steps(p, "Conv+Mul+Add+Sub+Div+Max+PRelu+Clip");
}

TEST(Fusion, GeluWrittenOut) {
  Picture p;
  const std::string c = p.conv(p.x, 4);
  std::string y = p.m.node(OpTag::kDiv, {}, {c, p.constant("root", {}, {1.41421356f})});
  y = p.m.node(OpTag::kErf, {}, {y});
  y = p.m.node(OpTag::kAdd, {}, {y, p.constant("one", {}, {1.0f})});
  y = p.m.node(OpTag::kMul, {}, {c, y});
  p.m.graph.outputs = {p.m.node(OpTag::kMul, {}, {y, p.constant("half", {}, {0.5f})})};
  expect_steps(p, "Conv+Div+Erf+Add+Mul+Mul");
}

/// Every elementwise op that f32 (or, failing that, i64) operands fit: alone after another one,
/// with an operand that is read again later, at sizes with and without a tail.
class Elementwise : public testing::TestWithParam<OpTag> {};

std::vector<OpTag> elementwise_ops() {
  std::vector<OpTag> tags;
  for (const OpInfo& op : all_ops()) {
    if (is_elementwise(op.tag)) tags.push_back(op.tag);
  }
  return tags;
}
INSTANTIATE_TEST_SUITE_P(All, Elementwise, testing::ValuesIn(elementwise_ops()),
                         [](const auto& made) { return std::string(op_info(made.param).name); });

/// Null where the op takes no operands of `dtype`.
std::unique_ptr<GraphMaker> chain_of(OpTag tag, DType dtype, std::int64_t n) {
  const OpInfo& info = op_info(tag);
  auto m = std::make_unique<GraphMaker>();
  const std::string x = m->input("x", dtype, {2, n}), y = m->input("y", dtype, {2, n});
  const std::size_t n_inputs = std::min<std::size_t>(std::max<std::size_t>(info.min_inputs, 1), 3);
  const auto op = [&](const std::string& first) {
    std::vector<std::string> inputs = {first};
    std::vector<TensorSpec> specs = {TensorSpec::of(dtype, {2, n})};
    while (inputs.size() < n_inputs) inputs.push_back(y);
    specs.resize(n_inputs, specs[0]);
    const auto out = infer(make_op(tag).value(), specs);
    return out && (*out)[0].dtype == dtype ? m->node(tag, {}, inputs) : std::string();
  };
  const OpTag lead = dtype == DType::kI64 ? OpTag::kAbs : OpTag::kNeg;
  const std::string twice = op(m->node(lead, {}, {x}));
  if (twice.empty()) return nullptr;
  const std::string again = m->node(OpTag::kAdd, {}, {op(twice), twice});
  m->graph.outputs = {again, m->node(OpTag::kMul, {}, {again, y})};
  return m;
}

TEST_P(Elementwise, PassesChangeNothing) {
  bool ran = false;
  for (const std::int64_t n : {1, 5, 640}) {
    const auto count = static_cast<std::size_t>(2 * n);
    const std::vector<float> x = numbers(count), y = numbers(count, 0.7f);
    if (const auto m = chain_of(GetParam(), DType::kF32, n)) {
      ran = true;
      expect_equal_everywhere(*m, {view(DType::kF32, {2, n}, x), view(DType::kF32, {2, n}, y)});
    }
  }
  const bool of_bool = GetParam() == OpTag::kWhere || GetParam() == OpTag::kCompare ||
                       GetParam() == OpTag::kIsNan || GetParam() == OpTag::kIsInf ||
                       GetParam() == OpTag::kNot || GetParam() == OpTag::kAnd ||
                       GetParam() == OpTag::kOr || GetParam() == OpTag::kXor;
  const bool of_int = GetParam() == OpTag::kBitShift || GetParam() == OpTag::kBitwiseAnd ||
                      GetParam() == OpTag::kBitwiseOr || GetParam() == OpTag::kBitwiseXor ||
                      GetParam() == OpTag::kBitwiseNot;
  EXPECT_EQ(ran, !of_bool && !of_int) << op_info(GetParam()).name;
}

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
