// Requests that a model cannot serve, streams that break and notes that must be there, on a small
// model that is imported once for all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "support/terminal.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

/// 128 positions; "<|im_start|>" is no BOS that is added.
class Talker : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    program = new Program;
    ASSERT_TRUE(write_text_checkpoint(program->file("talker")));
    model = program->file("talker.model");
    ASSERT_EQ(program->run({"import", program->file("talker"), "-o", model}).exit_code, 0);
    // The note on packed weights comes once: here.
    ASSERT_EQ(run({"run", "--raw", "a", "--max-tokens", "1"}).exit_code, 0);
  }
  static void TearDownTestSuite() {
    delete program;
    program = nullptr;
  }
  static ProcessResult run(std::vector<std::string> line, const ProcessOptions& options = {}) {
    line.insert(line.begin() + 1, model);
    return program->run(line, options);
  }
  /// A shell command with the program as $0 and the model as $1.
  static ProcessResult shell(const std::string& command) {
    ProcessOptions options;
    options.environment = program->environment();
    return run_process({"bash", "-c", command, built_program("cyb-llm"), model}, options);
  }
  static Program* program;
  static std::string model;
};
Program* Talker::program = nullptr;
std::string Talker::model;

TEST_F(Talker, ContextOverflowSaysHowMuchAndWhatToDo) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "word ";
  const ProcessResult full = run({"run", "--raw", text, "--json"});
  EXPECT_EQ(full.exit_code, 1);
  const auto error = Program::json(full)["error"];
  EXPECT_EQ(error["code"], "ContextOverflow");
  const std::string n = error["detail"]["position"];
  EXPECT_EQ(full.err, "error: context overflow: the prompt has " + n +
                          " tokens, the context holds 128; the model has no more (--ctx)\n");
  const ProcessResult small = run({"run", "--raw", "one two three four five", "--ctx", "2"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_NE(small.err.find("the context holds 2; --ctx N gives more, up to 128"), std::string::npos)
      << small.err;
  const ProcessResult logits =
      run({"logits", "--tokens", "1,2,3", "--ctx", "2", "-o", program->file("o.npy")});
  EXPECT_EQ(logits.exit_code, 1);
  EXPECT_NE(logits.err.find("--tokens has 3 tokens, the context holds 2"), std::string::npos);
  EXPECT_FALSE(fs::exists(program->file("o.npy")));
}

TEST_F(Talker, MoreContextThanTheModelHasIsAUsageError) {
  const ProcessResult run_result = run({"run", "--raw", "x", "--ctx", "129"});
  EXPECT_EQ(run_result.exit_code, 1);
  EXPECT_EQ(
      run_result.err,
      "error: --ctx 129 is more than the 128 positions of the model: it has no rope_scaling that "
      "reaches further\nSee: cyb-llm run "
      "--help\n");
  const ProcessResult bench = run({"bench", "-p", "4096", "-r", "1"});
  EXPECT_EQ(bench.exit_code, 1);
  EXPECT_NE(bench.err.find("-p 4096 is more than the 128 positions"), std::string::npos);
}

TEST_F(Talker, WindowsOfPerplexityNeedTwoTokens) {
  ProcessOptions text;
  text.input = "the cat sat on the mat";
  const ProcessResult one = run({"perplexity", "--ctx", "1"}, text);
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_NE(one.err.find("--ctx 1: a window needs 2 tokens or more"), std::string::npos) << one.err;
  EXPECT_EQ(run({"perplexity", "--ctx", "2"}, text).exit_code, 0);
}

TEST_F(Talker, CancelledWorkSaysSoOnce) {
  // The signal comes to the process and to its group, as from a shell that ends a job.
  const ProcessResult bench =
      shell("\"$0\" bench \"$1\" -r 1000 -p 64 -n 64 --json & " + terminate_when_ready(2));
  EXPECT_EQ(bench.exit_code, 5);
  EXPECT_EQ(bench.err, "error: bench was cancelled\n");
  EXPECT_EQ(Program::json(bench)["error"]["code"], "Cancelled") << bench.out;
}

TEST_F(Talker, TheLimitOnFileSizesIsAnErrorThatLeavesNothing) {
  const std::string out = program->file("limited");
  const ProcessResult result = shell("mkdir " + out + " && ulimit -f 1 && \"$0\" logits \"$1\" " +
                                     "--tokens 1,2,3 -o " + out + "/o.npy");
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  EXPECT_TRUE(fs::is_empty(out));
}

TEST_F(Talker, PromptsThatAreEmptyOrNoText) {
  ProcessOptions bad;
  bad.input = "ab\xFF";
  const ProcessResult piped = run({"run", "--json"}, bad);
  EXPECT_EQ(piped.exit_code, 1);
  EXPECT_EQ(piped.err, "error: input: the prompt is not UTF-8: byte 0xFF at offset 2\n");
  EXPECT_EQ(Program::json(piped)["error"]["code"], "InvalidInput");
  EXPECT_EQ(run({"perplexity"}, bad).exit_code, 1);
  std::ofstream(program->file("bad.txt")) << "\xC0";
  EXPECT_EQ(run({"tokenize", "--file", program->file("bad.txt")}).exit_code, 1);
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"run"}, {"run", ""}, {"run", "--raw", ""}}) {
    const ProcessResult empty = run(line);
    EXPECT_EQ(empty.exit_code, 1) << line.size();
    EXPECT_TRUE(empty.err.starts_with("error: the prompt is empty")) << empty.err;
    EXPECT_EQ(empty.out, "");
  }
  EXPECT_EQ(run({"run", "--raw", " ", "--max-tokens", "1"}).exit_code, 0);
  const ProcessResult nothing = run({"tokenize", "", "--json"});
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  EXPECT_EQ(Program::json(nothing)["ids"].size(), 0u);
}

TEST_F(Talker, ProcessSubstitutionIsAFile) {
  const ProcessResult file = shell("\"$0\" tokenize \"$1\" --file <(printf 'the cat')");
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_EQ(file.out, run({"tokenize", "the cat"}).out);
}

TEST_F(Talker, OptionsWithoutEffectAreNoted) {
  const ProcessResult greedy = run({"run", "--raw", "a", "--max-tokens", "1", "--seed", "3",
                                    "--temperature", "0", "--top-k", "4"});
  EXPECT_EQ(greedy.exit_code, 0);
  EXPECT_EQ(greedy.err,
            "--top-k has no effect: the answer is greedy\n--seed has no effect: the answer is "
            "greedy\n");
  EXPECT_EQ(run({"run", "--raw", "a", "--max-tokens", "1", "--seed", "3", "--top-k", "4"}).err, "");
}

TEST_F(Talker, PresetWhoseMarksAreNoTokensIsWarnedOf) {
  const ProcessResult other = run({"run", "hi", "--chat", "llama3", "--max-tokens", "1"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(other.err,
            "warning: --chat llama3: \"<|eot_id|>\" is no control token of this model; its marks "
            "are read as plain text\n");
  EXPECT_EQ(run({"run", "hi", "--chat", "chatml", "--max-tokens", "1"}).err, "");
  EXPECT_EQ(run({"run", "hi", "--chat", "plain", "--max-tokens", "1"}).err, "");
}

TEST_F(Talker, FullDiskIsToldOnceAndAlone) {
  for (const std::string& command :
       {std::string("run \"$1\" --raw hello --temperature 5 --seed 3"),
        std::string("run \"$1\" --raw hello --max-tokens 2 --json"),
        std::string("bench \"$1\" -p 4 -n 4 -r 1 -t 1"), std::string("info \"$1\""),
        std::string("tokenize \"$1\" hello"), std::string("verify \"$1\"")}) {
    const ProcessResult result = shell("exec \"$0\" " + command + " > /dev/full");
    EXPECT_EQ(result.exit_code, 4) << command << result.err;
    EXPECT_EQ(result.err, "error: standard output: cannot write: No space left on device\n")
        << command;
  }
}

TEST_F(Talker, ReaderThatLeavesEndsTheWorkQuietly) {
  for (const std::string& command : {std::string("run \"$1\" --raw hello --temperature 5 --seed 3"),
                                     std::string("bench \"$1\" -p 4 -n 4,5,6,7,8,9 -r 1 -t 1")}) {
    const ProcessResult result =
        shell("set -o pipefail; \"$0\" " + command + " | head -c 1 > /dev/null");
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_EQ(result.err, "") << command;
  }
}

TEST_F(Talker, BenchSaysHowManyThreads) {
  const ProcessResult own = run({"bench", "-p", "4", "-n", "0", "-r", "1"});
  ASSERT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(own.out.find(" 0 thread"), std::string::npos) << own.out;
  const ProcessResult two =
      run({"bench", "-p", "4", "-n", "0", "-r", "1", "--threads", "2", "--json"});
  EXPECT_EQ(Program::json(two)["rows"][0]["threads"], 2);
}

TEST_F(Talker, VerifyFindsOneChangedWeightByte) {
  const std::string damaged = program->file("damaged.model");
  fs::copy_file(model, damaged, fs::copy_options::overwrite_existing);
  {
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-100, std::ios::end);
    const char byte = static_cast<char>(file.get());
    file.seekp(-100, std::ios::end);
    file.put(static_cast<char>(byte ^ 1));
  }
  const std::vector<std::string> line = {"run", damaged, "--raw", "a", "--max-tokens", "1"};
  EXPECT_EQ(program->run(line).exit_code, 0) << "hashes are read only when that is asked for";
  std::vector<std::string> checked = line;
  checked.insert(checked.end(), {"--verify", "--json"});
  const ProcessResult result = program->run(checked);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  const std::string code = Program::json(result)["error"]["code"];
  EXPECT_TRUE(code == "F40" || code == "F41") << code;
  EXPECT_EQ(run({"run", "--raw", "a", "--max-tokens", "1", "--verify"}).exit_code, 0);
  const std::string npy = program->file("verified.npy"), text = program->file("verified.txt");
  std::ofstream(text) << "one two three";
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"logits", damaged, "--tokens", "1,2", "-o", npy},
        std::vector<std::string>{"perplexity", damaged, "--file", text}}) {
    EXPECT_EQ(program->run(other).exit_code, 0) << other[0];
    std::vector<std::string> with = other;
    with.insert(with.end(), {"--force", "--verify"});
    if (other[0] == "perplexity") with.erase(with.end() - 2);
    EXPECT_EQ(program->run(with).exit_code, 2) << other[0];
  }
  EXPECT_NE(program->run({"run", "--help"}).out.find("--verify"), std::string::npos);
  const std::string info = run({"info"}).out;
  EXPECT_NE(info.find("the weights by `cyb-llm verify` or `run --verify`"), std::string::npos);
}

TEST_F(Talker, ChatSavesNothingWhereNothingWasSaid) {
  Terminal terminal({built_program("cyb-llm"), "run", model, "--max-tokens", "2"},
                    program->environment());
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.screen();
  terminal.type("/save " + program->file("empty.md") + "\r");
  ASSERT_TRUE(terminal.wait_for("nothing to save")) << terminal.screen();
  EXPECT_FALSE(fs::exists(program->file("empty.md")));
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.finish(), 0) << terminal.screen();
}

TEST_F(Talker, ChatRefusesALineThatIsNotUtf8) {
  Terminal terminal({built_program("cyb-llm"), "run", model, "--raw", "--max-tokens", "2"},
                    program->environment());
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.screen();
  terminal.type("caf\xE9 au lait\r");
  ASSERT_TRUE(terminal.wait_for("no UTF-8: it was not sent")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.screen();
  terminal.type("/stats\r");
  EXPECT_TRUE(terminal.wait_for("No answer yet")) << terminal.screen();
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.finish(), 0) << terminal.screen();
}

TEST_F(Talker, StdoutThatCannotBeWrittenIsToldBeforeTheWork) {
  for (const std::string& command : {std::string("run --raw --max-tokens 1 no.model hi"),
                                     std::string("perplexity no.model --file /dev/null")}) {
    const ProcessResult result = shell("\"$0\" " + command + " >&-");
    EXPECT_EQ(result.exit_code, 4) << command;
    EXPECT_TRUE(result.err.starts_with("error: standard output: cannot write")) << result.err;
  }
}

TEST_F(Talker, PackedWeightsOnDiskAreSaidOnce) {
  const Program fresh;
  const std::vector<std::string> line = {"run", model,    "--raw",   "a",         "--max-tokens",
                                         "1",   "--path", "curated", "--backend", "cpu"};
  EXPECT_NE(fresh.run(line).err.find("packed weights are kept in " + fresh.file("cache")),
            std::string::npos);
  EXPECT_EQ(fresh.run(line).err, "");
}

/// Positions enough that an answer takes a while.
TEST_F(Talker, WhatIsTypedDuringAnAnswerBeginsTheNextLine) {
  ASSERT_TRUE(write_text_checkpoint(program->file("long"), {.context_tokens = 16384}));
  Terminal terminal(
      {built_program("cyb-llm"), "run", program->file("long"), "--raw", "--temperature", "5",
       "--seed", "3", "--backend", "reference", "--stop", "\x01never", "--max-tokens", "400"},
      program->environment());
  ASSERT_TRUE(terminal.wait_for("Ctrl-D to end")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.screen();
  terminal.type("hello\r");
  ASSERT_TRUE(terminal.wait_for("hello")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("\n")) << terminal.screen();
  const std::size_t answer = terminal.screen().size();
  terminal.type("/qu");
  terminal.type("it\r");
  EXPECT_EQ(terminal.finish(), 0) << terminal.screen();
  const std::string after = terminal.screen().substr(answer);
  const std::size_t prompt = after.rfind("> ");
  ASSERT_NE(prompt, std::string::npos) << after;
  EXPECT_EQ(after.substr(0, prompt).find("/q"), std::string::npos) << after;
  EXPECT_NE(after.substr(prompt).find("/quit"), std::string::npos) << after;
}

}  // namespace
}  // namespace cyb::test
