// Ids and texts equal those of the `tokenizers` package (golden/tokenizer), from tokenizer.json and
// from GGUF alike.
#include <cstdlib>

#include "text/tokenizer_support.hpp"

namespace cyb {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

json cases_of(const std::string& name) {
  return json::parse(file_text(golden_path("tokenizer/" + name + ".ids.json")));
}

void expect_ids(const Tokenizer& tokenizer, const json& one, const char* key,
                const EncodeOptions& options) {
  if (!one.contains(key)) return;
  const std::string text = one["text"].get<std::string>();
  const auto ids = tokenizer.encode(text, options);
  ASSERT_TRUE(ids.has_value()) << ids.error().text() << " in " << one["text"];
  EXPECT_EQ(*ids, one[key].get<Ids>()) << key << " of " << one["text"];
}

void expect_all(const Tokenizer& tokenizer, const std::string& name, bool same_bos) {
  const json cases = cases_of(name);
  ASSERT_GT(cases.size(), 100U);
  for (const json& one : cases) {
    expect_ids(tokenizer, one, "ids", {.parse_special = true, .add_special = false});
    if (same_bos)
      expect_ids(tokenizer, one, "ids_special", {.parse_special = true, .add_special = true});
    // Gemma's GGUF files type <unusedN> as control tokens, its tokenizer.json does not call them
    // special.
    const bool retyped =
        !same_bos && one["text"].get<std::string>().find("<unused") != std::string::npos;
    if (retyped) continue;
    const char* plain = one.contains("ids_plain") ? "ids_plain" : "ids";
    expect_ids(tokenizer, one, plain, {.parse_special = false, .add_special = false});
    if (::testing::Test::HasFailure()) break;
  }
}

class FromJson : public ::testing::TestWithParam<const char*> {};

TEST_P(FromJson, IdsEqualTheTokenizersPackage) {
  const auto tokenizer = make_tokenizer(read_tokenizer_json(
      file_text(golden_path(std::string("tokenizer/") + GetParam() + ".json"))));
  ASSERT_NE(tokenizer, nullptr);
  expect_all(*tokenizer, GetParam(), true);
}

TEST_P(FromJson, DecodedTextsEqualTheTokenizersPackage) {
  const auto tokenizer = make_tokenizer(read_tokenizer_json(
      file_text(golden_path(std::string("tokenizer/") + GetParam() + ".json"))));
  ASSERT_NE(tokenizer, nullptr);
  for (const json& one : cases_of(GetParam())) {
    const std::string expected = one["decoded"].get<std::string>();
    // The package writes one U+FFFD per byte token, this one per maximal bad part (Unicode's rule).
    if (expected.find("\xEF\xBF\xBD") != std::string::npos) continue;
    const auto text = tokenizer->decode(one["ids"].get<Ids>());
    ASSERT_TRUE(text.has_value());
    ASSERT_EQ(*text, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, FromJson,
                         ::testing::Values("gpt2", "smollm", "qwen2", "llama3", "llama2", "gemma"),
                         [](const auto& named) { return std::string(named.param); });

class FromGguf : public ::testing::TestWithParam<const char*> {};

TEST_P(FromGguf, IdsEqualTheTokenizersPackage) {
  const GgufTokenizerFile file(golden_path(std::string("tokenizer/") + GetParam() + ".vocab.gguf"));
  const auto tokenizer = make_tokenizer(vocabulary_from_gguf(file.vocabulary()));
  ASSERT_NE(tokenizer, nullptr);
  expect_all(*tokenizer, GetParam(), false);
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, FromGguf,
                         ::testing::Values("gpt2", "smollm", "qwen2", "llama3", "llama2", "gemma"),
                         [](const auto& named) { return std::string(named.param); });

TEST(TokenizerJson, WhatIsNotKnownIsRefusedByName) {
  json document = json::parse(file_text(golden_path("tokenizer/qwen2.json")));
  for (const char* key : {"normalizer", "pre_tokenizer", "decoder", "post_processor"}) {
    json changed = document;
    changed[key] = json{{"type", "FancyStep"}};
    const auto parts = read_tokenizer_json(changed.dump());
    ASSERT_FALSE(parts.has_value()) << key;
    EXPECT_EQ(parts.error().kind(), ErrorKind::kNotBuilt);
    EXPECT_NE(parts.error().text().find("FancyStep"), std::string::npos) << parts.error().text();
  }
}

/// Where the cases of the kinds are: CYB_TOKENIZER_KINDS names a folder of more of them.
std::string kinds_folder() {
  const char* folder = std::getenv("CYB_TOKENIZER_KINDS");
  return folder != nullptr ? std::string(folder) : golden_path("tokenizer/kinds");
}

// Pipelines of every component: see make/tokenizer_kinds.py.
class Kinds : public ::testing::TestWithParam<const char*> {};

TEST_P(Kinds, IdsAndTextsEqualTheTokenizersPackage) {
  const std::string base = kinds_folder() + "/" + GetParam();
  const auto tokenizer = make_tokenizer(read_tokenizer_json(file_text(base + ".json")));
  ASSERT_NE(tokenizer, nullptr);
  const json cases = json::parse(file_text(base + ".ids.json"));
  ASSERT_GT(cases.size(), 50U);
  for (const json& one : cases) {
    expect_ids(*tokenizer, one, "ids", {.parse_special = true, .add_special = false});
    expect_ids(*tokenizer, one, "ids_special", {.parse_special = true, .add_special = true});
    if (!one.contains("decoded")) continue;
    const auto text = tokenizer->decode(one["ids"].get<Ids>());
    ASSERT_TRUE(text.has_value());
    EXPECT_EQ(*text, one["decoded"].get<std::string>()) << one["text"];
    if (::testing::Test::HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Kinds,
                         ::testing::Values("bert", "wordlevel", "unigram", "unigram_bytes", "xlm",
                                           "clip", "chars", "roberta", "frame", "added", "o200k",
                                           "falcon", "deepseek", "tiny_aya", "kimi", "bailing",
                                           "bloom", "previous", "delimiter", "scripts", "ctc",
                                           "superbpe", "jais2"),
                         [](const auto& named) { return std::string(named.param); });

// A change to any component, to values of its fields or to the fields themselves, must not pass
// unseen.
TEST(TokenizerJson, EveryUnknownFieldIsRefused) {
  const json base = json::parse(file_text(golden_path("tokenizer/qwen2.json")));
  ASSERT_TRUE(read_tokenizer_json(base.dump()).has_value());
  const auto refused = [&](const char* pointer, const json& value) {
    json changed = base;
    changed[json::json_pointer(pointer)] = value;
    EXPECT_FALSE(read_tokenizer_json(changed.dump()).has_value()) << pointer << " = " << value;
  };
  refused("/unheard_of", 1);
  refused("/normalizer/more", 1);
  refused("/pre_tokenizer/pretokenizers/0/behavior", "Sometimes");
  refused("/pre_tokenizer/pretokenizers/1/more", true);
  refused("/post_processor/type", "BertProcessing");
  refused("/model/type", "Unigram");
  refused("/model/dropout", 0.1);
  refused("/model/continuing_subword_prefix", 2);
  refused("/model/more", 1);
  refused("/added_tokens/0/more", true);
  refused("/added_tokens/0/id", 4000000);
}

TEST(TokenizerJson, HostileDocuments) {
  const auto refused = [](const std::string& text) {
    const auto parts = read_tokenizer_json(text);
    ASSERT_FALSE(parts.has_value()) << text.substr(0, 60);
    EXPECT_EQ(parts.error().kind(), ErrorKind::kFormat) << parts.error().text();
  };
  refused("");
  refused("[1]");
  refused("{");
  refused(std::string(100000, '['));
  std::string deep;
  for (int i = 0; i < 50000; ++i) deep += "{\"a\":";
  refused(deep);
  refused(R"({"model":{"vocab":{"a":0,"b":0},"merges":[]}} x)");
  refused(R"({"a":1,"a":2})");
  refused(R"({"model":{"vocab":{"a":[1]}}})");
  refused(R"({"model":{"vocab":{"a":"1"}}})");
  refused(R"({"model":{"merges":[["a","b","c"]]}})");
  refused(R"({"model":{"merges":[["a"]]}})");
  refused(R"({"model":{"merges":["a b",["a","b"]]}})");
  refused(R"({"model":{"merges":[[["a"]]]}})");
}

}  // namespace
}  // namespace cyb
