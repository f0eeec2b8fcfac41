// plan: what it says, its exit codes, and that it is what a child process really takes.
#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "e2e/npy_file.hpp"
#include "e2e/program.hpp"
#include "support/models.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

const json& host(const json& plan) {
  return plan.at("devices").at(0);
}

TEST(Plan, SaysBytesByPool) {
  const Program program;
  const std::string model = golden("gguf_tiny/llama.gguf");
  const ProcessResult text =
      program.run({"plan", model, "--batch", "2", "--path", "curated", "--backend", "cpu"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("curated path on "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(": 2 sequences of "), std::string::npos) << text.out;
  for (const char* row : {"weights, packed ", "KV cache ", "run ", "total ", "it fits"}) {
    EXPECT_NE(text.out.find(row), std::string::npos) << row << "\n" << text.out;
  }
  const json plan = Program::json(program.run(
      {"plan", model, "--batch", "2", "--path", "curated", "--backend", "cpu", "--json"}));
  ASSERT_TRUE(plan.is_object());
  EXPECT_EQ(plan.at("batch"), 2);
  EXPECT_EQ(plan.at("path"), "curated");
  EXPECT_EQ(host(plan).at("fits"), true);
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : host(plan).at("memory").items()) {
    if (name != "total") sum += bytes.get<std::uint64_t>();
  }
  EXPECT_EQ(host(plan).at("memory").at("total"), sum);
}

TEST(Plan, MistakesAreNamed) {
  const Program program;
  const std::string text = golden("gguf_tiny/llama.gguf"), graph = golden("onnx/mlp.onnx");
  const std::tuple<std::vector<std::string>, const char*> cases[] = {
      {{"plan", text, "--dim", "N=1"}, "--dim is for a model of tensors; this is one of text"},
      {{"plan", text, "--ctx", "1000000"}, "--ctx 1000000 is more than the "},
      {{"plan", text, "--kv", "q2"}, "--kv: \"q2\" is none of f32, f16, q8, q4"},
      {{"plan", graph, "--ctx", "16"}, "--ctx is for a model of text; this is one of tensors"},
      {{"plan", graph, "--dim", "oops"}, "--dim oops: write NAME=N"},
      {{"plan", graph},
       "the size of batch is not known: give it with --dim batch=N; the input is x f32 [batch, 6]"},
      {{"plan", graph, "--dim", "batch=2", "--dim", "x.1=6"},
       "no input has a dimension \"x.1\" without a size"},
  };
  for (const auto& [command, what] : cases) {
    const ProcessResult result = program.run(command);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
  }
}

/// A graph of tensors takes in a run what its plan says.
TEST(Plan, TensorsToo) {
  const Program program;
  const std::string model = golden("onnx/detector.onnx"), x = program.file("x.npy");
  const auto want = json::parse(std::ifstream(golden("onnx/detector.json")));
  write_npy(x, "(1, 3, 8, 8)", want["inputs"][0]["values"].get<std::vector<float>>());
  const json run = Program::json(program.run({"run", model, "--input", "x=" + x, "--json"}));
  ASSERT_TRUE(run.is_object());
  const ProcessResult planned = program.run({"plan", model, "--json"});
  const json plan = Program::json(planned);
  ASSERT_TRUE(plan.is_object()) << planned.out << planned.err;
  for (const auto& [name, bytes] : run.at("memory").items()) {
    if (name == "process" || name == "total") continue;
    EXPECT_EQ(host(plan).at("memory").at(name), bytes) << name;
  }
  EXPECT_GT(run.at("memory").at("run"), 0);
  const auto run_bytes = [&](const char* batch) {
    const json sized = Program::json(program.run(
        {"plan", golden("onnx/mlp.onnx"), "--dim", std::string("batch=") + batch, "--json"}));
    return host(sized).at("memory").at("run").get<std::uint64_t>();
  };
  EXPECT_GT(run_bytes("4096"), run_bytes("1"));
}

class RealPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2);
    // Packed weights are made once; what is measured maps them.
    ASSERT_EQ(program_.run({"run", model_, "x", "--max-tokens", "1"}).exit_code, 0);
  }
  /// Peak of a child that fills `tokens` of context against its plan.
  void expect_peak(std::vector<std::string> options, const std::string& tokens,
                   const std::string& batch) {
    std::vector<std::string> bench = {"bench", model_, "-p", tokens, "-n",    "0",
                                      "-b",    batch,  "-r", "1",    "--json"};
    std::vector<std::string> plan = {"plan", model_, "--ctx", tokens, "--batch", batch, "--json"};
    bench.insert(bench.end(), options.begin(), options.end());
    plan.insert(plan.end(), options.begin(), options.end());
    const ProcessResult measured = program_.run(bench);
    ASSERT_EQ(measured.exit_code, 0) << measured.err;
    const json row = Program::json(measured).at("rows").back();
    const ProcessResult planned = program_.run(plan);
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    const json memory = host(Program::json(planned)).at("memory");
    const auto total = memory.at("total").get<double>(), peak = row.at("peak_bytes").get<double>();
    EXPECT_NEAR(total, peak, 0.02 * peak) << memory << "\n" << row;
    for (const char* pool : {"weights_mapped", "weights_packed", "weights_own", "kv", "run"}) {
      const auto got = row.at("memory").at(pool).get<double>();
      EXPECT_NEAR(memory.at(pool).get<double>(), got, 0.02 * got) << pool;
    }
  }
  Program program_;
  std::string model_ = model_file(kSmolLm2);
};

TEST_F(RealPlan, IsThePeakOfAChildProcess) {
  expect_peak({}, "1024", "1");
  expect_peak({"--exact"}, "512", "2");
}

/// 4096 sequences of 8192 tokens are more than a terabyte.
TEST_F(RealPlan, WhatDoesNotFitIsExitCodeFour) {
  const json one = Program::json(program_.run({"plan", model_, "--json"}));
  const ProcessResult many = program_.run({"plan", model_, "--batch", "4096", "--json"});
  const json plan = Program::json(many);
  ASSERT_TRUE(plan.is_object()) << many.out << many.err;
  EXPECT_EQ(many.exit_code, 4) << many.out;
  EXPECT_EQ(host(plan).at("fits"), false);
  EXPECT_EQ(host(plan).at("memory").at("kv"),
            4096 * host(one).at("memory").at("kv").get<std::uint64_t>());
  const ProcessResult text = program_.run({"plan", model_, "--batch", "4096"});
  EXPECT_EQ(text.exit_code, 4);
  EXPECT_NE(text.out.find("it does not fit"), std::string::npos) << text.out;
}

}  // namespace
}  // namespace cyb::test
