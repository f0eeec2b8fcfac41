// Case G05: the checks of a GGUF header's sizes cost a load of a big vocabulary next to nothing.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "import/gguf/gguf_file.hpp"
#include "import/gguf/gguf_vocab.hpp"
#include "import/gguf/metadata.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb::gguf {
namespace {

constexpr std::uint32_t kTokens = 262144;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

void put_key(std::string& out, std::string_view key, ValueType type) {
  put_text(out, key);
  put(out, type);
}

void put_array(std::string& out, std::string_view key, ValueType item, std::uint64_t count) {
  put_key(out, key, ValueType::kArray);
  put(out, item);
  put(out, count);
}

/// A header with a SentencePiece vocabulary of 262,144 tokens and no tensors.
std::string big_vocabulary() {
  std::string out = "GGUF";
  put<std::uint32_t>(out, 3);
  put<std::uint64_t>(out, 0);
  put<std::uint64_t>(out, 5);
  put_key(out, "tokenizer.ggml.model", ValueType::kString);
  put_text(out, "llama");
  put_array(out, "tokenizer.ggml.tokens", ValueType::kString, kTokens);
  for (std::uint32_t i = 0; i < kTokens; ++i)
    put_text(out, i == 0 ? "<unk>" : "token" + std::to_string(i));
  put_array(out, "tokenizer.ggml.scores", ValueType::kF32, kTokens);
  for (std::uint32_t i = 0; i < kTokens; ++i) put(out, -static_cast<float>(i));
  put_array(out, "tokenizer.ggml.token_type", ValueType::kI32, kTokens);
  for (std::uint32_t i = 0; i < kTokens; ++i) put<std::int32_t>(out, i == 0 ? 2 : 1);
  put_key(out, "tokenizer.ggml.unknown_token_id", ValueType::kU32);
  put<std::uint32_t>(out, 0);
  return out;
}

/// The same header as a reader without any check finds its way through it: lengths are believed.
std::vector<Value> unchecked_values(const std::string& file) {
  const auto all = std::as_bytes(std::span(file.data(), file.size()));
  std::size_t at = 24;
  const auto take = [&]<class T>(T value) {
    std::memcpy(&value, file.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  std::vector<Value> out;
  for (int i = 0; i < 5; ++i) {
    Value value;
    const auto length = take(std::uint64_t{});
    value.key = std::string_view(file).substr(at, length);
    at += length;
    value.type = value.item_type = take(ValueType{});
    std::size_t size = fixed_size(value.type);
    if (value.type == ValueType::kString) size = take(std::uint64_t{});
    if (value.type == ValueType::kArray) {
      value.item_type = take(ValueType{});
      value.count = take(std::uint64_t{});
      size = value.count * fixed_size(value.item_type);
    }
    const std::size_t begin = at;
    if (value.type == ValueType::kArray && value.item_type == ValueType::kString) {
      for (std::uint64_t k = 0; k < value.count; ++k) {
        const auto item = take(std::uint64_t{});
        at += item;
      }
    } else {
      at += size;
    }
    value.bytes = all.subspan(begin, at - begin);
    out.push_back(value);
  }
  return out;
}

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

std::size_t vocabulary_of(const std::vector<Value>& values) {
  Metadata metadata(values);
  const auto parts = read_vocabulary(metadata);
  EXPECT_TRUE(parts) << parts.error().text();
  return parts ? static_cast<std::size_t>(parts->vocabulary.size()) : 0;
}

TEST(GgufVocabulary, ChecksCostLessThanAFifthOfTheLoad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own checks are most of the time";
#endif
  const std::string file = big_vocabulary();
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  double best_checked = 1e9, best_unchecked = 1e9;
  // In alternation, the best of each: a disturbed run is longer, never shorter.
  for (int attempt = 0; attempt < 40; ++attempt) {
    double begin = thread_ms();
    const auto header = GgufFile::parse(bytes);
    ASSERT_TRUE(header) << header.error().text();
    ASSERT_EQ(vocabulary_of(header->values), kTokens);
    best_checked = std::min(best_checked, thread_ms() - begin);
    begin = thread_ms();
    ASSERT_EQ(vocabulary_of(unchecked_values(file)), kTokens);
    best_unchecked = std::min(best_unchecked, thread_ms() - begin);
    if (attempt >= 4 && best_checked < 1.2 * best_unchecked) break;
  }
  EXPECT_LT(best_checked, 1.2 * best_unchecked) << best_checked << " ms, " << best_unchecked;
  RecordProperty("checked_ms", std::to_string(best_checked));
  RecordProperty("unchecked_ms", std::to_string(best_unchecked));
}

}  // namespace
}  // namespace cyb::gguf
