// quantize by the built program: what it prints, what it refuses, and that a run that fails leaves
// no file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "support/terminal.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

/// A checkpoint of f32 weights whose rows are below a block of 256.
class Quantize : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_text_checkpoint(source_));
    fs::create_directory(out_);
  }
  ProcessResult quantize(std::vector<std::string> line, const ProcessOptions& options = {}) const {
    line.insert(line.begin(), "quantize");
    return program_.run(line, options);
  }
  /// A bash command that has the program as $0.
  ProcessResult shell(const std::string& command) const {
    ProcessOptions options;
    options.environment = program_.environment();
    return run_process({"bash", "-c", command, built_program("cyb-llm")}, options);
  }
  bool nothing_was_written() const { return fs::is_empty(out_); }

  Program program_;
  std::string source_ = program_.file("talker"), out_ = program_.file("out");
};

TEST_F(Quantize, PrintsWhatBecameOfEachTensor) {
  const ProcessResult text = quantize({source_, "--to", "q4k", "-o", out_ + "/a.model"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("mlp.up_proj.weight: q5_0 (rows of "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("bits a value"), std::string::npos);
  EXPECT_NE(text.out.find(out_ + "/a.model\n"), std::string::npos);
  EXPECT_EQ(text.err.find('\r'), std::string::npos) << "a progress bar in a pipe";
  const ProcessResult json = quantize({source_, "--to", "q4k", "-o", out_ + "/b.model", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto answer = Program::json(json);
  EXPECT_EQ(answer["to"], "q4k");
  EXPECT_GT(answer["bytes_before"], answer["bytes_after"]);
  EXPECT_GT(answer["tensors"].size(), 5u);
  const ProcessResult quiet = quantize({"-q", source_, "--to", "q8", "-o", out_ + "/c.model"});
  EXPECT_EQ(quiet.out, out_ + "/c.model\n");
  std::ifstream a(out_ + "/a.model", std::ios::binary), b(out_ + "/b.model", std::ios::binary);
  const std::string one{std::istreambuf_iterator<char>(a), {}},
      two{std::istreambuf_iterator<char>(b), {}};
  EXPECT_EQ(one, two) << "two runs differ";
  EXPECT_EQ(program_.run({"verify", out_ + "/a.model"}).exit_code, 0);
  EXPECT_EQ(program_.run({"run", out_ + "/a.model", "--raw", "a", "--max-tokens", "3"}).exit_code,
            0);
}

TEST_F(Quantize, NothingEncodedIsSaidEvenWhenQuiet) {
  const ProcessResult kept =
      quantize({"-q", source_, "--to", "q8", "--keep", "*=f32", "-o", out_ + "/a.model"});
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_NE(kept.err.find("nothing was encoded as q8"), std::string::npos) << kept.err;
}

TEST_F(Quantize, WithoutAFileTheStoreHasIt) {
  const ProcessResult made = quantize({source_, "--to", "q8", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(Program::json(made)["name"], "talker-q8");
  EXPECT_EQ(program_.run({"verify", "talker-q8"}).exit_code, 0);
  const ProcessResult list = program_.run({"list"});
  EXPECT_NE(list.out.find("talker-q8"), std::string::npos);
  EXPECT_EQ(list.out.find("talker "), std::string::npos) << "the source was stored too";
}

TEST_F(Quantize, RefusesWhatItCannotDo) {
  ASSERT_EQ(program_.run({"import", source_, "-o", program_.file("s.model")}).exit_code, 0);
  struct Row {
    std::vector<std::string> line;
    const char* part;
  };
  const std::string out = out_ + "/x.model";
  const Row rows[] = {
      {{source_, "-o", out}, "--to"},
      {{source_, "--to", "iq4nl", "-o", out}, "is none of"},
      {{source_, "--to", "f16", "-o", out}, "is none of"},
      {{source_, "--to", "q8", "--keep", "nothing=q8", "-o", out}, "matches no tensor"},
      {{source_, "--to", "q8", "--keep", "q8", "-o", out}, "PATTERN=ENC"},
      {{source_, "--to", "q8", "--keep", "*norm*=q8", "-o", out}, "two dimensions"},
      {{source_, "--to", "q8", "--force"}, "--force"},
      {{program_.file("s.model"), "--to", "q8", "-o", program_.file("s.model")}, "exists"},
      {{program_.file("s.model"), "--to", "q8", "-o", program_.file("s.model"), "--force"},
       "the source itself"},
      {{source_, "--to", "q8", "-o", source_ + "/model.safetensors", "--force"},
       "the source itself"},
  };
  for (const Row& row : rows) {
    const ProcessResult result = quantize(row.line);
    EXPECT_EQ(result.exit_code, 1) << row.part;
    EXPECT_NE(result.err.find(row.part), std::string::npos) << result.err;
    EXPECT_TRUE(nothing_was_written()) << row.part;
  }
  EXPECT_EQ(program_.run({"verify", program_.file("s.model")}).exit_code, 0);
}

TEST_F(Quantize, ASecondTimeHasToBeAllowed) {
  const std::string first = program_.file("q8.model"), second = out_ + "/q4.model";
  ASSERT_EQ(quantize({source_, "--to", "q8", "-o", first}).exit_code, 0);
  const ProcessResult refused = quantize({first, "--to", "q4", "-o", second});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--allow-requantize"), std::string::npos) << refused.err;
  EXPECT_TRUE(nothing_was_written());
  const ProcessResult allowed = quantize({first, "--to", "q4", "--allow-requantize", "-o", second});
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_NE(allowed.err.find("warning: "), std::string::npos) << allowed.err;
}

TEST_F(Quantize, AFullDiskIsAnErrorAndLeavesNothing) {
  // A limit on file sizes stands for the disk: the write fails in the same way.
  const ProcessResult result = shell("trap '' XFSZ; ulimit -f 40; exec \"$0\" quantize " + source_ +
                                     " --to q8 -o " + out_ + "/x.model");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("error: "), std::string::npos) << result.err;
  EXPECT_TRUE(nothing_was_written());
}

}  // namespace
}  // namespace cyb::test
