// NumPy files: what we write, what numpy writes, and what is refused.
#include "tensor/npy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace cyb {
namespace {

std::string with_header(std::string text, std::size_t data_bytes) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 0xFF);
  out += static_cast<char>(text.size() >> 8);
  return out + text + std::string(data_bytes, '\0');
}

std::string read_error(const std::string& file) {
  const auto view = parse_npy(std::as_bytes(std::span(file)));
  return view ? "read" : view.error().text();
}

TEST(Npy, WhatIsWrittenIsRead) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kF64, DType::kI8, DType::kU8, DType::kBool, DType::kI16,
        DType::kUint16, DType::kI32, DType::kUint32, DType::kI64, DType::kUint64}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 5}, Shape{1, 1, 2, 1}}) {
      std::string file = npy_header(dtype, shape).value();
      EXPECT_EQ(file.size() % 64, 0u);
      file.append(tensor_bytes(dtype, shape).value(), '\x01');
      const auto view = parse_npy(std::as_bytes(std::span(file)));
      ASSERT_TRUE(view) << view.error().text();
      EXPECT_EQ(view->dtype, dtype);
      EXPECT_EQ(view->shape, shape);
    }
  }
  EXPECT_FALSE(npy_header(DType::kQ8, {32}));
}

// As numpy 1.26 writes it: numpy.save of float32 [[1, 2]].
TEST(Npy, NumpysOwnHeader) {
  const std::string text =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }" + std::string(58, ' ') + "\n";
  std::string file = with_header(text, 8);
  const float two = 2;
  std::memcpy(file.data() + file.size() - 4, &two, 4);
  const auto view = parse_npy(std::as_bytes(std::span(file)));
  ASSERT_TRUE(view) << view.error().text();
  float second = 0;
  std::memcpy(&second, view->data + 4, 4);
  EXPECT_EQ(second, 2.0f);
}

TEST(Npy, BadFilesAreRefusedByName) {
  EXPECT_EQ(read_error(""), "not a NumPy file: wrong magic");
  EXPECT_EQ(read_error("PK\x03\x04 and so on"), "not a NumPy file: wrong magic");
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(read_error(with_header(good, 8)), "read");
  EXPECT_NE(read_error(with_header(good, 7)).find("7 bytes of data"), std::string::npos);
  EXPECT_NE(read_error(with_header(good, 9)).find("9 bytes of data"), std::string::npos);
  const auto header = [](const std::string& descr, const std::string& shape) {
    return with_header("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}",
                       8);
  };
  EXPECT_NE(read_error(header("'>f4'", "(2,)")).find(">f4"), std::string::npos);
  EXPECT_NE(read_error(header("[('a', '<f4')]", "(2,)")).find("structured"), std::string::npos);
  EXPECT_NE(read_error(header("'|O'", "(2,)")).find("|O"), std::string::npos);
  EXPECT_NE(read_error(header("'<f4'", "(-2,)")).find("shape"), std::string::npos);
  EXPECT_NE(read_error(header("'<f4'", "(2")).find("shape"), std::string::npos);
  EXPECT_NE(read_error(header("'<f4'", "(9223372036854775807,9223372036854775807)"))
                .find("more than there can be"),
            std::string::npos);
  EXPECT_NE(read_error(header("'<f4'", "(1,1,1,1,1,1,1,1,2)")).find("rank"), std::string::npos);
  EXPECT_NE(read_error(with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2,1), }", 8))
                .find("Fortran"),
            std::string::npos);
  const std::string whole = with_header(good, 8);
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_NE(read_error(whole.substr(0, cut)), "read") << cut;
}

}  // namespace
}  // namespace cyb
