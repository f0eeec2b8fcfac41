// Small vocabularies of the tests: tokenizer.json files, and the arrays of GGUF metadata read
// without the importer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/reader.hpp"
#include "text/gguf_vocabulary.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_json.hpp"

namespace cyb {

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string golden_path(const std::string& name) {
  return std::string(CYB_TESTS_DIR) + "/golden/" + name;
}

inline std::unique_ptr<Tokenizer> make_tokenizer(Result<TokenizerParts> parts) {
  if (!parts) {
    ADD_FAILURE() << parts.error().text();
    return nullptr;
  }
  auto made = Tokenizer::create(std::move(*parts));
  if (!made) {
    ADD_FAILURE() << made.error().text();
    return nullptr;
  }
  return std::move(*made);
}

/// The tokenizer keys of a GGUF file.
class GgufTokenizerFile {
 public:
  explicit GgufTokenizerFile(const std::string& path) : bytes_(file_text(path)) { parse(); }

  GgufVocabulary vocabulary() const {
    GgufVocabulary out;
    out.model = text("model");
    out.pre = text("pre");
    out.tokens = view(strings_, "tokens");
    out.merges = view(strings_, "merges");
    out.scores = view(floats_, "scores");
    out.token_types = view(ints_, "token_type");
    out.bos_id = number("bos_token_id");
    out.eos_id = number("eos_token_id");
    out.unk_id = number("unknown_token_id");
    out.pad_id = number("padding_token_id");
    out.add_bos = flag("add_bos_token");
    out.add_eos = flag("add_eos_token");
    out.add_space_prefix = flag("add_space_prefix");
    out.cls_id = number("cls_token_id");
    out.sep_id = number("seperator_token_id");
    out.add_sep = flag("add_sep_token");
    out.remove_extra_whitespaces = flag("remove_extra_whitespaces");
    out.charsmap = text("precompiled_charsmap");
    return out;
  }

 private:
  static constexpr std::string_view kPrefix = "tokenizer.ggml.";

  template <class T>
  T take(BoundedReader& reader) {
    auto value = reader.read<T>();
    EXPECT_TRUE(value.has_value());
    return value ? *value : T{};
  }
  std::string_view take_string(BoundedReader& reader) {
    auto text = reader.take_text(take<std::uint64_t>(reader));
    EXPECT_TRUE(text.has_value());
    return text ? *text : std::string_view();
  }

  // Types: 0..6 integers and f32 by size, 7 bool, 8 string, 9 array, 10..12 64 bits.
  void skip_or_keep(BoundedReader& reader, const std::string& key, std::uint32_t type) {
    static constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      texts_[key] = std::string(take_string(reader));
      return;
    }
    std::int64_t value = 0;
    auto raw = reader.take(kSizes[type]);
    ASSERT_TRUE(raw.has_value());
    std::memcpy(&value, raw->data(), raw->size());
    numbers_[key] = value;
  }

  void parse() {
    BoundedReader reader(std::as_bytes(std::span(bytes_)));
    ASSERT_EQ(take<std::uint32_t>(reader), 0x46554747U);  // "GGUF"
    take<std::uint32_t>(reader);
    take<std::uint64_t>(reader);
    const std::uint64_t n_keys = take<std::uint64_t>(reader);
    for (std::uint64_t i = 0; i < n_keys; ++i) {
      std::string key(take_string(reader));
      if (key.starts_with(kPrefix)) key = key.substr(kPrefix.size());
      const std::uint32_t type = take<std::uint32_t>(reader);
      if (type != 9) {
        skip_or_keep(reader, key, type);
        continue;
      }
      const std::uint32_t item = take<std::uint32_t>(reader);
      const std::uint64_t count = take<std::uint64_t>(reader);
      if (item == 7) {
        EXPECT_TRUE(reader.take(count).has_value());
        continue;
      }
      if (item <= 1) {
        texts_[key] = std::string(*reader.take_text(count));
        continue;
      }
      for (std::uint64_t k = 0; k < count; ++k) {
        if (item == 8) strings_[key].push_back(take_string(reader));
        if (item == 6) floats_[key].push_back(take<float>(reader));
        if (item == 4 || item == 5) ints_[key].push_back(take<std::int32_t>(reader));
        ASSERT_TRUE(item == 8 || item == 6 || item == 4 || item == 5) << item;
      }
    }
  }

  std::string_view text(const std::string& key) const {
    const auto found = texts_.find(key);
    return found == texts_.end() ? std::string_view() : std::string_view(found->second);
  }
  std::optional<std::int64_t> number(const std::string& key) const {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<bool> flag(const std::string& key) const {
    const auto value = number(key);
    return value ? std::optional(*value != 0) : std::nullopt;
  }
  template <class T>
  static std::span<const T> view(const std::map<std::string, std::vector<T>>& all,
                                 const std::string& key) {
    const auto found = all.find(key);
    return found == all.end() ? std::span<const T>() : std::span<const T>(found->second);
  }

  std::string bytes_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::int64_t> numbers_;
  std::map<std::string, std::vector<std::string_view>> strings_;
  std::map<std::string, std::vector<float>> floats_;
  std::map<std::string, std::vector<std::int32_t>> ints_;
};

}  // namespace cyb
