// Adapters at the command line: what --lora takes, says and refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "support/text_adapter.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;
using Line = std::vector<std::string>;

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class LoraCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    program = new Program;
    ASSERT_TRUE(write_text_checkpoint(program->file("model")));
    ASSERT_TRUE(write_text_adapter(program->file("a")));
    ASSERT_TRUE(write_text_adapter(program->file("b"), R"("lora_alpha":7)"));
    ASSERT_TRUE(write_text_adapter(program->file("dora"), R"("lora_alpha":40,"use_dora":true)"));
  }
  static void TearDownTestSuite() { delete program; }

  static ProcessResult run(Line more) {
    Line line = {"run", program->file("model"), "--raw", "the cat", "--max-tokens", "12", "--json"};
    line.insert(line.end(), more.begin(), more.end());
    return program->run(line);
  }
  static nlohmann::json tokens(Line more) {
    const ProcessResult result = run(std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
    return Program::json(result)["tokens"];
  }
  /// Exit code and error code of a run.
  static std::pair<int, std::string> failure(Line more) {
    const ProcessResult result = run(std::move(more));
    return {result.exit_code, Program::json(result)["error"]["code"]};
  }
  static std::string path(const char* name) { return program->file(name); }

  static Program* program;
};
Program* LoraCommand::program = nullptr;

using Failure = std::pair<int, std::string>;

TEST_F(LoraCommand, ItChangesTheAnswerAndWeightZeroDoesNot) {
  const auto plain = tokens({}), with = tokens({"--lora", path("a")});
  EXPECT_NE(with, plain);
  EXPECT_EQ(tokens({"--lora", path("a") + "=1"}), with);
  EXPECT_EQ(tokens({"--lora", path("a") + "/adapter_model.safetensors"}), with);
  EXPECT_EQ(tokens({"--lora", path("a") + "=0"}), plain);
  EXPECT_EQ(tokens({"--lora", path("a"), "--lora", path("b") + "=0.0"}), with);
  EXPECT_EQ(tokens({"--lora", path("a"), "--lora", path("a") + "=-1"}), plain);
  EXPECT_EQ(tokens({"--lora", path("a"), "--path", "graph", "--exact"}),
            tokens({"--lora", path("a"), "--path", "curated", "--exact"}));
}

TEST_F(LoraCommand, VerboseSaysWhatWasApplied) {
  const ProcessResult result = run({"--lora", path("a") + "=0.5", "-v"});
  EXPECT_NE(
      result.err.find("adapter " + path("a") + " (PEFT): 1 matrix, rank 2, scale 20, weight 0.5"),
      std::string::npos)
      << result.err;
}

TEST_F(LoraCommand, APathMayHoldAnEqualsSign) {
  fs::copy(path("a"), path("x=2"));
  EXPECT_EQ(tokens({"--lora", path("x=2")}), tokens({"--lora", path("a")}));
  EXPECT_EQ(tokens({"--lora", path("x=2") + "=0"}), tokens({}));
}

TEST_F(LoraCommand, WhatIsWrongIsSaid) {
  EXPECT_EQ(failure({"--lora", path("a") + "=much"}), Failure(1, "Usage"));
  EXPECT_EQ(failure({"--lora", path("a") + "=nan"}), Failure(1, "Usage"));
  EXPECT_EQ(failure({"--lora", path("a") + "="}), Failure(1, "Usage"));
  EXPECT_EQ(failure({"--lora", ""}), Failure(1, "Usage"));
  EXPECT_EQ(failure({"--lora", path("none")}), Failure(4, "Io"));
  EXPECT_EQ(failure({"--lora", path("model")}), Failure(2, "L01"));
  EXPECT_EQ(failure({"--lora", path("dora")}), Failure(2, "L05"));
  EXPECT_EQ(failure({"--lora", path("a") + "=1e300"}), Failure(2, "L10"));
}

TEST_F(LoraCommand, PlansCountAndRefuseAdapters) {
  const auto plan = [&](Line more) {
    more.insert(more.begin(), {"plan", path("model"), "--json"});
    return program->run(more);
  };
  const auto total = [](const ProcessResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto memory = Program::json(result)["devices"][0]["memory"];
    return memory["total"].get<std::int64_t>() - memory.value("process", std::int64_t{0});
  };
  EXPECT_GT(total(plan({"--lora", path("a")})), total(plan({})));
  EXPECT_EQ(plan({"--lora", path("none")}).exit_code, 4);
  EXPECT_EQ(plan({"--lora", path("dora")}).exit_code, 2);
}

TEST_F(LoraCommand, AnAdapterIsNoModel) {
  for (const char* command : {"info", "run", "verify", "import"}) {
    Line line = {command, path("a")};
    if (std::string(command) == "run") line.emplace_back("hello");
    const ProcessResult result = program->run(line);
    EXPECT_EQ(result.exit_code, 2) << command << result.err;
    EXPECT_NE(result.err.find("is a LoRA adapter, no model: give it with --lora"),
              std::string::npos)
        << command << ": " << result.err;
  }
}

TEST_F(LoraCommand, APromptCacheOfOtherAdaptersIsRefused) {
  const Line cache = {"--prompt-cache", path("saved"), "--prompt-file", path("text")};
  write(path("text"), "the cat sat on the mat, the cat sat on the mat, the cat sat");
  const auto with = [&](Line more) {
    Line line = {"run", path("model"), "--raw", "--max-tokens", "2", "--json"};
    line.insert(line.end(), cache.begin(), cache.end());
    line.insert(line.end(), more.begin(), more.end());
    return program->run(line);
  };
  EXPECT_EQ(with({"--lora", path("a")}).exit_code, 0);
  EXPECT_EQ(with({"--lora", path("a")}).exit_code, 0);
  for (const Line& other : {Line{}, Line{"--lora", path("b")}, Line{"--lora", path("a") + "=2"}}) {
    const ProcessResult result = with(other);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(Program::json(result)["error"]["code"], "K03");
  }
}

TEST_F(LoraCommand, TheOtherCommandsTakeItToo) {
  const auto logits = [&](Line more) {
    Line line = {"logits", path("model"), "--tokens", "1,2,3", "-o", path("l.npy"), "--force"};
    line.insert(line.end(), more.begin(), more.end());
    EXPECT_EQ(program->run(line).exit_code, 0);
    std::ifstream file(path("l.npy"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string plain = logits({});
  EXPECT_NE(logits({"--lora", path("a")}), plain);
  EXPECT_EQ(logits({"--lora", path("a") + "=0"}), plain);
  write(path("words"), "the cat sat on the mat and the dog lay under the table all day long");
  const auto perplexity = [&](Line more) {
    Line line = {"perplexity", path("model"), "--file", path("words"), "--json"};
    line.insert(line.end(), more.begin(), more.end());
    return Program::json(program->run(line))["perplexity"];
  };
  EXPECT_NE(perplexity({"--lora", path("a")}), perplexity({}));
  EXPECT_EQ(
      program->run({"bench", path("model"), "-p", "8", "-n", "2", "-r", "1", "--lora", path("a")})
          .exit_code,
      0);
  const ProcessResult tokenizer =
      program->run({"bench", path("model"), "--tokenize", path("words"), "--lora", path("a")});
  EXPECT_EQ(tokenizer.exit_code, 1) << "it has no effect there";
}

}  // namespace
}  // namespace cyb::test
