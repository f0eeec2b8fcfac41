// Case I03: suppression is per class; what is equal comes in the order of its index.
#include <gtest/gtest.h>

#include <vector>

#include "ops/op.hpp"

namespace cyb {
namespace {

/// Rows (batch, class, box) that NonMaxSuppression keeps of one image.
std::vector<std::vector<std::int32_t>> kept(const std::vector<float>& boxes,
                                            const std::vector<float>& scores,
                                            std::int64_t classes) {
  const auto n = static_cast<std::int64_t>(boxes.size()) / 4;
  const Op op = make_op(OpTag::kNonMaxSuppression,
                        {{"iou", 0.5F}, {"score", 0.1F}, {"max", std::int64_t{10}}})
                    .value();
  const std::vector<TensorView> inputs = {
      {DType::kF32, Shape{1, n, 4}, reinterpret_cast<const std::byte*>(boxes.data())},
      {DType::kF32, Shape{1, classes, n}, reinterpret_cast<const std::byte*>(scores.data())}};
  const auto specs = run_specs(op, inputs);
  EXPECT_TRUE(specs) << specs.error().text();
  const Shape shape = *(*specs)[0].bind({});
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.count()));
  const MutableTensorView view{DType::kI32, shape, reinterpret_cast<std::byte*>(values.data())};
  const auto done = op_info(op.tag).reference(
      {.attrs = op.attrs, .inputs = inputs, .outputs = std::span(&view, 1)});
  EXPECT_TRUE(done);
  std::vector<std::vector<std::int32_t>> rows;
  for (std::size_t i = 0; i + 2 < values.size(); i += 3)
    rows.push_back({values[i], values[i + 1], values[i + 2]});
  return rows;
}

using Rows = std::vector<std::vector<std::int32_t>>;

TEST(Nms, ClassesDoNotSuppressEachOther) {
  const std::vector<float> same = {0, 0, 1, 1, 0, 0, 1, 1};
  EXPECT_EQ(kept(same, {0.9F, 0, 0, 0.8F}, 2), (Rows{{0, 0, 0}, {0, 1, 1}}));
  // Without classes: one score a box, and one box is kept.
  EXPECT_EQ(kept(same, {0.9F, 0.8F}, 1), (Rows{{0, 0, 0}}));
}

TEST(Nms, EqualScoresTakeTheLowerIndexFirst) {
  const std::vector<float> same = {0, 0, 1, 1, 0, 0, 1, 1};
  EXPECT_EQ(kept(same, {0.5F, 0.5F}, 1), (Rows{{0, 0, 0}}));
  const std::vector<float> apart = {5, 5, 6, 6, 0, 0, 1, 1, 2, 2, 3, 3};
  EXPECT_EQ(kept(apart, {0.5F, 0.7F, 0.5F}, 1), (Rows{{0, 0, 1}, {0, 0, 0}, {0, 0, 2}}));
}

}  // namespace
}  // namespace cyb
