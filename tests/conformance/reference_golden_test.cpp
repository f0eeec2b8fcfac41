// The references against numpy, torch, transformers, gguf (tests/golden/make/ops.py) and the ONNX
// project's node cases (onnx_ops.py): shapes by the shape rule and the data, values within the
// class of the op.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "conformance/golden_file.hpp"
#include "ops/typed.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

std::vector<float> floats(const TensorView& view) {
  const auto n = static_cast<std::size_t>(view.shape.count());
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(ref::number_at(view, i));
  return out;
}

/// Length of the sums behind a class M output.
std::size_t dot_length(const GoldenCase& c) {
  const Shape shape = c.inputs.empty() ? Shape{} : c.inputs[0].shape;
  return shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape.back());
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kF64;
}

/// Equal bits, NaNs aside.
bool equal(const TensorView& a, const TensorView& b) {
  const std::size_t bytes = ref::element_bytes(a.dtype);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.shape.count()); ++i) {
    if (std::memcmp(a.data + i * bytes, b.data + i * bytes, bytes) == 0) continue;
    const bool nans =
        is_float(a.dtype) && std::isnan(ref::number_at(a, i)) && std::isnan(ref::number_at(b, i));
    if (!nans) return false;
  }
  return true;
}

void check_values(const GoldenCase& c, std::size_t k, const TensorView& got) {
  const TensorView& want = c.outputs[k];
  if (!is_float(want.dtype) || op_info(c.op.tag).cls == ToleranceClass::kX) {
    EXPECT_TRUE(equal(got, want)) << c.name << " output " << k;
    return;
  }
  const double error = error_of(floats(got), floats(want));
  EXPECT_LE(error, tolerance(op_info(c.op.tag).cls, want.dtype, dot_length(c)))
      << c.name << " output " << k;
}

void run(const GoldenCase& c) {
  const auto specs = run_specs(c.op, c.inputs);
  ASSERT_TRUE(specs) << c.name << ": " << specs.error().text();
  ASSERT_GE(specs->size(), c.outputs.size()) << c.name;
  std::vector<std::vector<std::byte>> memory;
  std::vector<MutableTensorView> outputs;
  for (std::size_t i = 0; i < specs->size(); ++i) {
    const Shape shape = (*specs)[i].bind({}).value();
    if (i < c.outputs.size() && c.outputs[i].present()) {
      ASSERT_EQ((*specs)[i].dtype, c.outputs[i].dtype) << c.name;
      ASSERT_EQ(shape, c.outputs[i].shape)
          << c.name << ": " << shape.text() << " " << c.outputs[i].shape.text();
    }
    memory.emplace_back(tensor_bytes((*specs)[i].dtype, shape).value() + 1);
    outputs.push_back({(*specs)[i].dtype, shape, memory.back().data()});
  }
  const auto done =
      op_info(c.op.tag).reference({.attrs = c.op.attrs, .inputs = c.inputs, .outputs = outputs});
  ASSERT_TRUE(done) << c.name << ": " << done.error().text();
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    if (c.outputs[i].present()) check_values(c, i, outputs[i]);
  }
}

class ReferenceGolden : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceGolden, MatchesTheOtherImplementation) {
  const GoldenFile file(GetParam());
  ASSERT_FALSE(file.cases().empty());
  for (const GoldenCase& c : file.cases()) run(c);
}

INSTANTIATE_TEST_SUITE_P(Files, ReferenceGolden,
                         testing::Values("matmul", "embed", "sdpa", "rope", "norm", "activation",
                                         "layout", "onnx_layout", "onnx_math", "onnx_nn",
                                         "onnx_recurrent", "torch", "onnx_misc"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace cyb::test
