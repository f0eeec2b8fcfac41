// General graphs: named inputs of any dtype, shapes that inputs decide, shapes that data decides;
// the same results on every backend.
#include "paths/graph/tensor_forward.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "support/far_backend.hpp"
#include "support/graph_maker.hpp"

namespace cyb {
namespace {

using test::threads;
using test::values;
using test::view;
using test::weight;
using Maker = test::GraphMaker;
using Runner = test::GraphRunner;

class TensorForwardOn : public testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<Backend> backend() {
    const std::string name = GetParam();
    const BackendOptions options = threads(2);
    return name == "far" ? test::make_far_backend(options).value()
                         : create_backend(name, options).value();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, TensorForwardOn, testing::Values("reference", "cpu", "far"));

TEST_P(TensorForwardOn, ShapesFollowTheInputs) {
  Maker m;
  m.graph.symbols.push_back("N");
  const std::string x = m.input("x", DType::kF32, {Dim::symbol(3), 4});
  m.weights.push_back(weight<float>("w", DType::kF32, {2, 4}, {1, 0, 0, 0, 0, 1, 0, 1}));
  m.weights.push_back(weight<float>("b", DType::kF32, {2}, {10, 20}));
  const std::string y = m.node(OpTag::kMatmul, {}, {x, "w", "b"});
  const std::string flat = m.node(OpTag::kReshape, {{"shape", std::vector<std::int64_t>{-1}}}, {y});
  m.graph.outputs = {m.node(OpTag::kAdd, {}, {flat, flat}), y, x};
  Runner run(m, backend());
  ASSERT_TRUE(run.forward) << run.error;
  for (const std::int64_t n : {1, 3, 1}) {
    std::vector<float> in(static_cast<std::size_t>(4 * n));
    std::iota(in.begin(), in.end(), 0.0f);
    const auto done = run.forward->run(std::vector{view(DType::kF32, {n, 4}, in)});
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_EQ(run.forward->n_stages(), 1u);
    const TensorView sum = run.forward->output(0).value();
    ASSERT_EQ(sum.shape, (Shape{2 * n}));
    for (std::int64_t i = 0; i < n; ++i) {
      const auto base = static_cast<float>(4 * i);
      EXPECT_EQ(sum.as<float>()[2 * i], 2 * (base + 10));
      EXPECT_EQ(sum.as<float>()[2 * i + 1], 2 * (base + 1 + base + 3 + 20));
    }
    EXPECT_EQ(run.forward->output(1).value().shape, (Shape{n, 2}));
    EXPECT_EQ(values<float>(run.forward->output(2).value()), in);
  }
}

TEST_P(TensorForwardOn, AShapeThatIsAnInputSplitsTheRun) {
  Maker m;
  const std::string x = m.input("x", DType::kI64, {6});
  const std::string shape = m.input("shape", DType::kI64, {2});
  const std::string twice = m.node(OpTag::kAdd, {}, {x, x});
  m.graph.outputs = {m.node(OpTag::kReshapeTo, {}, {twice, shape}), twice};
  Runner run(m, backend());
  ASSERT_TRUE(run.forward) << run.error;
  const std::vector<std::int64_t> in = {1, -2, 3, 1LL << 40, 5, 6};
  for (const std::vector<std::int64_t>& want :
       std::vector<std::vector<std::int64_t>>{{2, 3}, {3, -1}, {2, 3}}) {
    const auto done =
        run.forward->run(std::vector{view(DType::kI64, {6}, in), view(DType::kI64, {2}, want)});
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_EQ(run.forward->n_stages(), 2u);
    const TensorView out = run.forward->output(0).value();
    EXPECT_EQ(out.shape, (Shape{want[0], 6 / want[0]}));
    EXPECT_EQ(values<std::int64_t>(out), (std::vector<std::int64_t>{2, -4, 6, 1LL << 41, 10, 12}));
  }
  const std::vector<std::int64_t> wrong = {4, 4};
  const auto done =
      run.forward->run(std::vector{view(DType::kI64, {6}, in), view(DType::kI64, {2}, wrong)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), "G10");
}

TEST_P(TensorForwardOn, ConstantsAreFoldedAndShapesNeedNoSteps) {
  Maker m;
  const std::string x = m.input("x", DType::kF32, {Dim::symbol(0), 6});
  m.weights.push_back(weight<std::int64_t>("two", DType::kI64, {1}, {2}));
  m.weights.push_back(weight<float>("w", DType::kF32, {6}, {1, 2, 3, 4, 5, 6}));
  const std::string ww = m.node(OpTag::kMul, {}, {"w", "w"});
  const std::string dims =
      m.node(OpTag::kShape, {{"start", std::int64_t{0}}, {"end", std::int64_t{1}}}, {x});
  const std::string shape =
      m.node(OpTag::kConcat, {{"axis", std::int64_t{0}}}, {dims, "two", "two"});
  const std::string minus = m.node(OpTag::kMul, {}, {x, ww});
  const std::string target = m.node(OpTag::kAdd, {}, {shape, "two"});
  const std::string third = m.node(OpTag::kSub, {}, {target, "two"});
  m.graph.outputs = {minus, shape, third, ww};
  Runner run(m, backend());
  ASSERT_TRUE(run.forward) << run.error;
  const std::vector<float> in = {1, 1, 1, 1, 1, 1};
  const auto done = run.forward->run(std::vector{view(DType::kF32, {1, 6}, in)});
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(values<float>(run.forward->output(0).value()),
            (std::vector<float>{1, 4, 9, 16, 25, 36}));
  EXPECT_EQ(values<std::int64_t>(run.forward->output(1).value()),
            (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(values<std::int64_t>(run.forward->output(2).value()),
            (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(values<float>(run.forward->output(3).value()),
            (std::vector<float>{1, 4, 9, 16, 25, 36}));
}

TEST_P(TensorForwardOn, IndicesOfDataAreChecked) {
  Maker m;
  const std::string ids = m.input("ids", DType::kI32, {2});
  m.weights.push_back(weight<float>("table", DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6}));
  m.graph.outputs = {m.node(OpTag::kGather, {{"axis", std::int64_t{0}}}, {"table", ids}),
                     m.node(OpTag::kTokenEmbed, {}, {ids, "table"})};
  Runner run(m, backend());
  ASSERT_TRUE(run.forward) << run.error;
  const auto runs = [&](std::int32_t a, std::int32_t b) {
    const std::vector<std::int32_t> given = {a, b};
    return run.forward->run(std::vector{view(DType::kI32, {2}, given)});
  };
  ASSERT_TRUE(runs(2, 0));
  EXPECT_EQ(values<float>(run.forward->output(0).value()), (std::vector<float>{5, 6, 1, 2}));
  EXPECT_EQ(values<float>(run.forward->output(1).value()), (std::vector<float>{5, 6, 1, 2}));
  EXPECT_FALSE(runs(0, 3));
  EXPECT_FALSE(runs(0, 1 << 30));
  EXPECT_FALSE(runs(-4, 0));
  EXPECT_FALSE(runs(-1, 0)) << "TokenEmbed counts from the front alone";
}

TEST_P(TensorForwardOn, EmptyTensors) {
  Maker m;
  const std::string x = m.input("x", DType::kF32, {Dim::symbol(0), 2});
  m.graph.outputs = {m.node(OpTag::kAdd, {}, {x, x})};
  Runner run(m, backend());
  ASSERT_TRUE(run.forward) << run.error;
  const std::vector<float> nothing(1);
  const auto done = run.forward->run(std::vector{view(DType::kF32, {0, 2}, nothing)});
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(run.forward->output(0).value().shape, (Shape{0, 2}));
}

TEST(TensorForward, InputsThatDoNotFitAreNamed) {
  Maker m;
  const std::string x = m.input("x", DType::kF32, {Dim::symbol(0), 2});
  const std::string y = m.input("y", DType::kF32, {Dim::symbol(0), 2});
  m.graph.outputs = {m.node(OpTag::kAdd, {}, {x, y})};
  Runner run(m, create_backend("reference", threads(1)).value());
  ASSERT_TRUE(run.forward) << run.error;
  const std::vector<float> data(8);
  const auto text = [&](std::vector<TensorView> inputs) {
    const auto done = run.forward->run(inputs);
    return done ? "ran" : done.error().code() + " " + done.error().text();
  };
  const TensorView two = view(DType::kF32, {2, 2}, data);
  EXPECT_EQ(text({two, two}), "ran");
  EXPECT_EQ(text({two}), "InvalidInput input: 1 given, the model has 2");
  EXPECT_EQ(text({two, {DType::kI32, {2, 2}, two.data}}),
            "InvalidInput input: \"y\": i32, the model takes f32");
  EXPECT_NE(text({two, view(DType::kF32, {3, 2}, data)}).find("B = 2 (as input \"x\" has it)"),
            std::string::npos);
  EXPECT_NE(text({two, view(DType::kF32, {2, 3}, data)}).find("\"y\": "), std::string::npos);
  EXPECT_NE(text({two, view(DType::kF32, {2}, data)}).find("\"y\": "), std::string::npos);
}

TEST(TensorForward, StopsBetweenSteps) {
  Maker m;
  const std::string x = m.input("x", DType::kF32, {2});
  m.graph.outputs = {m.node(OpTag::kAdd, {}, {x, x})};
  Runner run(m, create_backend("cpu", threads(1)).value());
  ASSERT_TRUE(run.forward) << run.error;
  std::stop_source stop;
  stop.request_stop();
  const std::vector<float> data(2);
  const auto done = run.forward->run(std::vector{view(DType::kF32, {2}, data)}, stop.get_token());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kCancelled);
}

}  // namespace
}  // namespace cyb
