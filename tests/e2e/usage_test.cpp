// What the program says without a model: help, usage errors, limits, backends, streams that break.
#include <gtest/gtest.h>

#include "e2e/program.hpp"

namespace cyb::test {
namespace {

const std::vector<std::string> kCommands = {"run",    "import", "tokenize", "logits", "perplexity",
                                            "info",   "verify", "check",    "list",   "backends",
                                            "limits", "bench",  "plan",     "serve",  "replay"};

TEST(Usage, HelpOfEveryCommand) {
  const Program program;
  const ProcessResult all = program.run({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.err, "");
  for (const std::string& command : kCommands) {
    EXPECT_NE(all.out.find("\n  " + command + " "), std::string::npos) << command;
    const ProcessResult help = program.run({command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_NE(help.out.find("cyb-llm " + command), std::string::npos) << help.out;
    EXPECT_EQ(help.err, "");
  }
}

TEST(Usage, RunHasEveryOption) {
  const std::string help = Program().run({"run", "--help"}).out;
  for (const char* option :
       {"PROMPT",        "--prompt-file", "--system",      "--raw",     "--max-tokens",
        "--temperature", "--top-k",       "--top-p",       "--min-p",   "--repetition-penalty",
        "--seed",        "--stop",        "--ctx",         "--threads", "--path",
        "--backend",     "--exact",       "--no-fallback", "--json",    "--logprobs"}) {
    EXPECT_NE(help.find(option), std::string::npos) << option;
  }
}

TEST(Usage, VersionAndNothing) {
  const Program program;
  EXPECT_EQ(program.run({"--version"}).out, "cyb-llm 0.1.0\n");
  EXPECT_EQ(program.run({}).exit_code, 1);
}

TEST(Usage, WrongCommandLinesAreExitCode1) {
  const Program program;
  const std::vector<std::vector<std::string>> wrong = {
      {"frobnicate"},
      {"run"},
      {"run", "m", "--frob"},
      {"run", "m", "p", "--temperature", "hot"},
      {"run", "m", "p", "--temperature", "-1"},
      {"run", "m", "p", "--temperature", "nan"},
      {"run", "m", "p", "--max-tokens", "0"},
      {"run", "m", "p", "--max-tokens", "-5"},
      {"run", "m", "p", "--top-k", "1.5"},
      {"run", "m", "p", "--seed", "18446744073709551616"},
      {"run", "m", "p", "--threads", "0"},
      {"bench", "m", "-p", "1,x"},
      {"run", "m", "p", "--raw", "--system", "s"},
      {"logits", "m", "-o", "x.npy"},
      {"limits", "extra"},
  };
  for (const auto& line : wrong) {
    const ProcessResult result = program.run(line);
    std::string shown;
    for (const std::string& word : line) shown += word + " ";
    EXPECT_EQ(result.exit_code, 1) << shown << result.err;
    EXPECT_TRUE(result.err.starts_with("error: ")) << shown << result.err;
    EXPECT_EQ(result.out, "") << shown;
  }
}

TEST(Usage, MissingModels) {
  const Program program;
  const ProcessResult path = program.run({"info", "./none.model"});
  EXPECT_EQ(path.exit_code, 4);
  EXPECT_EQ(path.err, "error: ./none.model: cannot open: No such file or directory\n");
  const ProcessResult name = program.run({"info", "nobody", "--json"});
  EXPECT_EQ(name.exit_code, 1);
  EXPECT_EQ(Program::json(name)["error"]["code"], "InvalidInput");
  EXPECT_NE(name.err.find("no model \"nobody\""), std::string::npos);
  EXPECT_NE(name.err.find("`cyb-llm list` shows"), std::string::npos) << name.err;
}

TEST(Usage, LimitsAndBackends) {
  const Program program;
  const ProcessResult limits = program.run({"limits", "--json"});
  ASSERT_EQ(limits.exit_code, 0);
  std::size_t rank = 0;
  const auto table = Program::json(limits);
  for (const auto& row : table["limits"]) {
    if (row["name"] == "rank") rank = row["value"];
  }
  EXPECT_EQ(rank, 5u);
  EXPECT_NE(program.run({"limits"}).out.find("json_depth"), std::string::npos);
  const nlohmann::json backends = Program::json(program.run({"backends", "--json"}))["backends"];
  ASSERT_GE(backends.size(), 2u);
  for (const auto& backend : backends) EXPECT_TRUE(backend["available"]) << backend.dump();
}

TEST(Usage, EmptyStore) {
  const Program program;
  const ProcessResult list = program.run({"list"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_EQ(list.out, "");
  EXPECT_NE(list.err.find("No models in "), std::string::npos);
  EXPECT_EQ(Program::json(program.run({"list", "--json"}))["models"].size(), 0u);
  EXPECT_EQ(program.run({"-q", "list"}).err, "");
}

TEST(Streams, ReaderThatLeavesIsNoError) {
  const Program program;
  ProcessOptions options;
  options.close_stdout_early = true;
  const ProcessResult result = program.run({"limits"}, options);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(Streams, FullDiskIsAnIoError) {
  const ProcessResult result =
      run_process({"sh", "-c", "exec \"$0\" limits > /dev/full", built_program("cyb-llm")});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err, "error: standard output: cannot write: No space left on device\n");
}

TEST(Streams, ClosedStreamsDoNotHurt) {
  const ProcessResult result =
      run_process({"sh", "-c", "exec \"$0\" limits 2>&-", built_program("cyb-llm")});
  EXPECT_EQ(result.exit_code, 0);
}

}  // namespace
}  // namespace cyb::test
