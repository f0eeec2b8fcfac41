// Fusion: which nodes join a step, and that passes on and off give the same bits on the reference
// and differ within class F elsewhere, for every elementwise op.
#include "paths/graph/fusion.hpp"

#include "ops/elementwise.hpp"
#include "paths/executor_support.hpp"

namespace cyb {
namespace {

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

TEST(Fusion, AnIntegerThatBecomesAFloatLeads) {
  const auto steps_with = [](DType dtype, const TensorView& x) {
    GraphMaker m;
    const std::string in = m.input("x", dtype, {3, 700});
    m.weights.push_back(weight<float>("s", DType::kF32, {700}, numbers(700)));
    const std::string cast = m.node(OpTag::kCast, {{"dtype", std::int64_t{0}}}, {in});
    const std::string scaled = m.node(OpTag::kMul, {}, {cast, "s"});
    m.graph.outputs = {m.node(OpTag::kTanh, {}, {scaled})};
    expect_equal_everywhere(m, {x});
    GraphRunner run(m, backend("cpu"));
    run_all(run, {x});
    EXPECT_EQ(run.forward->n_fallback_steps(), 0u) << dtype_name(dtype);
    return step_ops(run);
  };
  std::vector<std::int32_t> words(2100);
  std::vector<std::int64_t> longs(2100);
  std::vector<std::uint8_t> bytes(2100);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(i) * 2654435761u);
    longs[i] = static_cast<std::int64_t>(std::uint64_t{i} * 4611686018427387847u);
    bytes[i] = static_cast<std::uint8_t>(i);
  }
  EXPECT_EQ(steps_with(DType::kI32, view(DType::kI32, {3, 700}, words)), "Cast+Mul+Tanh");
  EXPECT_EQ(steps_with(DType::kI64, view(DType::kI64, {3, 700}, longs)), "Cast+Mul+Tanh");
  EXPECT_EQ(steps_with(DType::kU8, view(DType::kU8, {3, 700}, bytes)), "Cast+Mul+Tanh");
  EXPECT_EQ(steps_with(DType::kI8, view(DType::kI8, {3, 700}, bytes)), "Cast+Mul+Tanh");
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

}  // namespace
}  // namespace cyb
