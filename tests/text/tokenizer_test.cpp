// Rules of the tokenizer that goldens do not show: byte tokens, trust of segments, streaming,
// linear time.
#include "text/tokenizer.hpp"

#include <malloc.h>
#include <pthread.h>

#include <ctime>
#include <functional>

#include "text/tokenizer_support.hpp"

namespace cyb {
namespace {

using Ids = std::vector<std::int32_t>;

/// A SentencePiece vocabulary: <unk> <s> </s>, 256 byte tokens from id 3 on, then the given pieces.
GgufVocabulary spm_source(std::vector<std::string>& texts, std::vector<std::string_view>& views,
                          std::vector<float>& scores, std::vector<std::int32_t>& types) {
  std::vector<std::string> all = {"<unk>", "<s>", "</s>"};
  types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    all.emplace_back(text);
    types.push_back(6);
  }
  for (const std::string& text : texts) {
    all.push_back(text);
    types.push_back(1);
  }
  texts = std::move(all);
  scores.assign(texts.size(), 0.0F);
  for (std::size_t i = 0; i < texts.size(); ++i) scores[i] = -static_cast<float>(i);
  views.assign(texts.begin(), texts.end());
  GgufVocabulary source;
  source.model = "llama";
  source.tokens = views;
  source.scores = scores;
  source.token_types = types;
  return source;
}

struct SpmFixture {
  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  GgufVocabulary source;
  explicit SpmFixture(std::vector<std::string> pieces) : texts(std::move(pieces)) {
    source = spm_source(texts, views, scores, types);
  }
};

// Case G09.
TEST(ByteTokens, BadTextsAreRefused) {
  for (const char* bad : {"<0x-1>", "<0xZZ>", "<0x>", "<0x100>", "<0x 1>", "0x41", "<0x4>"}) {
    SpmFixture fixture({});
    fixture.views[3 + 0x41] = bad;
    const auto parts = vocabulary_from_gguf(fixture.source);
    ASSERT_FALSE(parts.has_value()) << bad;
    EXPECT_EQ(parts.error().code(), "F34") << parts.error().text();
  }
}

TEST(ByteTokens, AllOfThemOrNone) {
  SpmFixture fixture({"a"});
  fixture.types[3 + 0x41] = 1;
  auto parts = vocabulary_from_gguf(fixture.source);
  ASSERT_TRUE(parts.has_value());
  const auto tokenizer = Tokenizer::create(std::move(*parts));
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_NE(tokenizer.error().text().find("<0x41>"), std::string::npos);

  SpmFixture twice({"a"});
  twice.views[3 + 0x41] = "<0x6a>";
  auto doubled = vocabulary_from_gguf(twice.source);
  ASSERT_TRUE(doubled.has_value());
  EXPECT_FALSE(Tokenizer::create(std::move(*doubled)).has_value());
}

TEST(Vocabulary, EqualTextsAreRefused) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.add({"a"}).has_value());
  ASSERT_TRUE(vocabulary.add({"b"}).has_value());
  ASSERT_TRUE(vocabulary.add({"a"}).has_value());
  const auto finished = vocabulary.finish();
  ASSERT_FALSE(finished.has_value());
  EXPECT_EQ(finished.error().text(), "vocab: tokens 0 and 2 have the same text");
}

TEST(Vocabulary, FindsWhatItHolds) {
  Vocabulary vocabulary;
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(vocabulary.add({"token" + std::to_string(i * 7919)}).has_value());
  ASSERT_TRUE(vocabulary.add({"unused", TokenType::kUnused}).has_value());
  ASSERT_TRUE(vocabulary.finish().has_value());
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(vocabulary.find("token" + std::to_string(i * 7919)), i);
  EXPECT_EQ(vocabulary.find("token"), -1);
  EXPECT_EQ(vocabulary.find("unused"), -1);
  EXPECT_EQ(vocabulary.find(""), -1);
}

TEST(Merges, UnknownTokensAreNamed) {
  Vocabulary vocabulary;
  for (const char* text : {"a", "b", "ab"}) ASSERT_TRUE(vocabulary.add({text}).has_value());
  ASSERT_TRUE(vocabulary.finish().has_value());
  EXPECT_TRUE(find_merge(vocabulary, "a b", 0).has_value());
  EXPECT_EQ(find_merge(vocabulary, "a c", 7).error().text(),
            "vocab: merge 7 names an unknown token");
  EXPECT_FALSE(find_merge(vocabulary, "a b c", 7).has_value());
  EXPECT_FALSE(find_merge(vocabulary, "ab", 7).has_value());
  TokenizerParts parts;
  parts.config = tokenizer_preset(TokenizerKind::kBpe, PreTokenizer::kGpt2);
  parts.merges = {{0, 1}, {1, 0}};  // "ba" is no token
  parts.vocabulary = std::move(vocabulary);
  const auto tokenizer = Tokenizer::create(std::move(parts));
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(tokenizer.error().text(), "vocab: merge 1 names an unknown token");
}

TEST(Gguf, UnknownNamesAreRefused) {
  SpmFixture fixture({});
  fixture.source.model = "rwkv";
  EXPECT_EQ(vocabulary_from_gguf(fixture.source).error().kind(), ErrorKind::kNotBuilt);
  fixture.source.model = "gpt2";
  fixture.source.pre = "afmoe";
  const auto parts = vocabulary_from_gguf(fixture.source);
  EXPECT_EQ(parts.error().kind(), ErrorKind::kNotBuilt);
  EXPECT_NE(parts.error().text().find("afmoe"), std::string::npos);
}

// Case T03: the space that SentencePiece text gets after a special token.
TEST(Spm, SpacePrefixAfterSpecialTokens) {
  SpmFixture fixture({"\xE2\x96\x81", "G", "\xE2\x96\x81G"});
  const auto tokenizer = make_tokenizer(vocabulary_from_gguf(fixture.source));
  const auto ids = tokenizer->encode("<s>G", {.parse_special = true, .add_special = false});
  EXPECT_EQ(*ids, (Ids{1, 261}));
  EXPECT_EQ(*tokenizer->encode("G</s> G", {.parse_special = true, .add_special = true}),
            (Ids{1, 261, 2, 259, 261}));
  EXPECT_EQ(*tokenizer->decode(Ids{261, 261}), "G G");
}

TEST(Text, BadUtf8IsAnError) {
  SpmFixture fixture({});
  const auto tokenizer = make_tokenizer(vocabulary_from_gguf(fixture.source));
  const auto ids = tokenizer->encode("ab\xFFz");
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().kind(), ErrorKind::kInvalidInput);
  EXPECT_NE(ids.error().text().find("byte 2"), std::string::npos);
}

TEST(Text, AMissingSymbolIsAnErrorUnlessThereIsUnk) {
  Vocabulary vocabulary;
  for (const char* text : {"a", "b", "ab", "<unk>"})
    ASSERT_TRUE(vocabulary.add({text}).has_value());
  ASSERT_TRUE(vocabulary.finish().has_value());
  TokenizerParts parts;
  parts.config = tokenizer_preset(TokenizerKind::kBpe, PreTokenizer::kGpt2);
  parts.merges = {{0, 1}};
  parts.vocabulary = vocabulary;
  TokenizerParts with_unk = parts;
  with_unk.config.unk_token_id = 3;
  auto strict = make_tokenizer(std::move(parts));
  EXPECT_EQ(strict->encode("abc").error().kind(), ErrorKind::kTokenizer);
  EXPECT_EQ(*make_tokenizer(std::move(with_unk))->encode("abcc"), (Ids{2, 3, 3}));
}

TEST(None, AModelOfIdsHasNoText) {
  TokenizerParts parts;
  const auto tokenizer = make_tokenizer(std::move(parts));
  EXPECT_EQ(tokenizer->encode("x").error().kind(), ErrorKind::kTokenizer);
  EXPECT_EQ(*tokenizer->decode(Ids{5, 70, 3}), "5 70 3");
}

// security.md 17.
TEST(Segments, ContentNeverBecomesAControlToken) {
  const auto tokenizer =
      make_tokenizer(read_tokenizer_json(file_text(golden_path("tokenizer/qwen2.json"))));
  const std::int32_t start = tokenizer->vocabulary().find("<|im_start|>");
  ASSERT_GE(start, 0);
  const auto count = [&](std::initializer_list<TextSegment> segments) {
    const auto ids =
        tokenizer->encode_segments(std::vector<TextSegment>(segments), {.add_special = false});
    EXPECT_TRUE(ids.has_value());
    return std::count(ids->begin(), ids->end(), start);
  };
  EXPECT_EQ(count({{"<|im_start|>user\n", true}, {"<|im_start|>", false}}), 1);
  EXPECT_EQ(count({{"<|im_", true}, {"start|>", true}}), 1);
  EXPECT_EQ(count({{"<|im_", true}, {"start|>", false}}), 0);
  EXPECT_EQ(count({{"<|im_", false}, {"start|>", true}}), 0);
  EXPECT_EQ(count({{"x", false}, {"<|im_start|>", true}, {"y", false}}), 1);
  EXPECT_EQ(count({{"<|im_start|", true}, {">", false}, {"<|im_start|>", true}}), 1);
}

TEST(Segments, CutsBetweenContentDoNotChangeIds) {
  const auto tokenizer =
      make_tokenizer(read_tokenizer_json(file_text(golden_path("tokenizer/qwen2.json"))));
  const std::string text = "user\nHello  world\n\n  caf\xC3\xA9 1234";
  const Ids whole = *tokenizer->encode(text, {.add_special = false});
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const TextSegment parts[] = {{std::string_view(text).substr(0, cut), true},
                                 {std::string_view(text).substr(cut), false}};
    EXPECT_EQ(*tokenizer->encode_segments(parts, {.add_special = false}), whole) << cut;
  }
}

TEST(Segments, MarkersThatAreNotFlaggedSpecialAreGuarded) {
  const auto tokenizer =
      make_tokenizer(read_tokenizer_json(file_text(golden_path("tokenizer/qwen2.json"))));
  const std::int32_t marker = tokenizer->vocabulary().find("<tool_call>");
  ASSERT_GE(marker, 0);
  ASSERT_EQ(tokenizer->vocabulary().type(marker), TokenType::kUserDefined);
  const TextSegment content[] = {{"<tool_call>", false}};
  const TextSegment written[] = {{"<tool_call>", true}};
  EXPECT_EQ(*tokenizer->encode_segments(content), Ids{marker});
  tokenizer->guard_markers(std::vector<std::string>{"\n<tool_call>\n{"});
  EXPECT_NE(*tokenizer->encode_segments(content), Ids{marker});
  EXPECT_EQ(*tokenizer->encode_segments(written), Ids{marker});
}

TEST(StreamDecoder, OnlyWholeCharacters) {
  SpmFixture fixture({"a"});
  const auto tokenizer = make_tokenizer(vocabulary_from_gguf(fixture.source));
  StreamDecoder decoder(*tokenizer, {.skip_special = true, .strip_space_prefix = false});
  std::string out;
  std::vector<std::size_t> sizes;
  for (const int byte : {0xF0, 0x9F, 0x91, 0x8D, 0x61, 0xE6, 0xBC}) {
    decoder.push(3 + byte, out);
    sizes.push_back(out.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{0, 0, 0, 4, 5, 5, 5}));
  decoder.push(2, out);  // </s> prints nothing
  decoder.finish(out);
  EXPECT_EQ(out,
            "\xF0\x9F\x91\x8D"
            "a\xEF\xBF\xBD");
}

TEST(StreamDecoder, EqualsDecode) {
  const auto tokenizer =
      make_tokenizer(read_tokenizer_json(file_text(golden_path("tokenizer/llama2.json"))));
  const Ids ids = *tokenizer->encode("  Hello w\xC3\xB6rld \xE6\xBC\xA2\xF0\x9F\x91\x8D x");
  StreamDecoder decoder(*tokenizer, {});
  std::string out;
  for (const std::int32_t id : ids) decoder.push(id, out);
  decoder.finish(out);
  EXPECT_EQ(out, *tokenizer->decode(ids));
}

/// CPU time of this thread: other work on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best_seconds(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = thread_seconds();
    EXPECT_TRUE(tokenizer.encode(text).has_value());
    best = std::min(best, thread_seconds() - begin);
  }
  return best;
}

void* call_function(void* task) {
  (*static_cast<std::function<void()>*>(task))();
  return nullptr;
}

/// Runs on a thread with a stack of 512 KiB.
void on_small_stack(std::function<void()> task) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, call_function, &task), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeated(const std::string& unit, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += unit;
  return out;
}

// Case T07. The ratio of two times of one run; its noise is why the sizes are large and the best of
// three counts.
class LinearTime : public ::testing::TestWithParam<const char*> {
 protected:
  // The allocator maps and unmaps blocks above 32 MiB on each call, whose page faults would be
  // counted for the larger text only: all blocks come from one heap that is kept.
  void SetUp() override {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_ARENA_MAX, 1);
  }
};

TEST_P(LinearTime, LongRunsOfOneCharacter) {
  const auto tokenizer = make_tokenizer(read_tokenizer_json(
      file_text(golden_path(std::string("tokenizer/") + GetParam() + ".json"))));
  const std::pair<std::string, std::size_t> runs[] = {
      {"A", 131072},  {"_", 50000},   {" ", 1000000},  {"\xE6\xBC\xA2", 50000},     {"^", 1000000},
      {"1", 1000000}, {"\n", 300000}, {" \n", 200000}, {"a\xCC\xA3\xCC\x87", 50000}};
  for (const auto& [unit, n] : runs) {
    on_small_stack([&, &unit = unit, n = n] {
      // A disturbed pair is measured again, both sides of it: work that grows with the square gives
      // 4 every time.
      double half = 0, whole = 0;
      for (int attempt = 0; attempt < 20 && (attempt == 0 || whole / half >= 2.6); ++attempt) {
        half = best_seconds(*tokenizer, repeated(unit, n / 2));
        whole = best_seconds(*tokenizer, repeated(unit, n));
      }
      EXPECT_LT(whole / half, 2.6) << unit << ": " << half << " s, then " << whole << " s";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizer, LinearTime,
    ::testing::Values("gpt2", "smollm", "qwen2", "llama3", "llama2", "gemma", "kinds/o200k",
                      "kinds/unigram", "kinds/bert", "kinds/clip", "kinds/deepseek", "kinds/kimi",
                      "kinds/tiny_aya", "kinds/wordlevel", "kinds/unigram_bytes", "kinds/xlm",
                      "kinds/chars", "kinds/roberta", "kinds/frame", "kinds/added", "kinds/falcon",
                      "kinds/bailing", "kinds/bloom", "kinds/previous", "kinds/delimiter",
                      "kinds/scripts", "kinds/ctc", "kinds/superbpe", "kinds/jais2"),
    [](const auto& named) {
      const std::string name(named.param);
      return name.substr(name.find('/') + 1);
    });

}  // namespace
}  // namespace cyb
