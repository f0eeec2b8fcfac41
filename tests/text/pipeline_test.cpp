// The parts of a pipeline by themselves: the dialect of regular expressions, the table of GGUF
// names, the way through a config, and control tokens that content never becomes.
#include "text/pipeline/pipeline.hpp"

#include "text/gguf_pre_tokenizers.hpp"
#include "text/pipeline/pipeline_table.hpp"
#include "text/regex/dialect.hpp"
#include "text/regex/regex.hpp"
#include "text/tokenizer_support.hpp"

namespace cyb {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

std::vector<std::string> matches(const char* pattern, std::string_view text) {
  std::vector<std::string> out;
  const auto regex = text::Regex::compile(pattern);
  if (!regex) {
    ADD_FAILURE() << regex.error().text();
    return out;
  }
  text::RegexScan scan(*regex, text);
  for (std::size_t at = 0; at < text.size();) {
    const auto match = scan.find(at);
    if (!match.has_value() || !match->found || match->end == at) break;
    out.emplace_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(Regex, ReadsOnigurumasDialect) {
  EXPECT_EQ(matches(R"(\d{1,2}+)", "12345"), Texts{"12345"});  // no possessive form there
  EXPECT_EQ(matches(R"(\d{,2}x)", "123x"), Texts{"23x"});
  EXPECT_EQ(matches(R"([a-z&&[^b]]+)", "abca"), (Texts{"a", "ca"}));
  EXPECT_EQ(matches(R"([\p{Ll}\p{N}&&[^b2]]+)", "Aab12c"), (Texts{"a", "1", "c"}));
  EXPECT_EQ(matches(R"(\s)", "\xE1\xA0\x8E\xC2\x85"), Texts{"\xC2\x85"});  // U+180E is no space
  EXPECT_EQ(matches(R"([^\S]+)",
                    "a \xE3\x80\x80"
                    "b"),
            Texts{" \xE3\x80\x80"});
  EXPECT_EQ(matches(R"(\p{^L}+)", "ab12"), Texts{"12"});
  EXPECT_EQ(matches(R"(\p{Han}+)", "a\xE6\xBC\xA2\xE3\x80\x82"), Texts{"\xE6\xBC\xA2"});
  EXPECT_EQ(matches(R"(\h+)", "xBeeF"), Texts{"BeeF"});
  EXPECT_EQ(matches(R"((?i:'S))", "a's"), Texts{"'s"});
  EXPECT_EQ(matches(R"(a{b)", "a{b"), Texts{"a{b"});
}

TEST(Regex, RefusesWhatItDoesNotKnowByName) {
  for (const char* pattern :
       {R"(\K)", R"(\R)", R"((a)\1)", "(?m:.)", "(?<n>a)", "[[:alpha:]]", R"([\W])", "(", ")", "[a",
        R"(\p{Nonsense})", R"(\p{)", "(?(1)a)", "a\\", "(*UTF)"}) {
    const auto regex = text::Regex::compile(pattern);
    ASSERT_FALSE(regex.has_value()) << pattern;
    EXPECT_EQ(regex.error().kind(), ErrorKind::kNotBuilt) << pattern;
    EXPECT_NE(regex.error().text().find("regular expression"), std::string::npos) << pattern;
  }
}

TEST(Regex, AnExplosionIsAnError) {
  const auto regex = text::Regex::compile("(?:a+)+b|(?:a|aa)+c");
  ASSERT_TRUE(regex.has_value());
  const std::string text(40, 'a');
  text::RegexScan scan(*regex, text);
  const auto match = scan.find(0);
  EXPECT_TRUE(!match.has_value() || !match->found);
}

TEST(GgufPre, EveryNameOfTheTableMakesAPipeline) {
  for (const char* name : {"gpt-2",       "phi-2",         "jina-es",
                           "mpt",         "olmo",          "modern-bert",
                           "roberta-bpe", "smollm",        "starcoder",
                           "refact",      "codeshell",     "exaone",
                           "minerva-7b",  "command-r",     "qwen2",
                           "megrez",      "stablelm2",     "hunyuan",
                           "llama-bpe",   "falcon3",       "dbrx",
                           "smaug-bpe",   "chatglm-bpe",   "glm4",
                           "falcon",      "deepseek-llm",  "deepseek-coder",
                           "deepseek-v3", "hunyuan-dense", "spark2_5",
                           "youtu",       "qwen35",        "poro-chat",
                           "bloom",       "viking",        "tekken",
                           "gpt-4o",      "llama4",        "granite-embed-multi-97m",
                           "tiny_aya",    "kimi-k2",       "superbpe",
                           "bailingmoe",  "seed-coder",    "ufakzeka",
                           "laguna",      "exaone-moe",    "minicpm5",
                           "jais-2",      "chameleon",     "minimax-m2"}) {
    const auto pre = text::gguf_pre(name);
    ASSERT_TRUE(pre.has_value()) << name;
    if (pre->config.pipeline.empty()) continue;
    const auto pipeline = text::Pipeline::make(pre->config.pipeline, pre->config);
    ASSERT_TRUE(pipeline.has_value()) << name << ": " << pipeline.error().text();
  }
  EXPECT_FALSE(text::gguf_pre("fancy").has_value());
  EXPECT_FALSE(text::gguf_pre("gpt-2,phi-2").has_value());
  EXPECT_FALSE(text::gguf_pre("").has_value());
}

// Falcon cuts punctuation before GPT-2's expression does; Tiny Aya groups digits from the right.
TEST(Pipeline, StepsRunInTheirOrder) {
  const auto pieces = [](const char* name, std::string text) {
    std::vector<std::string> out;
    const auto pre = text::gguf_pre(name);
    const auto pipeline = text::Pipeline::make(pre->config.pipeline, pre->config);
    text::Pieces cut{text, {{0, text.size(), true}}};
    EXPECT_TRUE((*pipeline)->cut(cut).has_value());
    for (const text::Piece& piece : cut.list) out.emplace_back(cut.of(piece));
    return out;
  };
  EXPECT_EQ(pieces("falcon", "1234,abc!!5"), (Texts{"123", "4", ",", "abc", "!!", "5"}));
  EXPECT_EQ(pieces("tiny_aya", "1234567"), (Texts{"1", "234", "567"}));
  EXPECT_EQ(pieces("tiny_aya", "12345678 12a"), (Texts{"12", "345", "678", " ", "12", "a"}));
  EXPECT_EQ(pieces("superbpe", "1234567"), (Texts{"1", "234", "567"}));
}

TEST(Pipeline, SurvivesAConfig) {
  for (const char* name : {"kinds/bert", "kinds/unigram", "kinds/clip", "kinds/frame"}) {
    const auto parts =
        read_tokenizer_json(file_text(golden_path(std::string("tokenizer/") + name + ".json")));
    ASSERT_TRUE(parts.has_value()) << name;
    const auto table = pipeline_table(parts->config.pipeline);
    ASSERT_TRUE(table.has_value()) << table.error().text();
    const auto again = parse_toml(write_toml(*table), "config");
    ASSERT_TRUE(again.has_value()) << again.error().text();
    // A null is left out, which every component reads as the same.
    TokenizerConfig config = parts->config;
    config.pipeline = pipeline_text(*again);
    EXPECT_TRUE(text::Pipeline::make(config.pipeline, config).has_value()) << name;
    const auto twice = pipeline_table(config.pipeline);
    ASSERT_TRUE(twice.has_value());
    EXPECT_EQ(write_toml(*twice), write_toml(*table)) << name;
  }
}

TEST(Pipeline, ContentNeverBecomesAControlToken) {
  for (const char* name : {"bert", "wordlevel", "unigram", "clip", "roberta", "added", "chars"}) {
    const auto tokenizer = make_tokenizer(read_tokenizer_json(
        file_text(golden_path(std::string("tokenizer/kinds/") + name + ".json"))));
    ASSERT_NE(tokenizer, nullptr);
    for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      if (!tokenizer->is_control(id)) continue;
      if (tokenizer->config().unk_token_id == id) continue;
      const std::string text = "a " + std::string(tokenizer->vocabulary().text(id)) + " b";
      const auto ids = tokenizer->encode(text, {.parse_special = false, .add_special = false});
      if (!ids) continue;  // a character without a token
      EXPECT_EQ(std::count(ids->begin(), ids->end(), id), 0) << name << ": " << text;
    }
  }
}

TEST(Pipeline, StreamsAsItDecodes) {
  for (const char* name : {"bert", "unigram", "unigram_bytes", "clip", "chars", "o200k"}) {
    const auto tokenizer = make_tokenizer(read_tokenizer_json(
        file_text(golden_path(std::string("tokenizer/kinds/") + name + ".json"))));
    ASSERT_NE(tokenizer, nullptr);
    const auto ids = tokenizer->encode("The  keeper's lamp, \xC3\xA9t\xC3\xA9 12!", {});
    ASSERT_TRUE(ids.has_value());
    const auto whole = tokenizer->decode(*ids);
    ASSERT_TRUE(whole.has_value());
    StreamDecoder stream(*tokenizer, {});
    std::string text;
    for (const std::int32_t id : *ids) stream.push(id, text);
    stream.finish(text);
    EXPECT_EQ(text, *whole) << name;
  }
}

}  // namespace
}  // namespace cyb
