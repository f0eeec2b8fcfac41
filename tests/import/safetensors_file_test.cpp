// Safetensors headers: the verdict on every file of tests/golden/bad, and exact reading of the good
// ones.
#include "import/safetensors/safetensors_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/peak_memory.hpp"
#include "support/tiny_checkpoint.hpp"

namespace cyb::safetensors {
namespace {

const std::string kBad = std::string(CYB_TESTS_DIR) + "/golden/bad/";

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string file_with(const std::string& header, std::size_t n_data) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + std::string(n_data, '\1');
}

TEST(SafetensorsFile, VerdictsOnDamagedAndOddFiles) {
  const auto expect = nlohmann::json::parse(test::read_file(kBad + "EXPECT.json"));
  std::size_t n = 0;
  const std::int64_t before = test::reset_peak();
  ASSERT_GT(before, 0);
  for (const auto& [path, row] : expect.items()) {
    if (!path.starts_with("safetensors/")) continue;
    SCOPED_TRACE(path + ": " + row.at("why").get<std::string>());
    const std::string bytes = test::read_file(kBad + path);
    const auto start = std::chrono::steady_clock::now();
    const auto file = SafetensorsFile::parse(as_bytes(bytes));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    ++n;
    if (row.at("expect") == "ok") {
      EXPECT_TRUE(file) << file.error().text();
    }
    ASSERT_EQ(file.has_value(), !row.contains("code"));
    if (file) continue;
    EXPECT_EQ(file.error().code(), row["code"].get<std::string>());
    EXPECT_TRUE(file.error().message().starts_with(row["message"].get<std::string>()))
        << file.error().message();
    if (row.contains("mentions")) {
      EXPECT_NE(file.error().text().find(row["mentions"].get<std::string>()), std::string::npos)
          << file.error().text();
    }
  }
  EXPECT_GE(n, 45u);
  EXPECT_LT(test::peak_kib() - before, test::kRefusalPeakKib);
}

// A header that is itself big costs memory in proportion, also where its last byte is wrong.
TEST(SafetensorsFile, MemoryFollowsTheHeader) {
  std::string header = "{";
  for (int i = 0; i < 400000; ++i) {
    header +=
        fmt::format(R"("t{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}},)", i, i, i + 1);
  }
  header.back() = 'x';
  const std::string bytes = file_with(header, 0);
  const std::int64_t before = test::reset_peak();
  ASSERT_GT(before, 0);
  EXPECT_FALSE(SafetensorsFile::parse(as_bytes(bytes)));
  EXPECT_LT(test::peak_kib() - before, 8 * static_cast<std::int64_t>(bytes.size()) / 1024);
}

TEST(SafetensorsFile, UnorderedHeaderIsReadInByteOrder) {
  const std::string bytes = file_with(
      R"({"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]},"__metadata__":{"k":"v"},"a":{"shape":[2],"data_offsets":[0,8],"dtype":"F32"}})",
      14);
  const auto file = SafetensorsFile::parse(as_bytes(bytes));
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_EQ(file->tensors[0].offset, file->data_offset);
  EXPECT_EQ(file->tensors[0].size_bytes, 8u);
  EXPECT_EQ(file->tensors[1].dtype, "F16");
  EXPECT_EQ(file->tensors[1].shape, Shape({3}));
  EXPECT_EQ(file->tensors[1].offset, file->data_offset + 8);
  ASSERT_EQ(file->metadata.size(), 1u);
  EXPECT_EQ(file->metadata[0].second, "v");
}

TEST(SafetensorsFile, NamesAndTheJsonReadersOwnHoles) {
  const auto parses = [](const std::string& header, std::size_t n) {
    return SafetensorsFile::parse(as_bytes(file_with(header, n))).has_value();
  };
  const std::string entry = R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_TRUE(parses(R"({"a)" + entry, 1));
  EXPECT_FALSE(parses(R"({"a\u0000b)" + entry, 1));
  EXPECT_FALSE(parses(R"({"../a)" + entry, 1));
  EXPECT_FALSE(parses(R"({")" + entry, 1));
  EXPECT_FALSE(parses(R"({"a)" + entry + std::string(1, '\0') + "junk",
                      1));  // a NUL does not end the header
  EXPECT_FALSE(parses(R"({"__metadata__":{},"__metadata__":{}})", 0));
  EXPECT_FALSE(
      parses(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1));  // ends inside a byte
  EXPECT_TRUE(parses(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1));
}

TEST(SafetensorsFile, FloatsHaveAnEncoding) {
  EXPECT_EQ(dtype_of("F32"), DType::kF32);
  EXPECT_EQ(dtype_of("F16"), DType::kF16);
  EXPECT_EQ(dtype_of("BF16"), DType::kBf16);
  EXPECT_EQ(dtype_of("F8_E4M3"), DType::kFp8e4m3);
  EXPECT_EQ(dtype_of("F8_E5M2"), DType::kFp8e5m2);
  EXPECT_FALSE(dtype_of("F8_E8M0"));
  EXPECT_FALSE(dtype_of("nonsense"));
}

TEST(SafetensorsFile, EveryPrefixIsRefused) {
  const std::string bytes = test::read_file(kBad + "safetensors/ok-unordered.safetensors");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string prefix = bytes.substr(0, size);
    EXPECT_FALSE(SafetensorsFile::parse(as_bytes(prefix))) << size;
  }
}

}  // namespace
}  // namespace cyb::safetensors
