// The format table against spec model-format 6, and shape arithmetic at its edges.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb {
namespace {

TEST(DType, TableIsConsistent) {
  std::set<std::string> names;
  std::set<int> tags;
  for (const FormatInfo& format : all_formats()) {
    EXPECT_TRUE(names.insert(std::string(format.name)).second) << format.name;
    EXPECT_TRUE(tags.insert(static_cast<int>(format.dtype)).second) << format.name;
    EXPECT_EQ(find_dtype(format.name), format.dtype);
    EXPECT_EQ(dtype_from_tag(static_cast<std::uint8_t>(format.dtype)), format.dtype);
    EXPECT_EQ(&format_info(format.dtype), &format);
    if (format.gguf_type >= 0) {
      EXPECT_EQ(dtype_from_gguf(static_cast<std::uint32_t>(format.gguf_type)), format.dtype);
    }
  }
  EXPECT_FALSE(find_dtype("u32"));
  EXPECT_FALSE(find_dtype(""));
  EXPECT_FALSE(dtype_from_tag(255));
  EXPECT_FALSE(dtype_from_gguf(9));  // Q8_1
  EXPECT_FALSE(dtype_from_gguf(0xFFFFFFFFu));
}

TEST(DType, BitsPerValueOfTheSpec) {
  const auto bits = [](DType dtype) {
    const FormatInfo& f = format_info(dtype);
    return 8.0 * f.block_bytes / f.block_values;
  };
  EXPECT_EQ(bits(DType::kQ8), 8.5);
  EXPECT_EQ(bits(DType::kQ4_1), 5.0);
  EXPECT_EQ(bits(DType::kQ2k), 2.625);
  EXPECT_EQ(bits(DType::kQ3k), 3.4375);
  EXPECT_EQ(bits(DType::kQ6k), 6.5625);
  EXPECT_EQ(bits(DType::kTernary), 2.0);
}

TEST(Shape, ElementsRefusesOverflowAndNegatives) {
  EXPECT_EQ(Shape{}.elements(), 1u);
  EXPECT_EQ((Shape{2, 3, 4}.elements()), 24u);
  EXPECT_EQ((Shape{0, 5}.elements()), 0u);
  EXPECT_FALSE((Shape{2, -1}.elements()));
  constexpr std::int64_t big = std::int64_t{1} << 62;
  EXPECT_FALSE((Shape{big, 8}.elements()));
  EXPECT_EQ((Shape{big, 8, 0}.elements()), 0u);
  EXPECT_FALSE((Shape{big, 8, -1, 0}.elements()));
  EXPECT_EQ((Shape{2, 3}.text()), "[2, 3]");
  EXPECT_EQ(Shape{}.text(), "[]");
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
}

TEST(Shape, BytesNeedWholeBlocks) {
  EXPECT_EQ(tensor_bytes(DType::kF32, Shape{6, 32}), 768u);
  EXPECT_EQ(tensor_bytes(DType::kQ8, Shape{32, 32}), 1088u);
  EXPECT_EQ(tensor_bytes(DType::kQ4, Shape{64, 32}), 1152u);
  EXPECT_FALSE(tensor_bytes(DType::kQ4, Shape{64, 33}));
  EXPECT_FALSE(tensor_bytes(DType::kQ4k, Shape{64, 128}));
  EXPECT_FALSE(tensor_bytes(DType::kQ4k, Shape{}));
  EXPECT_FALSE(tensor_bytes(DType::kF64, Shape{std::int64_t{1} << 61}));
}

TEST(TensorView, Rows) {
  std::byte data[4 * 34] = {};
  const TensorView t{DType::kQ8, Shape{2, 2, 32}, data};
  EXPECT_EQ(row_bytes(DType::kQ8, 32), 34u);
  EXPECT_EQ(row_count(t.shape), 4);
  const TensorView r = rows_of(t, 1, 3);
  EXPECT_EQ(r.data, data + 34);
  EXPECT_EQ(r.shape, (Shape{3, 32}));
}

}  // namespace
}  // namespace cyb
