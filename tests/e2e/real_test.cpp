// SmolLM2, a real model: an answer that is right, Ctrl-C, a chat on a terminal.
#include <gtest/gtest.h>

#include "e2e/program.hpp"
#include "support/models.hpp"
#include "support/terminal.hpp"

namespace cyb::test {
namespace {

class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2); }
  Program program;
  std::string model = model_file(kSmolLm2);
};

TEST_F(SmolLm2, AnswersAndPipes) {
  const ProcessResult answer = program.run({"run", model, "What is the capital city of Japan?",
                                            "--max-tokens", "32", "--temperature", "0"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out.find("Tokyo"), std::string::npos) << answer.out;
  EXPECT_TRUE(answer.out.ends_with('\n'));
  EXPECT_EQ(answer.err.find('\x1b'), std::string::npos) << "no progress bar in a pipe";
  ProcessOptions piped;
  piped.input = "What is the capital city of Japan?";
  EXPECT_EQ(program.run({"run", model, "--max-tokens", "32", "--temperature", "0"}, piped).out,
            answer.out);
  const ProcessResult stopped =
      program.run({"run", model, "What is the capital city of Japan?", "--max-tokens", "32",
                   "--temperature", "0", "--stop", "Tokyo"});
  EXPECT_EQ(stopped.out.find("Tokyo"), std::string::npos);
}

TEST_F(SmolLm2, CtrlCEndsTheAnswer) {
  ProcessOptions options;
  options.interrupt_after_ms = 200;
  const ProcessResult result = program.run(
      {"run", model, "--raw", "Count: 1 2 3 4 5", "--stop", "\x01", "--temperature", "0"}, options);
  // The model may come to its own end before the signal; with a long answer it does not.
  EXPECT_EQ(result.exit_code, 5) << result.out << result.err;
  EXPECT_NE(result.err.find("cancelled after "), std::string::npos) << result.err;
  EXPECT_FALSE(result.out.empty());
}

TEST_F(SmolLm2, ChatAtATerminal) {
  ASSERT_EQ(program.run({"info", model}).exit_code, 0);
  Terminal terminal(
      {built_program("cyb-llm"), "run", model, "--temperature", "0", "--max-tokens", "200"},
      program.environment());
  ASSERT_TRUE(terminal.wait_for("/help for help")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("What is the capital city of Japan?\r");
  ASSERT_TRUE(terminal.wait_for("Tokyo")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.screen();
  terminal.type("/stats\r");
  ASSERT_TRUE(terminal.wait_for("tokens/s")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("Write a very long story about a ship.\r");
  ASSERT_TRUE(terminal.wait_for("ship")) << terminal.screen();  // the echo
  ASSERT_TRUE(terminal.wait_for(" the ")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.wait_for("(stopped)")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.screen();
  terminal.type("half a line\x03");
  ASSERT_TRUE(terminal.wait_for("\n")) << terminal.screen();
  terminal.type("/save " + program.file("chat.md") + "\r");
  ASSERT_TRUE(terminal.wait_for("4 messages saved")) << terminal.screen();
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.finish(), 0) << terminal.screen();
}

}  // namespace
}  // namespace cyb::test
