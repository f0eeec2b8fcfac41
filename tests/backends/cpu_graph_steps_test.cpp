// Steps that graphs alone have, one at a time as plans: on every ISA and 1, 2 and 3 threads the cpu
// backend gives equal bits, within the class of the op of what the reference backend gives.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

#include "backends/backend.hpp"
#include "backends/cpu/kernels/table.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

using Ints = std::vector<std::int64_t>;

struct Input {
  Shape shape;
  bool weight = false;
  Ints integers = {};  // an i64 list
};

Input x(const Shape& shape) {
  return {shape};
}
Input w(const Shape& shape) {
  return {shape, true};
}
Input list(Ints values) {
  return {Shape{static_cast<std::int64_t>(values.size())}, true, values};
}

struct StepCase {
  const char* name;
  OpTag tag;
  std::vector<NamedAttr> attrs;
  std::vector<Input> inputs;
  std::size_t k = 64;       // length of the sums
  bool accelerated = true;  // has a kernel of its own
};

std::vector<NamedAttr> conv(Ints strides, Ints dilations, Ints pads, std::int64_t groups) {
  return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"groups", groups}};
}

std::vector<NamedAttr> conv_transpose(Ints strides) {
  return {{"strides", strides}, {"groups", std::int64_t{1}}};
}

/// One step with its data.
class OneStep {
 public:
  explicit OneStep(const StepCase& c) : case_(c) {
    std::mt19937 rng(7);
    std::normal_distribution<float> normal;
    for (const Input& in : c.inputs) {
      const bool numbers = in.integers.empty();
      const auto n = static_cast<std::size_t>(in.shape.count());
      bytes_.emplace_back(n * (numbers ? 4 : 8));
      if (!numbers) {
        std::memcpy(bytes_.back().data(), in.integers.data(), n * 8);
        continue;
      }
      for (std::size_t i = 0; i < n; ++i) {
        const float value = normal(rng);
        std::memcpy(bytes_.back().data() + 4 * i, &value, 4);
      }
    }
  }

  /// The first output; `fallbacks` gets the steps without a kernel.
  std::vector<float> run(Backend& backend, std::uint32_t& fallbacks) {
    Plan plan;
    plan.token_step = false;
    Step step{make_op(case_.tag, std::span<const NamedAttr>(case_.attrs)).value(), {}, {}, "step"};
    std::vector<std::unique_ptr<Weight>> weights;
    std::vector<TensorView> tensors;
    std::vector<TensorSpec> specs;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      const Input& in = case_.inputs[i];
      const DType dtype = in.integers.empty() ? DType::kF32 : DType::kI64;
      specs.push_back(TensorSpec::of(dtype, in.shape));
      if (!in.integers.empty()) {
        specs.back().value.emplace();
        for (const std::int64_t v : in.integers) specs.back().value->emplace_back(v);
      }
      Operand operand{.dtype = dtype, .shape = in.shape};
      if (in.weight) {
        const WeightSource source{"w" + std::to_string(i), dtype, in.shape, bytes_[i]};
        const auto use = dtype == DType::kF32 ? WeightUse::kVector : WeightUse::kGather;
        weights.push_back(backend.load_weight(source, use, {}).value());
        operand.kind = Operand::Kind::kWeight;
        operand.weight = weights.back().get();
      } else {
        operand.kind = Operand::Kind::kTensor;
        operand.index = static_cast<std::uint32_t>(tensors.size());
        tensors.push_back({dtype, in.shape, bytes_[i].data()});
        plan.tensors.push_back(TensorSpec::of(dtype, in.shape));
      }
      step.inputs.push_back(operand);
    }
    const std::vector<TensorSpec> outputs = infer(step.op, specs).value();
    for (const TensorSpec& spec : outputs) {
      const Shape shape = spec.bind({}).value();
      step.outputs.push_back({.kind = Operand::Kind::kArena,
                              .dtype = spec.dtype,
                              .shape = shape,
                              .offset = plan.arena_bytes});
      plan.arena_bytes += (tensor_bytes(spec.dtype, shape).value() + 255) / 256 * 256;
    }
    plan.outputs = {step.outputs[0]};
    plan.steps.push_back(std::move(step));
    auto executable = backend.compile(std::move(plan)).value();
    EXPECT_TRUE(executable->submit({.tensors = tensors}));
    EXPECT_TRUE(executable->sync());
    fallbacks = executable->n_fallback_steps();
    const auto out = executable->output(0).value();
    return {out.begin(), out.end()};
  }

 private:
  const StepCase& case_;
  std::deque<std::vector<std::byte>> bytes_;
};

std::vector<StepCase> step_cases() {
  using T = OpTag;
  return {
      {"pointwise", T::kConv, conv({}, {}, {}, 1), {x({2, 20, 7, 9}), w({13, 20, 1, 1}), w({13})}},
      {"small_map",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 1),
       {x({1, 9, 5, 6}), w({14, 9, 3, 3})},
       81},
      {"rows_meet",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 1),
       {x({1, 3, 10, 20}), w({7, 3, 3, 3}), w({7})}},
      {"stride", T::kConv, conv({2, 2}, {}, {1, 1, 1, 1}, 1), {x({1, 3, 33, 35}), w({8, 3, 3, 3})}},
      {"uneven",
       T::kConv,
       conv({1, 3}, {2, 1}, {0, 2, 3, 1}, 1),
       {x({2, 2, 17, 19}), w({3, 2, 3, 5})}},
      {"long_k",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 1),
       {x({1, 70, 4, 4}), w({19, 70, 3, 3})},
       630},
      {"many_rows", T::kConv, conv({}, {}, {}, 1), {x({1, 40, 7, 7}), w({300, 40, 1, 1})}},
      {"windows",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 1),
       {x({2, 16, 9, 11}), w({24, 16, 3, 3}), w({24})},
       144},
      {"windows_uneven",
       T::kConv,
       conv({}, {}, {0, 2, 1, 1}, 1),
       {x({1, 32, 11, 6}), w({37, 32, 3, 3})},
       288},
      {"windows_long",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 1),
       {x({1, 272, 6, 5}), w({16, 272, 3, 3})},
       2448},
      {"windows_many",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 1),
       {x({1, 16, 40, 33}), w({16, 16, 3, 3}), w({16})},
       144},
      {"outputs_24", T::kConv, conv({}, {}, {}, 1), {x({1, 40, 5, 13}), w({24, 40, 1, 1})}},
      {"outputs_40",
       T::kConv,
       conv({2, 2}, {}, {1, 1, 1, 1}, 1),
       {x({1, 9, 13, 17}), w({40, 9, 3, 3})},
       81},
      {"outputs_8", T::kConv, conv({}, {}, {}, 1), {x({3, 33, 4, 5}), w({8, 33, 1, 1}), w({8})}},
      {"long_channels",
       T::kConv,
       conv({}, {}, {0, 1, 0, 1}, 1),
       {x({1, 300, 3, 5}), w({18, 300, 1, 3})},
       900},
      {"one_pixel", T::kConv, conv({}, {}, {}, 1), {x({1, 70, 1, 1}), w({100, 70, 1, 1})}, 70},
      {"seven",
       T::kConv,
       conv({2, 2}, {}, {3, 3, 3, 3}, 1),
       {x({1, 3, 30, 29}), w({20, 3, 7, 7})},
       147},
      {"groups_wide",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1}, 2),
       {x({1, 34, 6, 7}), w({50, 17, 3, 3}), w({50})},
       153},
      {"transposed_one",
       T::kConvTranspose,
       conv_transpose({2, 2}),
       {x({1, 24, 9, 20}), w({24, 1, 2, 2}), w({1})}},
      {"transposed_windows",
       T::kConvTranspose,
       conv_transpose({3, 2}),
       {x({2, 300, 4, 5}), w({300, 7, 3, 2})},
       300},
      {"groups", T::kConv, conv({}, {}, {1, 1, 1, 1}, 3), {x({2, 6, 9, 9}), w({9, 2, 3, 3})}},
      {"line", T::kConv, conv({2}, {3}, {4, 2}, 1), {x({2, 5, 61}), w({6, 5, 4}), w({6})}},
      {"volume",
       T::kConv,
       conv({}, {}, {1, 1, 1, 1, 1, 1}, 1),
       {x({1, 2, 5, 6, 7}), w({4, 2, 3, 3, 3})}},
      {"depthwise",
       T::kConv,
       conv({}, {}, {2, 2, 2, 2}, 5),
       {x({2, 5, 11, 37}), w({5, 1, 5, 5}), w({5})}},
      {"depthwise_stride",
       T::kConv,
       conv({2, 2}, {}, {1, 1, 1, 1}, 4),
       {x({1, 4, 12, 41}), w({4, 1, 3, 3})}},
      {"depthwise_narrow",
       T::kConv,
       conv({}, {}, {3, 3, 3, 3}, 2),
       {x({1, 2, 4, 2}), w({2, 1, 7, 7})}},
      {"transposed",
       T::kConvTranspose,
       conv({2, 2}, {}, {}, 1),
       {x({2, 9, 6, 7}), w({9, 5, 2, 2}), w({5})}},
      {"transposed_overlap",
       T::kConvTranspose,
       conv({2, 1}, {1, 2}, {1, 0, 1, 1}, 1),
       {x({1, 10, 5, 6}), w({10, 3, 4, 3})},
       90},
      {"transposed_line",
       T::kConvTranspose,
       conv({4}, {}, {2, 2}, 2),
       {x({1, 8, 33}), w({8, 3, 8})},
       64},
      {"batched", T::kBatchMatmul, {}, {x({2, 3, 7, 33}), x({3, 33, 50})}},
      {"batched_long", T::kBatchMatmul, {}, {x({100, 300}), x({300, 18})}, 300},
      {"stored", T::kBatchMatmul, {}, {x({2, 37, 70}), w({70, 41})}, 70},
      {"stored_long", T::kBatchMatmul, {}, {x({5, 600}), w({600, 24})}, 600},
      {"vector", T::kBatchMatmul, {}, {x({40}), x({2, 40, 9})}},
      {"linear", T::kMatmul, {}, {x({37, 70}), x({29, 70})}, 70, false},
      {"softmax", T::kSoftmax, {{"dim", std::int64_t{-1}}}, {x({3, 5, 37})}},
      {"softmax_inside", T::kSoftmax, {{"dim", std::int64_t{1}}}, {x({2, 16, 4, 21})}},
      {"layer_norm", T::kLayerNorm, {{"eps", 1e-5F}}, {x({7, 45}), w({45}), w({45})}},
      {"group_norm",
       T::kGroupNorm,
       {{"num_groups", std::int64_t{3}}, {"eps", 1e-5F}},
       {x({2, 12, 7, 9}), w({12}), w({12})}},
      {"instance_norm", T::kInstanceNorm, {{"eps", 1e-5F}}, {x({2, 5, 131})}},
      {"mean", T::kReduceMean, {{"axes", Ints{-1}}, {"keep", std::int64_t{1}}}, {x({6, 99})}},
      {"sum_of_two", T::kReduceSum, {{"axes", Ints{2, 1}}}, {x({3, 4, 21})}, 84},
      {"reduce",
       T::kReduce,
       {{"kind", std::int64_t{1}}, {"keep", std::int64_t{1}}},
       {x({2, 3, 17, 5}), list({2, 3})},
       85},
      {"erf", T::kErf, {}, {x({700})}},
      {"hard_swish", T::kHardSwish, {}, {x({3, 77})}},
      {"divide_rows", T::kDiv, {}, {x({3, 4, 19}), x({4, 1})}},
      {"divide_by_row", T::kDiv, {}, {x({3, 4, 19}), x({19})}},
      {"divided", T::kDiv, {}, {x({1}), x({4, 31})}},
      {"max_pool",
       T::kMaxPool,
       {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
       {x({2, 3, 13, 18})}},
      {"max_pool_wide",
       T::kMaxPool,
       {{"kernel", Ints{5, 5}}, {"pads", Ints{2, 2, 2, 2}}},
       {x({1, 3, 10, 11})}},
      {"pad", T::kPadBy, {}, {x({2, 3, 5}), list({0, 1, 2, 1, 0, 3})}},
      {"pad_edge",
       T::kPadBy,
       {{"mode", std::int64_t{2}}},
       {x({2, 4, 5}), list({0, 1, 2, 1, 0, 3})}},
      {"permute", T::kPermute, {{"dims", Ints{0, 3, 1, 2}}}, {x({2, 19, 21, 34})}},
      {"permute_all", T::kPermute, {{"dims", Ints{3, 2, 1, 0}}}, {x({3, 17, 5, 18})}},
  };
}

class CpuGraphSteps : public testing::TestWithParam<StepCase> {};

TEST_P(CpuGraphSteps, HaveTheSameBitsEverywhereAndThoseOfTheReferenceNearly) {
  const StepCase& c = GetParam();
  OneStep step(c);
  std::uint32_t fallbacks = 0;
  const auto reference = create_backend("reference", {}).value();
  const std::vector<float> want = step.run(*reference, fallbacks);
  std::vector<float> first;
  const char* isas[8];
  for (std::size_t i = cpu::available_isas(isas, std::size(isas)); i-- > 0;) {
    for (const unsigned threads : {1u, 2u, 3u}) {
      const auto cpu = create_backend("cpu", {.n_threads = threads, .isa = isas[i]}).value();
      const std::vector<float> got = step.run(*cpu, fallbacks);
      ASSERT_EQ(fallbacks == 0, c.accelerated) << isas[i];
      ASSERT_LE(error_of(got, want), tolerance(op_info(c.tag).cls, DType::kF32, c.k))
          << isas[i] << ", " << threads << " threads";
      if (first.empty()) first = got;
      ASSERT_EQ(std::memcmp(first.data(), got.data(), got.size() * sizeof(float)), 0)
          << isas[i] << ", " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, CpuGraphSteps, testing::ValuesIn(step_cases()),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace cyb::test
