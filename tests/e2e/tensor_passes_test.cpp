// The passes of a run of tensors through the command line: --no-fuse, --profile, --trace, Ctrl-C.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "e2e/npy_file.hpp"
#include "e2e/program.hpp"

namespace cyb::test {
namespace {

/// The last n values of a file.
std::vector<float> read_values(const std::string& path, std::size_t n) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<float> out(n);
  if (bytes.size() < n * sizeof(float)) return {};
  std::memcpy(out.data(), bytes.data() + bytes.size() - n * sizeof(float), n * sizeof(float));
  return out;
}

TEST(TensorPasses, QdqResizeKeepsItsValues) {
  const Program program;
  const std::string x = program.file("x.npy"), out = program.file("out");
  write_npy(x, "(1, 1, 1, 3)", {2, 7, 4});
  for (const std::string backend : {"reference", "cpu"}) {
    for (const bool fuse : {true, false}) {
      std::vector<std::string> command = {"run",      golden("onnx/qdq_resize.onnx"),
                                          "--input",  "x=" + x,
                                          "--output", out,
                                          "--force",  "--backend",
                                          backend};
      if (!fuse) command.emplace_back("--no-fuse");
      const ProcessResult done = program.run(command);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      EXPECT_EQ(read_values(out + "/y.npy", 6), (std::vector<float>{2, 3, 6, 6, 5, 4})) << backend;
    }
  }
}

TEST(TensorPasses, ProfileAndTraceNameTheSteps) {
  const Program program;
  const std::string x = program.file("x.npy"), trace = program.file("trace.json");
  write_npy(x, "(2, 6)", {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
  std::vector<std::string> command = {"run",       golden("onnx/mlp.onnx"),
                                      "--input",   "x=" + x,
                                      "--backend", "reference",
                                      "--profile", "--trace",
                                      trace};
  const ProcessResult fused = program.run(command);
  ASSERT_EQ(fused.exit_code, 0) << fused.err;
  EXPECT_NE(fused.err.find("+Relu"), std::string::npos) << fused.err;
  EXPECT_NE(fused.err.find("fallback"), std::string::npos) << fused.err;
  EXPECT_NE(fused.err.find("Softmax"), std::string::npos) << fused.err;
  EXPECT_EQ(fused.out.find("fallback"), std::string::npos) << "the table is no answer";
  const auto events = nlohmann::json::parse(std::ifstream(trace))["traceEvents"];
  ASSERT_GE(events.size(), 3u);
  double last = 0;
  for (const auto& event : events) {
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>() + 1e-3, last);
    last = event["ts"].get<double>() + event["dur"].get<double>();
    EXPECT_FALSE(event["args"]["node"].get<std::string>().empty());
  }
  EXPECT_EQ(program.run(command).exit_code, 1) << "a file that exists needs --force";
  command.insert(command.end(), {"--force", "--no-fuse"});
  const ProcessResult plain = program.run(command);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.err.find("+Relu"), std::string::npos) << plain.err;
  EXPECT_EQ(plain.out, fused.out) << "equal bits give equal summaries";
  EXPECT_GT(nlohmann::json::parse(std::ifstream(trace))["traceEvents"].size(), events.size());
}

TEST(TensorPasses, ProfileCountsTheStepsOfBodies) {
  const Program program;
  const std::string x = program.file("x.npy"), trace = program.file("trace.json");
  write_npy(x, "(2, 2)", {0.5f, -0.25f, 0.125f, 0.5f});
  const ProcessResult done = program.run(
      {"run", golden("onnx/products.onnx"), "--input", "x=" + x, "--profile", "--trace", trace});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find(" 4096 "), std::string::npos) << "a product in each round: " << done.err;
  EXPECT_GE(nlohmann::json::parse(std::ifstream(trace))["traceEvents"].size(), 4096u);
}

TEST(TensorPasses, InterruptEndsARunBeforeItsNextStep) {
  const Program program;
  const std::string x = program.file("x.npy"), out = program.file("out");
  write_npy(x, "(384, 384)", std::vector<float>(384 * 384, 0.002f));
  ProcessOptions options;
  options.interrupt_after_ms = 3000;
  options.interrupt_from_start = true;
  const ProcessResult done = program.run({"run", golden("onnx/products.onnx"), "--input", "x=" + x,
                                          "--output", out, "--backend", "reference"},
                                         options);
  EXPECT_EQ(done.exit_code, 5) << done.err;
  EXPECT_FALSE(std::filesystem::exists(out)) << "nothing is written";
}

}  // namespace
}  // namespace cyb::test
