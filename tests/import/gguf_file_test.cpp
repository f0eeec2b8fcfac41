// GGUF header parsing: every damaged file is refused for what it is, cheaply; odd but valid ones
// are read exactly as written.
#include "import/gguf/gguf_file.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "import/gguf/metadata.hpp"
#include "support/peak_memory.hpp"
#include "support/tiny_checkpoint.hpp"

namespace cyb::gguf {
namespace {

const std::string kBad = std::string(CYB_TESTS_DIR) + "/golden/bad/";

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The name stands in the file as it was read: after its own length, in full.
bool stands_in(const std::string& file, std::string_view name) {
  const std::uint64_t size = name.size();
  std::string needle(reinterpret_cast<const char*>(&size), sizeof size);
  needle += name;
  return file.find(needle) != std::string::npos;
}

TEST(GgufFile, DamagedFilesAreRefusedAndOddOnesReadAsWritten) {
  const auto expect = nlohmann::json::parse(test::read_file(kBad + "EXPECT.json"));
  std::size_t n = 0;
  const std::int64_t before = test::reset_peak();
  ASSERT_GT(before, 0);
  for (const auto& [path, row] : expect.items()) {
    if (!path.starts_with("gguf/") || row.at("stage") != "header") continue;
    SCOPED_TRACE(path + ": " + row.at("why").get<std::string>());
    const std::string bytes = test::read_file(kBad + path);
    const auto start = std::chrono::steady_clock::now();
    const auto file = GgufFile::parse(as_bytes(bytes));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    ++n;
    if (row.at("expect") == "refuse") {
      ASSERT_FALSE(file);
      EXPECT_EQ(file.error().code(), row.at("code").get<std::string>());
      EXPECT_TRUE(file.error().message().starts_with(row.at("message").get<std::string>()))
          << file.error().message();
      if (row.contains("mentions")) {
        EXPECT_NE(file.error().text().find(row["mentions"].get<std::string>()), std::string::npos)
            << file.error().text();
      }
      continue;
    }
    if (row.at("expect") == "ok") {
      ASSERT_TRUE(file) << file.error().text();
    }
    if (!file) continue;
    for (const TensorInfo& tensor : file->tensors)
      EXPECT_TRUE(stands_in(bytes, tensor.name)) << tensor.name;
    for (const Value& value : file->values) EXPECT_TRUE(stands_in(bytes, value.key)) << value.key;
  }
  EXPECT_GE(n, 70u);
  EXPECT_LT(test::peak_kib() - before, test::kRefusalPeakKib);
}

TEST(GgufFile, EveryValueTypeIsRead) {
  const std::string bytes = test::read_file(kBad + "gguf/ok-all-value-types.gguf");
  const auto file = GgufFile::parse(as_bytes(bytes));
  ASSERT_TRUE(file) << file.error().text();
  Metadata m(file->values);
  const IntegerRange any{INT64_MIN, INT64_MAX};
  EXPECT_EQ(m.integer("extra.0", any).value(), 255);
  EXPECT_EQ(m.integer("extra.1", any).value(), -128);
  EXPECT_EQ(m.integer("extra.2", any).value(), 65535);
  EXPECT_EQ(m.integer("extra.3", any).value(), -1);
  EXPECT_EQ(m.integer("extra.4", any).value(), 1);
  EXPECT_EQ(m.integer("extra.5", any).value(), -1);
  EXPECT_EQ(m.number("extra.6").value(), 1.5);
  EXPECT_TRUE(m.boolean_or("extra.7", false).value());
  EXPECT_EQ(m.text("extra.8").value(), "h\u00e9 \u6f22");
  EXPECT_FALSE(m.integer("extra.9", any));  // 2^64 - 1 is no i64
  EXPECT_EQ(m.integer("extra.10", any).value(), INT64_MIN);
  EXPECT_EQ(m.number("extra.11").value(), 2.5);
  const std::vector<std::string_view> texts{"a", "", "b"};
  EXPECT_EQ(m.texts_or_empty("extra.12").value(), texts);
  EXPECT_EQ(m.unread("extra.").size(), 3u);  // 13, 14, 15: in file order
  EXPECT_EQ(m.unread("extra.")[0], "extra.13");
  EXPECT_EQ(m.booleans_or_empty("extra.14", 2).value(), (std::vector<bool>{false, true}));
  EXPECT_FALSE(m.booleans_or_empty("extra.14", 3));
}

TEST(GgufFile, GettersNameTheKey) {
  const std::string bytes = test::read_file(kBad + "gguf/ok-all-value-types.gguf");
  const auto file = GgufFile::parse(as_bytes(bytes));
  ASSERT_TRUE(file);
  Metadata m(file->values);
  const auto names = [](const auto& result, std::string_view key) {
    return !result && result.error().kind() == ErrorKind::kInvalidConfig &&
           result.error().text().find(key) != std::string::npos;
  };
  EXPECT_TRUE(names(m.integer("extra.8", {0, 9}), "extra.8"));
  EXPECT_TRUE(names(m.integer("extra.6", {0, 9}), "extra.6"));
  EXPECT_TRUE(names(m.integer("extra.0", {0, 9}), "extra.0"));
  EXPECT_TRUE(names(m.integer("extra.12", {0, 9}), "extra.12"));
  EXPECT_TRUE(names(m.integer("absent", {0, 9}), "absent"));
  EXPECT_TRUE(names(m.number("extra.8"), "extra.8"));
  EXPECT_TRUE(names(m.text("extra.0"), "extra.0"));
  EXPECT_TRUE(names(m.boolean_or("extra.0", true), "extra.0"));
  EXPECT_TRUE(names(m.texts_or_empty("extra.13"), "extra.13"));
  EXPECT_TRUE(names(m.floats_or_empty("extra.12"), "extra.12"));
  EXPECT_TRUE(names(m.ints_or_empty("extra.13"), "extra.13"));
  EXPECT_TRUE(names(m.integers("extra.12", 3, {0, 9}), "extra.12"));
  EXPECT_EQ(m.integers("extra.4", 3, {0, 9}).value(), (std::vector<std::int64_t>{1, 1, 1}));
}

TEST(GgufFile, EveryPrefixIsRefused) {
  const std::string bytes = test::read_file(kBad + "gguf/ok-minimal.gguf");
  const auto whole = GgufFile::parse(as_bytes(bytes));
  ASSERT_TRUE(whole);
  std::uint64_t end = 0;
  for (const TensorInfo& tensor : whole->tensors)
    end = std::max(end, tensor.offset + tensor.size_bytes);
  for (std::size_t size = 0; size < end; ++size) {
    // A copy of exactly that size: reading one byte more is seen by the address sanitizer.
    const std::string prefix = bytes.substr(0, size);
    EXPECT_FALSE(GgufFile::parse(as_bytes(prefix))) << size;
  }
}

TEST(GgufFile, FlippedHeaderBytesNeverCrash) {
  const std::string bytes = test::read_file(kBad + "gguf/ok-minimal.gguf");
  const auto whole = GgufFile::parse(as_bytes(bytes));
  ASSERT_TRUE(whole);
  std::size_t n_refused = 0;
  for (std::size_t at = 0; at < whole->data_offset; ++at) {
    for (const int value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      n_refused += GgufFile::parse(as_bytes(damaged)) ? 0 : 1;
    }
  }
  EXPECT_GT(n_refused, whole->data_offset / 4);
}

}  // namespace
}  // namespace cyb::gguf
