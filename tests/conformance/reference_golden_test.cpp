// The f32 references against numpy, torch, transformers and gguf (tests/golden/make/ops.py): shapes
// by the shape rule, values within the class of the op.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/half.hpp"
#include "conformance/golden_file.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

std::vector<float> floats(const TensorView& view) {
  const auto n = static_cast<std::size_t>(view.shape.count());
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] =
        view.dtype == DType::kF16 ? f16_to_f32(view.as<std::uint16_t>()[i]) : view.as<float>()[i];
  }
  return out;
}

/// Length of the sums behind a class M output.
std::size_t dot_length(const GoldenCase& c) {
  return static_cast<std::size_t>(c.inputs[0].shape.back());
}

void check_values(const GoldenCase& c, const TensorView& got, const TensorView& want) {
  const bool is_float = want.dtype == DType::kF32 || want.dtype == DType::kF16;
  if (!is_float || op_info(c.op.tag).cls == ToleranceClass::kX) {
    const auto bytes = tensor_bytes(want.dtype, want.shape).value();
    EXPECT_EQ(std::memcmp(got.data, want.data, bytes), 0) << c.name;
    return;
  }
  const double error = error_of(floats(got), floats(want));
  EXPECT_LE(error, tolerance(op_info(c.op.tag).cls, want.dtype, dot_length(c))) << c.name;
}

void run(const GoldenCase& c) {
  std::vector<TensorSpec> specs;
  for (const TensorView& in : c.inputs) {
    specs.push_back(in.present() ? TensorSpec::of(in.dtype, in.shape) : TensorSpec::none());
  }
  const auto inferred = infer(c.op, specs);
  ASSERT_TRUE(inferred) << c.name << ": " << inferred.error().text();
  ASSERT_EQ(inferred->size(), c.outputs.size()) << c.name;
  std::vector<std::vector<std::byte>> memory;
  std::vector<MutableTensorView> outputs;
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    const TensorView& want = c.outputs[i];
    ASSERT_EQ((*inferred)[i].dtype, want.dtype) << c.name;
    ASSERT_EQ((*inferred)[i].bind({}), want.shape) << c.name;
    memory.emplace_back(tensor_bytes(want.dtype, want.shape).value() + 1);
    outputs.push_back({want.dtype, want.shape, memory.back().data()});
  }
  const auto done =
      op_info(c.op.tag).reference({.attrs = c.op.attrs, .inputs = c.inputs, .outputs = outputs});
  ASSERT_TRUE(done) << c.name << ": " << done.error().text();
  for (std::size_t i = 0; i < outputs.size(); ++i) check_values(c, outputs[i], c.outputs[i]);
}

class ReferenceGolden : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceGolden, MatchesTheOtherImplementation) {
  const GoldenFile file(GetParam());
  ASSERT_FALSE(file.cases().empty());
  for (const GoldenCase& c : file.cases()) run(c);
}

INSTANTIATE_TEST_SUITE_P(Files, ReferenceGolden,
                         testing::Values("matmul", "embed", "sdpa", "rope", "norm", "activation",
                                         "layout"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace cyb::test
