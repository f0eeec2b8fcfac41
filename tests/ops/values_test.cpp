// Values at load, shapes of a run, attributes by name, and state between runs.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/op.hpp"

namespace cyb {
namespace {

const Dim kB = Dim::symbol(kSymbolB), kS = Dim::symbol(kSymbolS);
const std::vector<std::string> kNames = {"B", "S", "P"};
using Ints = std::vector<std::int64_t>;

TensorSpec f32(std::vector<Dim> dims) {
  return {DType::kF32, std::move(dims)};
}

TensorSpec run(const Op& op, std::vector<TensorSpec> inputs) {
  const auto out = infer(op, inputs);
  EXPECT_TRUE(out) << out.error().text();
  return out ? (*out)[0] : TensorSpec::none();
}

Op constant(const Ints& values) {
  std::vector<std::byte> bytes(values.size() * 8);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_op(OpTag::kConstant, {{"dtype", 19},
                                    {"shape", Ints{static_cast<std::int64_t>(values.size())}},
                                    {"bytes", bytes}})
      .value();
}

TEST(Values, AShapeComputedFromAShapeStaysSymbolic) {
  const TensorSpec x = f32({kB, kS, 64});
  const TensorSpec shape = run(make_op(OpTag::kShape, {{"end", 99}}).value(), {x});
  ASSERT_TRUE(shape.value);
  const TensorSpec two =
      run(make_op(OpTag::kGather, {}).value(), {shape, run(constant({0, 1}), {})});
  const TensorSpec rest = run(constant({8, -1}), {});
  const TensorSpec target = run(make_op(OpTag::kConcat, {}).value(), {two, rest});
  const TensorSpec y = run(make_op(OpTag::kReshapeTo).value(), {x, target});
  EXPECT_EQ(y.text(kNames), "f32 [B, S, 8, 8]");
}

TEST(Values, ArithmeticSlicesAndCastsCarryThem) {
  const TensorSpec shape = run(make_op(OpTag::kShape, {{"end", 99}}).value(), {f32({kS, 6})});
  const TensorSpec first =
      run(make_op(OpTag::kSlice, {{"start", 0}, {"end", 1}, {"step", 1}}).value(), {shape});
  const TensorSpec twice = run({OpTag::kMul, {}}, {first, run(constant({2}), {})});
  const TensorSpec more = run({OpTag::kAdd, {}}, {twice, run(constant({1}), {})});
  const TensorSpec cast = run(make_op(OpTag::kCast, {{"dtype", 18}}).value(), {more});
  const TensorSpec y = run(make_op(OpTag::kExpandTo).value(), {f32({1}), cast});
  EXPECT_EQ(y.text(kNames), "f32 [2*S+1]");
  const TensorSpec scalar = run(make_op(OpTag::kSqueeze).value(), {first});
  const TensorSpec zero = run(make_op(OpTag::kSqueeze).value(), {run(constant({0}), {})});
  const TensorSpec one = run(make_op(OpTag::kSqueeze).value(), {run(constant({1}), {})});
  EXPECT_EQ(run(make_op(OpTag::kRange).value(), {zero, scalar, one}).text(kNames), "i64 [S]");
}

TEST(Values, UnknownValuesGiveAnonymousDimensionsOfAKnownRank) {
  const TensorSpec shape{DType::kI64, {3}};
  EXPECT_EQ(run(make_op(OpTag::kReshapeTo).value(), {f32({kS}), shape}).text(kNames),
            "f32 [?, ?, ?]");
  const TensorSpec many{DType::kI64, {kS}};
  EXPECT_FALSE(infer(make_op(OpTag::kReshapeTo).value(), std::vector{f32({kS}), many}));
}

TEST(RunSpecs, LookAtTheData) {
  const float values[] = {0, 1, 0, 2};
  const std::vector<TensorView> x = {
      {DType::kF32, Shape{2, 2}, reinterpret_cast<const std::byte*>(values)}};
  const auto specs = run_specs({OpTag::kNonZero, {}}, x);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].bind({}), (Shape{2, 2}));
  const std::int64_t target[] = {4, -1};
  const std::vector<TensorView> in = {
      x[0], {DType::kI64, Shape{2}, reinterpret_cast<const std::byte*>(target)}};
  EXPECT_EQ((*run_specs(make_op(OpTag::kReshapeTo).value(), in))[0].bind({}), (Shape{4, 1}));
}

TEST(MakeOp, NamesFields) {
  const auto op = make_op(OpTag::kSlice, {{"axis", 1}, {"step", 2}});
  ASSERT_TRUE(op);
  EXPECT_EQ(op->attrs.i(3), 2);
  EXPECT_EQ(make_op(OpTag::kSlice, {{"no_such", 1}}).error().message(), "bad payload: no_such");
  EXPECT_EQ(make_op(OpTag::kSlice, {{"axis", 1.0F}}).error().message(), "bad payload: axis");
}

/// Runs a state op over steps [begin, end) of inputs whose dimension `axis` counts them.
struct Recurrence {
  Op op;
  std::vector<Shape> shapes;  // of the whole inputs
  std::vector<std::size_t> axes;
  std::vector<std::vector<float>> data;
  std::size_t y_axis;

  static Shape cut(Shape shape, std::size_t axis, std::int64_t n) {
    if (axis < shape.rank()) shape[axis] = n;
    return shape;
  }
  static std::vector<float> part(const std::vector<float>& x, const Shape& shape, std::size_t axis,
                                 std::int64_t begin, std::int64_t end) {
    if (axis >= shape.rank()) return x;
    std::int64_t outer = 1, inner = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
    for (std::size_t d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
    std::vector<float> out;
    for (std::int64_t o = 0; o < outer; ++o) {
      const auto from = x.begin() + (o * shape[axis] + begin) * inner;
      out.insert(out.end(), from, from + (end - begin) * inner);
    }
    return out;
  }
  std::vector<float> run(std::int64_t begin, std::int64_t end, std::vector<float>& state) const {
    std::vector<std::vector<float>> held;
    std::vector<TensorView> views;
    std::vector<TensorSpec> specs;
    for (std::size_t k = 0; k < data.size(); ++k) {
      held.push_back(part(data[k], shapes[k], axes[k], begin, end));
      const Shape shape = cut(shapes[k], axes[k], end - begin);
      views.push_back({DType::kF32, shape, nullptr});
      specs.push_back(TensorSpec::of(DType::kF32, shape));
    }
    for (std::size_t k = 0; k < views.size(); ++k)
      views[k].data = reinterpret_cast<const std::byte*>(held[k].data());
    const Shape state_shape = (*state_specs(op, specs))[0].bind({}).value();
    state.resize(static_cast<std::size_t>(state_shape.count()));
    const Shape y_shape = (*infer(op, specs))[0].bind({}).value();
    std::vector<float> y(static_cast<std::size_t>(y_shape.count()));
    const MutableTensorView out{DType::kF32, y_shape, reinterpret_cast<std::byte*>(y.data())};
    const MutableTensorView s{DType::kF32, state_shape, reinterpret_cast<std::byte*>(state.data())};
    const auto done = op_info(op.tag).reference({.attrs = op.attrs,
                                                 .inputs = views,
                                                 .outputs = std::span(&out, 1),
                                                 .state = std::span(&s, 1)});
    EXPECT_TRUE(done);
    return y;
  }
};

std::vector<float> some(const Shape& shape, float seed) {
  std::vector<float> out(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>((i * 37 + 11) % 17) / 17.0F - seed;
  return out;
}

void expect_split_equals_whole(Recurrence r, std::int64_t steps, std::int64_t at) {
  for (std::size_t k = 0; k < r.shapes.size(); ++k)
    r.data.push_back(some(r.shapes[k], 0.1F * static_cast<float>(k)));
  std::vector<float> whole_state, state;
  const std::vector<float> whole = r.run(0, steps, whole_state);
  const std::vector<float> first = r.run(0, at, state), second = r.run(at, steps, state);
  EXPECT_EQ(state, whole_state);
  Shape y = (r.op.tag == OpTag::kScan) ? r.shapes[0] : r.shapes[2];
  EXPECT_EQ(Recurrence::part(whole, y, r.y_axis, 0, at), first);
  EXPECT_EQ(Recurrence::part(whole, y, r.y_axis, at, steps), second);
}

TEST(State, ARunInTwoPartsHasTheBitsOfOne) {
  expect_split_equals_whole({{OpTag::kScan, make_op(OpTag::kScan)->attrs},
                             {{2, 5, 3}, {2, 5, 3}, {3, 4}, {2, 5, 4}, {2, 5, 4}, {3}},
                             {1, 1, 9, 1, 1, 9},
                             {},
                             1},
                            5, 2);
  expect_split_equals_whole({{OpTag::kGatedDelta, make_op(OpTag::kGatedDelta)->attrs},
                             {{2, 2, 6, 3}, {2, 2, 6, 3}, {2, 2, 6, 4}, {2, 2, 6}, {2, 2, 6}},
                             {2, 2, 2, 2, 2},
                             {},
                             2},
                            6, 1);
}

TEST(State, PureOpsHaveNone) {
  EXPECT_TRUE(state_specs({OpTag::kAdd, {}}, std::vector{f32({2}), f32({2})})->empty());
}

}  // namespace
}  // namespace cyb
