// import --tokenizer-only of each form, then the ids of the program; bench --tokenize.
#include <gtest/gtest.h>

#include <fstream>

#include "e2e/program.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

json first_case(const std::string& name) {
  std::ifstream file(golden("tokenizer/" + name + ".ids.json"));
  for (const json& one : json::parse(file)) {
    const std::string text = one["text"].get<std::string>();
    if (text.find("lighthouse") != std::string::npos && text.find('<') == std::string::npos)
      return one;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(TokenizerFiles, EveryFormImportsAndEncodes) {
  struct Form {
    std::string file, name;
    std::vector<std::string> more;
  };
  const std::vector<Form> forms{
      {"gpt2.vocab.gguf", "gpt2", {}},
      {"kinds/o200k.json", "kinds/o200k", {}},
      {"files/bpe.model", "files/bpe", {}},
      {"files/bpe_user.model", "files/bpe_user", {}},
      {"files/unigram.model", "files/unigram", {}},
      {"files/cl100k_base.tiktoken", "files/cl100k_base", {}},
      {"files/cl100k_base.tiktoken", "files/llama3", {"--encoding", "llama3"}}};
  const Program program;
  for (const Form& form : forms) {
    SCOPED_TRACE(form.name);
    const std::string model = program.file("t.model");
    std::vector<std::string> line{
        "import", golden("tokenizer/" + form.file), "--tokenizer-only", "-o", model, "--force",
        "-q"};
    line.insert(line.end(), form.more.begin(), form.more.end());
    const ProcessResult imported = program.run(line);
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
    const json wanted = first_case(form.name);
    const std::string text = wanted["text"].get<std::string>();
    const auto ids = Program::json(program.run({"tokenize", model, text, "--no-bos", "--json"}));
    EXPECT_EQ(ids["ids"], wanted["ids"]) << wanted;
  }
}

TEST(TokenizerFiles, WhatDoesNotGoTogetherIsRefused) {
  const Program program;
  const std::string ranks = golden("tokenizer/files/cl100k_base.tiktoken");
  EXPECT_NE(program.run({"import", ranks, "--encoding", "qwen"}).err.find("--tokenizer-only"),
            std::string::npos);
  const ProcessResult fancy =
      program.run({"import", ranks, "--tokenizer-only", "--encoding", "fancy"});
  EXPECT_EQ(fancy.exit_code, 1);
  EXPECT_NE(fancy.err.find("none of the encodings"), std::string::npos) << fancy.err;
  EXPECT_NE(program.run({"bench", "m", "--document", "10"}).err.find("--tokenize"),
            std::string::npos);
  EXPECT_NE(program.run({"bench", "m", "--tokenize", "f", "-p", "7"}).err.find("only -r"),
            std::string::npos);
}

TEST(TokenizerFiles, BenchMeasuresTheTokenizerAlone) {
  const Program program;
  const std::string model = program.file("t.model"), text = program.file("text");
  ASSERT_EQ(program
                .run({"import", golden("tokenizer/files/bpe.model"), "--tokenizer-only", "-q", "-o",
                      model})
                .exit_code,
            0);
  std::ofstream(text) << "The lighthouse \xE7\x81\xAF\xE5\x8F\xB0 had not been lit.\n";
  const auto row = Program::json(
      program.run({"bench", model, "--tokenize", text, "--document", "7", "-r", "2", "--json"}));
  ASSERT_TRUE(row.is_object());
  EXPECT_EQ(row["bytes"], 40);
  EXPECT_GE(row["documents"], 6);
  EXPECT_EQ(row["seconds"].size(), 2U);
  EXPECT_GT(row["n_ids"], 6);
  EXPECT_GT(row["mb_per_second"], 0.0);
}

}  // namespace
}  // namespace cyb::test
