// If and Loop while they run: the branch the condition names, rounds until the count or the
// condition ends them, values that change their shape, and bounds that are errors.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/control/control.hpp"
#include "support/graph_maker.hpp"

namespace cyb {
namespace {

using Maker = test::GraphMaker;
using test::view;

Op if_op(const Graph& yes, const Graph& no, const std::vector<TensorSpec>& outputs) {
  Op op{OpTag::kIf, {}};
  op.attrs.values = {encode_graph(yes), encode_graph(no), declared_outputs(outputs)};
  return op;
}

Op loop_op(const Graph& body, std::int64_t carried, const std::vector<TensorSpec>& outputs) {
  Op op{OpTag::kLoop, {}};
  op.attrs.values = {encode_graph(body), carried, declared_outputs(outputs)};
  return op;
}

/// The graph on `cpu`, with the weight w = {1, 10, 100}.
struct Runner : test::GraphRunner {
  explicit Runner(const Graph& graph) : GraphRunner(with_weight(graph), on_one_thread()) {}

 private:
  static Maker with_weight(const Graph& graph) {
    Maker maker;
    maker.graph = graph;
    maker.weights = {test::weight<float>("w", DType::kF32, {3}, {1.0F, 10.0F, 100.0F})};
    return maker;
  }
  static std::shared_ptr<Backend> on_one_thread() {
    return create_backend("cpu", test::threads(1)).value();
  }
};

std::vector<float> floats(const TensorView& tensor) {
  return test::values<float>(tensor);
}

const std::vector<float> kX = {1, 2, 3};

/// z = c ? (a + w, twice as long) : a - w.
Graph branching() {
  Maker yes;
  yes.input("a", DType::kF32, {Dim::anonymous()});
  const std::string sum = yes.node(OpTag::kAdd, {}, {"a", "w"});
  yes.graph.outputs = {yes.node(OpTag::kConcat, {{"axis", std::int64_t{0}}}, {sum, sum})};
  Maker no;
  no.input("a", DType::kF32, {Dim::anonymous()});
  no.graph.outputs = {no.node(OpTag::kSub, {}, {"a", "w"})};
  Maker m;
  m.input("c", DType::kBool, {});
  m.input("x", DType::kF32, {3});
  const std::string twice = m.node(OpTag::kAdd, {}, {"x", "x"});
  const std::string z =
      m.node(if_op(yes.graph, no.graph, {{DType::kF32, {Dim::anonymous()}}}), {"c", twice});
  m.graph.outputs = {m.node(OpTag::kNeg, {}, {z}), z};
  return m.graph;
}

TEST(ControlFlow, TheConditionNamesTheBranch) {
  Runner run(branching());
  ASSERT_TRUE(run.forward) << run.error;
  for (const bool yes : {true, false, true, true, false}) {
    const auto c = static_cast<std::uint8_t>(yes);
    const std::vector<std::uint8_t> condition = {c};
    const auto done = run.forward->run(
        std::vector{view(DType::kBool, Shape{}, condition), view(DType::kF32, {3}, kX)});
    ASSERT_TRUE(done) << done.error().text();
    const std::vector<float> want =
        c != 0 ? std::vector<float>{3, 14, 106, 3, 14, 106} : std::vector<float>{1, -6, -94};
    EXPECT_EQ(floats(run.forward->output(1).value()), want);
    EXPECT_EQ(run.forward->output(0).value().as<float>()[1], -want[1]);
  }
}

/// Rounds of (a, b) = (b, a + b), with i·w stacked and `all` growing, while a + b < bound.
Graph looping(bool counted) {
  Maker body;
  body.input("i", DType::kI64, {});
  body.input("c", DType::kBool, {});
  body.input("a", DType::kF32, {});
  body.input("b", DType::kF32, {});
  body.input("all", DType::kF32, {Dim::anonymous()});
  body.input("bound", DType::kF32, {});
  const std::string next = body.node(OpTag::kAdd, {}, {"a", "b"});
  const std::string more = body.node(OpTag::kCompare, {{"kind", std::int64_t{2}}}, {next, "bound"});
  const std::string one =
      body.node(OpTag::kReshape, {{"shape", std::vector<std::int64_t>{1}}}, {next});
  const std::string all = body.node(OpTag::kConcat, {{"axis", std::int64_t{0}}}, {"all", one});
  const std::string f = body.node(OpTag::kCast, {{"dtype", std::int64_t{0}}}, {"i"});
  const std::string row = body.node(OpTag::kMul, {}, {f, "w"});
  body.graph.outputs = {more, "b", next, all, row};
  Maker m;
  if (counted) m.input("n", DType::kI64, {});
  m.input("bound", DType::kF32, {});
  m.input("first", DType::kF32, {1});
  const std::string one_ =
      m.node(OpTag::kReshape, {{"shape", std::vector<std::int64_t>{}}}, {"first"});
  const TensorSpec scalar{DType::kF32, {}}, list{DType::kF32, {Dim::anonymous()}};
  Op op = loop_op(body.graph, 3, {scalar, scalar, list, {DType::kF32, {Dim::anonymous(), 3}}});
  m.graph.nodes.push_back({9,
                           std::move(op),
                           255,
                           {counted ? "n" : "", "", one_, one_, "first", "bound"},
                           {"a", "b", "all", "rows"}});
  m.graph.outputs = {"a", "b", "all", "rows"};
  return m.graph;
}

struct Looped {
  std::vector<float> a, b, all, rows;
  Shape shape;
};

Result<Looped> run_loop(Runner& run, std::vector<std::int64_t> n, float bound) {
  const std::vector<float> limit = {bound}, first = {1};
  std::vector<TensorView> inputs;
  if (!n.empty()) inputs.push_back(view(DType::kI64, Shape{}, n));
  inputs.push_back(view(DType::kF32, Shape{}, limit));
  inputs.push_back(view(DType::kF32, {1}, first));
  CYB_TRY(run.forward->run(inputs));
  return Looped{floats(*run.forward->output(0)), floats(*run.forward->output(1)),
                floats(*run.forward->output(2)), floats(*run.forward->output(3)),
                run.forward->output(3)->shape};
}

TEST(ControlFlow, RoundsEndWithTheCountOrTheCondition) {
  Runner run(looping(true));
  ASSERT_TRUE(run.forward) << run.error;
  const auto counted = run_loop(run, {3}, 1000);
  ASSERT_TRUE(counted) << counted.error().text();
  EXPECT_EQ(counted->a, (std::vector<float>{3}));
  EXPECT_EQ(counted->b, (std::vector<float>{5}));
  EXPECT_EQ(counted->all, (std::vector<float>{1, 2, 3, 5}));
  EXPECT_EQ(counted->rows, (std::vector<float>{0, 0, 0, 1, 10, 100, 2, 20, 200}));
  EXPECT_EQ(counted->shape, (Shape{3, 3}));
  const auto bounded = run_loop(run, {100}, 10);
  ASSERT_TRUE(bounded) << bounded.error().text();
  EXPECT_EQ(bounded->all, (std::vector<float>{1, 2, 3, 5, 8, 13}));
  for (const std::int64_t n : {0, -5}) {
    const auto none = run_loop(run, {n}, 10);
    ASSERT_TRUE(none) << none.error().text();
    EXPECT_EQ(none->a, (std::vector<float>{1}));
    EXPECT_EQ(none->all, (std::vector<float>{1}));
    EXPECT_EQ(none->shape, (Shape{0, 3}));
  }
  EXPECT_EQ(run_loop(run, {2}, 1000)->all, (std::vector<float>{1, 2, 3}));
}

TEST(ControlFlow, WithoutACountTheConditionAloneEndsIt) {
  Runner run(looping(false));
  ASSERT_TRUE(run.forward) << run.error;
  const auto done = run_loop(run, {}, 50);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(done->b, (std::vector<float>{55}));
}

/// A loop that nothing ends.
TEST(ControlFlow, AStopEndsALoopThatNothingElseEnds) {
  Maker body;
  body.input("i", DType::kI64, {});
  body.input("c", DType::kBool, {});
  body.input("a", DType::kF32, {3});
  const std::string next = body.node(OpTag::kMul, {}, {"a", "w"});
  body.graph.outputs = {"c", next};
  Maker m;
  m.input("x", DType::kF32, {3});
  m.graph.outputs = {m.node(loop_op(body.graph, 1, {{DType::kF32, {3}}}), {"", "", "x"})};
  Runner run(m.graph);
  ASSERT_TRUE(run.forward) << run.error;
  std::stop_source stop;
  stop.request_stop();
  const auto done = run.forward->run(std::vector{view(DType::kF32, {3}, kX)}, stop.get_token());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kCancelled);
}

TEST(ControlFlow, RowsOfAStackedOutputAreOfOneShape) {
  Maker body;
  body.input("i", DType::kI64, {});
  body.input("c", DType::kBool, {});
  body.input("a", DType::kF32, {Dim::anonymous()});
  const std::string next = body.node(OpTag::kConcat, {{"axis", std::int64_t{0}}}, {"a", "w"});
  body.graph.outputs = {"c", next, next};
  Maker m;
  m.input("n", DType::kI64, {});
  m.input("x", DType::kF32, {3});
  const TensorSpec list{DType::kF32, {Dim::anonymous()}};
  m.graph.nodes = {
      {0,
       loop_op(body.graph, 1, {list, {DType::kF32, {Dim::anonymous(), Dim::anonymous()}}}),
       255,
       {"n", "", "x"},
       {"a", "rows"}}};
  m.graph.outputs = {"a", "rows"};
  Runner run(m.graph);
  ASSERT_TRUE(run.forward) << run.error;
  const auto runs = [&](std::int64_t n) {
    const std::vector<std::int64_t> count = {n};
    return run.forward->run(
        std::vector{view(DType::kI64, Shape{}, count), view(DType::kF32, {3}, kX)});
  };
  EXPECT_TRUE(runs(1));
  const auto two = runs(2);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().kind(), ErrorKind::kShapeMismatch);
}

/// y = 2·GatedDelta(x…): state f32 [1, 1, 2, 2].
Graph remembering() {
  Maker m;
  m.graph.symbols.push_back("L");
  const Dim length = Dim::symbol(3);
  for (const char* name : {"q", "k", "v"}) m.input(name, DType::kF32, {1, 1, length, 2});
  m.input("g", DType::kF32, {1, 1, length});
  m.input("beta", DType::kF32, {1, 1, length});
  m.input("ids", DType::kI64, {1});
  const std::string y = m.node(OpTag::kGatedDelta, {}, {"q", "k", "v", "g", "beta"});
  m.graph.outputs = {m.node(OpTag::kAdd, {}, {y, y}),
                     m.node(OpTag::kGather, {{"axis", std::int64_t{0}}}, {"w", "ids"})};
  return m.graph;
}

/// Steps [from, to) of a fixed sequence.
Result<std::vector<float>> run_steps(TensorForward& forward, std::int64_t from, std::int64_t to,
                                     std::int64_t id = 0) {
  std::vector<std::vector<float>> rows(5);
  for (std::int64_t t = from; t < to; ++t) {
    for (std::size_t k = 0; k < 5; ++k) {
      for (std::size_t j = 0; j < (k < 3 ? 2u : 1u); ++j) {
        const auto at = static_cast<float>(t * 7 + static_cast<std::int64_t>(k * 3 + j));
        rows[k].push_back((k == 3 ? -0.05F : 0.1F) * (1.0F + std::fmod(at, 5.0F)));
      }
    }
  }
  const std::int64_t n = to - from;
  const std::vector<std::int64_t> ids = {id};
  std::vector<TensorView> inputs;
  for (std::size_t k = 0; k < 5; ++k)
    inputs.push_back(view(DType::kF32, k < 3 ? Shape{1, 1, n, 2} : Shape{1, 1, n}, rows[k]));
  inputs.push_back(view(DType::kI64, {1}, ids));
  CYB_TRY(forward.run(inputs));
  return floats(*forward.output(0));
}

TEST(ControlFlow, StateIsCarriedFromRunToRun) {
  Runner run(remembering());
  ASSERT_TRUE(run.forward) << run.error;
  const auto whole = run_steps(*run.forward, 0, 6);
  ASSERT_TRUE(whole) << whole.error().text();
  run.forward->reset();
  std::vector<float> parts;
  for (const auto& [from, to] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 3}, {3, 6}}) {
    const auto part = run_steps(*run.forward, from, to);
    ASSERT_TRUE(part) << part.error().text();
    parts.insert(parts.end(), part->begin(), part->end());
    // A run that fails (an index out of range, after the state op) leaves the state as it was.
    EXPECT_FALSE(run_steps(*run.forward, from, to, 9));
  }
  EXPECT_EQ(parts, *whole);
  const auto later = run_steps(*run.forward, 0, 6);
  ASSERT_TRUE(later);
  EXPECT_NE(*later, *whole);
  run.forward->reset();
  EXPECT_EQ(*run_steps(*run.forward, 0, 6), *whole);
}

}  // namespace
}  // namespace cyb
