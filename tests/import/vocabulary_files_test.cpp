// Tokenizers that are one file: ids and texts equal those of sentencepiece and tiktoken
// (golden/tokenizer/files), alone, through a .model, and in a Hugging Face folder.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "import/hf/folder_tokenizer.hpp"
#include "import/import.hpp"
#include "import/sentencepiece_file.hpp"
#include "import/tokenizer_file.hpp"
#include "text/tiktoken_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace cyb {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

/// Where the files are: CYB_TOKENIZER_FILES names a folder of more of them.
std::string files_folder() {
  const char* folder = std::getenv("CYB_TOKENIZER_FILES");
  return folder != nullptr ? folder : std::string(CYB_TESTS_DIR) + "/golden/tokenizer/files";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<Tokenizer> made(Result<TokenizerParts> parts) {
  if (!parts) {
    ADD_FAILURE() << parts.error().text();
    return nullptr;
  }
  auto out = Tokenizer::create(std::move(*parts));
  if (!out) {
    ADD_FAILURE() << out.error().text();
    return nullptr;
  }
  return std::move(*out);
}

ImportOptions alone(const std::string& encoding) {
  ImportOptions out;
  out.tokenizer_only = true;
  out.encoding = encoding;
  return out;
}

/// A folder that is gone when the test ends.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "cyb-tokenizer-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
    EXPECT_FALSE(path_.empty());
  }
  ~Folder() {
    std::error_code code;
    fs::remove_all(path_, code);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
  }

 private:
  std::string path_;
};

void expect_rows(const Tokenizer& tokenizer, const json& cases, bool parse_special) {
  ASSERT_GT(cases.size(), 100U);
  int bad = 0;
  for (const json& one : cases) {
    const std::string text = one["text"].get<std::string>();
    const auto ids = tokenizer.encode(text, {.parse_special = parse_special, .add_special = false});
    ASSERT_TRUE(ids.has_value()) << ids.error().text() << " in " << one["text"];
    EXPECT_EQ(*ids, one["ids"].get<Ids>()) << one["text"];
    if (one.contains("decoded")) {
      const auto back = tokenizer.decode(*ids);
      ASSERT_TRUE(back.has_value());
      EXPECT_EQ(*back, one["decoded"].get<std::string>()) << one["text"];
    }
    if (::testing::Test::HasFailure() && ++bad > 3) return;
  }
}

void expect_cases(const Tokenizer& tokenizer, const std::string& name, bool parse_special) {
  expect_rows(tokenizer, json::parse(bytes_of(files_folder() + "/" + name + ".ids.json")),
              parse_special);
}

class SentencePiece : public ::testing::TestWithParam<const char*> {};

TEST_P(SentencePiece, IdsAndTextsEqualThePackage) {
  const auto tokenizer =
      made(read_tokenizer_file(files_folder() + "/" + GetParam() + ".model", ""));
  ASSERT_NE(tokenizer, nullptr);
  expect_cases(*tokenizer, GetParam(), false);
}

INSTANTIATE_TEST_SUITE_P(VocabularyFiles, SentencePiece,
                         ::testing::Values("unigram", "unigram_bytes", "unigram_plain", "bpe",
                                           "bpe_user", "bpe_runs"),
                         [](const auto& named) { return std::string(named.param); });

class Tiktoken : public ::testing::TestWithParam<const char*> {};

TEST_P(Tiktoken, IdsAndTextsEqualThePackage) {
  const std::string own = files_folder() + "/" + GetParam() + ".tiktoken";
  const std::string path = fs::exists(own) ? own : files_folder() + "/cl100k_base.tiktoken";
  const auto tokenizer = made(read_tokenizer_file(path, GetParam()));
  ASSERT_NE(tokenizer, nullptr);
  expect_cases(*tokenizer, GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(VocabularyFiles, Tiktoken,
                         ::testing::Values("cl100k_base", "o200k_base", "qwen", "llama3"),
                         [](const auto& named) { return std::string(named.param); });

// vocab.json and merges.txt, read as the classes of transformers read them.
class Merges : public ::testing::TestWithParam<const char*> {};

TEST_P(Merges, IdsEqualTheClass) {
  const std::string golden = std::string(CYB_TESTS_DIR) + "/golden/tokenizer/merges/";
  const json row = json::parse(bytes_of(golden + GetParam() + ".json"));
  const Folder folder;
  folder.write("vocab.json", bytes_of(golden + "vocab.json"));
  folder.write("merges.txt", bytes_of(golden + "merges.txt"));
  for (const auto& [name, content] : row["files"].items()) folder.write(name, content.dump());
  ImportReport report;
  auto read = hf::read_folder_tokenizer(folder.path(), {}, report);
  ASSERT_TRUE(read.has_value()) << read.error().text();
  const TokenizerConfig config = read->parts.config;
  EXPECT_EQ(config.bos_token_id ? json(*config.bos_token_id) : json(), row["bos"]);
  EXPECT_EQ(config.eos_token_ids, (Ids{row["eos"].get<std::int32_t>()}));
  EXPECT_EQ(config.add_bos_token, std::string(GetParam()) == "gpt2_space");
  const auto tokenizer = made(std::move(read->parts));
  ASSERT_NE(tokenizer, nullptr);
  for (const auto& [id, text] : row["added"].items()) {
    EXPECT_EQ(tokenizer->vocabulary().find(text.get<std::string>()), std::stoi(id));
  }
  expect_rows(*tokenizer, row["cases"], true);
}

INSTANTIATE_TEST_SUITE_P(VocabularyFiles, Merges,
                         ::testing::Values("gpt2_bare", "gpt2_space", "qwen2", "codegen"),
                         [](const auto& named) { return std::string(named.param); });

TEST(VocabularyFiles, WhatMergesDoNotSayIsRefused) {
  const std::string golden = std::string(CYB_TESTS_DIR) + "/golden/tokenizer/merges/";
  const auto refused = [&](const std::map<std::string, std::string>& files,
                           std::string_view words) {
    const Folder folder;
    folder.write("vocab.json", bytes_of(golden + "vocab.json"));
    folder.write("merges.txt", bytes_of(golden + "merges.txt"));
    folder.write("config.json", R"({"model_type": "gpt2"})");
    for (const auto& [name, bytes] : files) folder.write(name, bytes);
    ImportReport report;
    const auto read = hf::read_folder_tokenizer(folder.path(), {}, report);
    ASSERT_FALSE(read.has_value()) << words;
    EXPECT_NE(read.error().text().find(words), std::string::npos) << read.error().text();
  };
  refused({{"config.json", R"({"model_type": "roberta"})"}}, "of the class \"\"");
  refused({{"tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})"}},
          "of the class \"RobertaTokenizer\"");
  refused({{"merges.txt", "#version: 0.2\na b\na b c\n"}}, "merges.txt: line 3: is no pair");
  refused({{"merges.txt", "a zzzz\n"}}, "merge 0 names an unknown token");
  refused({{"vocab.json", R"({"a": -1})"}}, "\"a\" has no id");
  refused({{"vocab.json", "[]"}}, "vocab.json");
  refused({{"added_tokens.json", R"({"<x>": 5000})"}}, "\"<x>\" is stated as 5000");
  refused({{"tokenizer_config.json",
            R"({"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"x": "y"}})"}},
          "\"x\" is no id");
  refused({{"tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "eos_token": 7})"}},
          "is no token");
}

// More files than the committed ones, of any name: CYB_TOKENIZER_FILES.
TEST(VocabularyFiles, EveryGivenFileEqualsItsPackage) {
  std::size_t n_files = 0;
  for (const auto& entry : fs::directory_iterator(files_folder())) {
    const fs::path path = entry.path();
    if (path.extension() != ".model" && path.extension() != ".tiktoken") continue;
    SCOPED_TRACE(path.string());
    const auto tokenizer = made(read_tokenizer_file(path.string(), ""));
    ASSERT_NE(tokenizer, nullptr);
    expect_cases(*tokenizer, path.stem().string(), path.extension() == ".tiktoken");
    ++n_files;
  }
  EXPECT_GT(n_files, 0U);
}

TEST(VocabularyFiles, TheFormIsToldByTheBytes) {
  EXPECT_EQ(tokenizer_form("x/tokenizer.model", "IQ== 0\n"), TokenizerForm::kTiktoken);
  EXPECT_EQ(tokenizer_form("x/tokenizer.model", "\n\x05"), TokenizerForm::kSentencePiece);
  EXPECT_EQ(tokenizer_form("x/tokenizer.json", "{"), TokenizerForm::kJson);
  EXPECT_EQ(tokenizer_form("x/words.txt", "{"), TokenizerForm::kNone);
}

// import --tokenizer-only of each form, then the .model that was written.
TEST(VocabularyFiles, EveryFormImportsAlone) {
  const std::string golden = std::string(CYB_TESTS_DIR) + "/golden/tokenizer/";
  struct Form {
    std::string path, encoding, type;
  };
  const std::vector<Form> forms{{golden + "llama3.vocab.gguf", "", "bpe"},
                                {golden + "kinds/bert.json", "", "wordpiece"},
                                {golden + "files/unigram.model", "", "unigram"},
                                {golden + "files/bpe.model", "", "spm"},
                                {golden + "files/bpe_user.model", "", "spm"},
                                {golden + "files/cl100k_base.tiktoken", "", "bpe"},
                                {golden + "files/cl100k_base.tiktoken", "llama3", "bpe"}};
  const Folder folder;
  int n = 0;
  for (const Form& form : forms) {
    SCOPED_TRACE(form.path);
    ImportReport report;
    const ImportOptions options = alone(form.encoding);
    const std::string out = folder / (std::to_string(n++) + ".model");
    const auto written = import_model(form.path, out, options, report);
    ASSERT_TRUE(written.has_value()) << written.error().text();
    EXPECT_EQ(report.tokenizer, form.type);
    EXPECT_EQ(report.n_tensors, 0U);
    EXPECT_TRUE(fs::exists(out));
  }
}

TEST(VocabularyFiles, WhatIsNoTokenizerIsRefused) {
  const Folder folder;
  folder.write("notes.txt", "hello");
  folder.write("tokenizer.model", "no pieces");
  folder.write("ranks.tiktoken", "IQ== 0\nIg== 1\n");
  folder.write("twice.tiktoken", "IQ== 0\nIg== 0\n");
  folder.write("far.tiktoken", "IQ== 0\nIg== 99999999\n");
  folder.write("text.tiktoken", "IQ== 0\n!! 1\n");
  const auto refused = [&](const std::string& name, const std::string& encoding,
                           std::string_view words) {
    ImportReport report;
    const ImportOptions options = alone(encoding);
    const std::string out = folder / "out.model";
    const auto written = import_model(folder / name, out, options, report);
    ASSERT_FALSE(written.has_value()) << name;
    EXPECT_NE(written.error().text().find(words), std::string::npos) << written.error().text();
    EXPECT_FALSE(fs::exists(out));
  };
  refused("notes.txt", "", "is no tokenizer");
  refused("tokenizer.model", "", "is no tokenizer");
  refused("ranks.tiktoken", "", "name the encoding");
  refused("ranks.tiktoken", "fancy", "none of the encodings");
  refused("twice.tiktoken", "qwen", "line 2: a rank that is there twice");
  refused("far.tiktoken", "qwen", "line 2");
  refused("text.tiktoken", "qwen", "line 2: the text is not base64");
  refused("missing.model", "", "missing.model");
}

// Cut anywhere, or with any byte changed, a model is refused or read; never more than that.
TEST(VocabularyFiles, DamagedSentencePieceModels) {
  const std::string whole =
      bytes_of(std::string(CYB_TESTS_DIR) + "/golden/tokenizer/files/bpe.model");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const auto source = read_sentencepiece(std::as_bytes(std::span(whole.data(), size)));
    if (source) (void)vocabulary_from_sentencepiece(*source);
  }
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    const auto source = read_sentencepiece(std::as_bytes(std::span(changed)));
    if (!source) continue;
    auto parts = vocabulary_from_sentencepiece(*source);
    if (parts) (void)Tokenizer::create(std::move(*parts));
  }
}

Result<ModelDraft> folder_alone(const Folder& folder, ImportReport& report) {
  return read_source(folder.path(), report, alone(""));
}

TEST(VocabularyFiles, AFolderWithASentencePieceModelImports) {
  const std::string model =
      bytes_of(std::string(CYB_TESTS_DIR) + "/golden/tokenizer/files/bpe.model");
  const Folder folder;
  folder.write("tokenizer.model", model);
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>",
                   "added_tokens_decoder": {"2": {"content": "</s>", "special": true},
                                            "602": {"content": "<|im_start|>", "special": true}},
                   "chat_template": "{{ messages[0].content }}"})");
  ImportReport report;
  const auto draft = folder_alone(folder, report);
  ASSERT_TRUE(draft.has_value()) << draft.error().text();
  EXPECT_EQ(report.tokenizer, "spm");
  EXPECT_TRUE(report.add_bos);
  EXPECT_FALSE(report.add_eos);
  EXPECT_TRUE(report.chat_template.present);
  ASSERT_EQ(draft->vocab.tokens.size(), 603U);
  EXPECT_EQ(draft->vocab.tokens[602], "<|im_start|>");
  EXPECT_EQ(draft->vocab.types[602], TokenType::kControl);
}

TEST(VocabularyFiles, FoldersWhoseClassChangesIdsAreRefused) {
  const std::string model =
      bytes_of(std::string(CYB_TESTS_DIR) + "/golden/tokenizer/files/bpe.model");
  const auto refused = [&](const std::string& config, std::string_view words) {
    const Folder folder;
    folder.write("tokenizer.model", model);
    folder.write("tokenizer_config.json", config);
    ImportReport report;
    const auto draft = folder_alone(folder, report);
    ASSERT_FALSE(draft.has_value()) << config;
    EXPECT_NE(draft.error().text().find(words), std::string::npos) << draft.error().text();
  };
  refused(R"({"tokenizer_class": "XLMRobertaTokenizer"})", "XLMRobertaTokenizer");
  refused(R"({"tokenizer_class": "T5Tokenizer"})", "extra_ids");
  refused(R"({"added_tokens_decoder": {"5": {"content": "<other>"}}})", "<other>");
  refused(R"({"added_tokens_decoder": {"99999999": {"content": "<other>"}}})", "no added token");
  refused(R"({"added_tokens_decoder": {"610": {"content": "x", "lstrip": true}}})", "lstrip");
}

}  // namespace
}  // namespace cyb
