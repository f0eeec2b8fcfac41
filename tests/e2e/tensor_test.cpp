// Models of tensors through the command line: .npy in, .npy out, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "e2e/npy_file.hpp"
#include "e2e/program.hpp"

namespace cyb::test {
namespace {

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};

TEST(TensorModel, InfoSaysWhatItTakes) {
  const Program program;
  const ProcessResult info = program.run({"info", golden("onnx/mlp.onnx")});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  EXPECT_NE(info.out.find("\ninput          x f32 ["), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("\noutput         "), std::string::npos) << info.out;
  EXPECT_EQ(info.out.find("layers"), std::string::npos) << info.out;
}

TEST(TensorModel, RunsFromFilesIntoFiles) {
  const Program program;
  const std::string model = golden("onnx/mlp.onnx"), x = program.file("x.npy"),
                    out = program.file("results");
  write_npy(x, "(2, 6)", kValues);
  const std::string input = "x=" + x;
  const ProcessResult first =
      program.run({"run", model, "--input", input, "--output", out, "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto json = Program::json(first);
  ASSERT_EQ(json["outputs"].size(), 1u);
  const std::string file = json["outputs"][0]["file"];
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(json["outputs"][0]["dtype"], "f32");
  EXPECT_EQ(json["path"], "graph");
  const ProcessResult again = program.run({"run", model, "--input", input, "--output", out});
  EXPECT_EQ(again.exit_code, 1) << "files that exist need --force";
  EXPECT_EQ(program.run({"run", model, "--input", input, "--output", out, "--force"}).exit_code, 0);
  const ProcessResult summary = program.run({"run", model, "--input", input});
  EXPECT_NE(summary.out.find("mean"), std::string::npos) << summary.out;
  EXPECT_EQ(program.run({"run", model, "--input", input, "--backend", "reference"}).exit_code, 0);
}

TEST(TensorModel, WhatDoesNotFitIsNamed) {
  const Program program;
  const std::string model = golden("onnx/mlp.onnx"), x = program.file("x.npy");
  write_npy(x, "(2, 6)", kValues);
  const std::string input = "x=" + x;
  const auto expect = [&](std::vector<std::string> more, const std::string& text) {
    std::vector<std::string> command = {"run", model};
    command.insert(command.end(), more.begin(), more.end());
    const ProcessResult done = program.run(command);
    EXPECT_EQ(done.exit_code, 1) << done.out << done.err;
    EXPECT_NE(done.err.find(text), std::string::npos) << done.err;
  };
  expect({"hello"}, "--input NAME=FILE");
  expect({"--input", input, "--max-tokens", "4"}, "--max-tokens");
  expect({"--input", input, "--ctx", "64"}, "--ctx");
  expect({"--input", input, "hello"}, "a prompt");
  expect({"--input", input, "--force"}, "--output");
  expect({"--input", "x"}, "NAME=FILE");
  expect({"--input", "nothing=" + x}, "it takes: x f32");
  expect({"--input", input, "--input", input}, "twice");
  write_npy(x, "(12,)", kValues);
  expect({"--input", input}, "the model takes f32");
  write_npy(x, "(2, 6)", kValues, ">f4");
  expect({"--input", input}, ">f4");
}

TEST(TensorModel, TheRunTakesTheBranchAndTheRoundsThatItsDataSays) {
  const Program program;
  for (const std::string name : {"branches", "branches_deep", "branches_else", "loops"}) {
    const auto golden_values =
        nlohmann::json::parse(std::ifstream(golden("onnx/" + name + ".json")));
    const auto& x = golden_values["inputs"][0];
    std::string shape = "(";
    for (const std::int64_t d : x["shape"]) shape += std::to_string(d) + ",";
    const std::string file = program.file(name + ".npy"), out = program.file(name);
    write_npy(file, shape + ")", x["values"].get<std::vector<float>>());
    const ProcessResult done = program.run({"run", golden("onnx/" + name + ".onnx"), "--input",
                                            "x=" + file, "--output", out, "--json"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto rows = Program::json(done)["outputs"];
    ASSERT_EQ(rows.size(), golden_values["outputs"].size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto want = golden_values["outputs"][k]["values"].get<std::vector<float>>();
      EXPECT_EQ(rows[k]["shape"], golden_values["outputs"][k]["shape"]) << name << " " << k;
      std::ifstream in(rows[k]["file"].get<std::string>(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      ASSERT_GE(bytes.size(), want.size() * sizeof(float));
      std::vector<float> got(want.size());
      if (!want.empty()) {
        std::memcpy(got.data(), bytes.data() + bytes.size() - got.size() * sizeof(float),
                    got.size() * sizeof(float));
      }
      float largest = 1;
      for (const float v : want) largest = std::max(largest, std::abs(v));
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_LE(std::abs(got[i] - want[i]), 1e-5F * largest) << name << " " << k << " " << i;
    }
  }
}

// Case I05: rows of 4 box numbers and C scores stay rows, and the scores are the graph's own.
TEST(TensorModel, TheHeadOfADetectorStaysAsItIs) {
  const Program program;
  const auto want = nlohmann::json::parse(std::ifstream(golden("onnx/detector.json")));
  const std::string x = program.file("x.npy"), out = program.file("out");
  write_npy(x, "(1, 3, 8, 8)", want["inputs"][0]["values"].get<std::vector<float>>());
  const ProcessResult done = program.run(
      {"run", golden("onnx/detector.onnx"), "--input", "x=" + x, "--output", out, "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto rows = Program::json(done)["outputs"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["name"], "output0");
  EXPECT_EQ(rows[0]["shape"], (std::vector<int>{1, 8, 16}));
  const auto values = want["outputs"][0]["values"].get<std::vector<float>>();
  std::ifstream in(rows[0]["file"].get<std::string>(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<float> got(values.size());
  ASSERT_GE(bytes.size(), got.size() * sizeof(float));
  std::memcpy(got.data(), bytes.data() + bytes.size() - got.size() * sizeof(float),
              got.size() * sizeof(float));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], values[i], 1e-5F) << i;
}

TEST(TensorModel, NamedDimensionsAreFixedAtImport) {
  const Program program;
  const std::string source = golden("onnx/branches.onnx"), out = program.file("b.model");
  const ProcessResult fixed = program.run({"import", source, "--dim", "n=2", "-o", out});
  ASSERT_EQ(fixed.exit_code, 0) << fixed.err;
  EXPECT_NE(program.run({"info", out}).out.find("x f32 [2, 20]"), std::string::npos);
  const ProcessResult unknown = program.run({"import", source, "--dim", "batch=2", "--json"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("no input has a dimension"), std::string::npos) << unknown.err;
  for (const std::string bad : {"n", "=2", "n=", "n=x", "n=-1"}) {
    const ProcessResult done = program.run({"import", source, "--dim", bad});
    EXPECT_EQ(done.exit_code, 1) << bad;
    EXPECT_NE(done.err.find("write NAME=N"), std::string::npos) << done.err;
  }
}

TEST(GraphCommand, ListsTheBodiesOfIfAndLoop) {
  const Program program;
  const ProcessResult list = program.run({"graph", golden("onnx/branches.onnx")});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("1 If\n"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find(" then, If "), std::string::npos) << list.out;
  const ProcessResult toml = program.run({"graph", golden("onnx/branches.onnx"), "--toml", "-"});
  EXPECT_NE(toml.out.find("[[graphs.nodes]]"), std::string::npos) << toml.out;
  const ProcessResult dot = program.run({"graph", golden("onnx/loops.onnx"), "--dot", "-"});
  EXPECT_NE(dot.out.find("body "), std::string::npos) << dot.out;
}

TEST(GraphCommand, ListsAndDraws) {
  const Program program;
  const std::string model = golden("onnx/mlp.onnx"), svg = program.file("graph.svg");
  const ProcessResult listed = program.run({"graph", model});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_NE(listed.out.find("input   x f32"), std::string::npos) << listed.out;
  EXPECT_EQ(program.run({"graph", model, "--svg", svg}).exit_code, 0);
  EXPECT_EQ(program.run({"graph", model, "--svg", svg}).exit_code, 1) << "the file exists";
  const ProcessResult drawn = program.run({"graph", model, "--svg", "-"});
  EXPECT_TRUE(drawn.out.starts_with("<svg")) << drawn.out.substr(0, 80);
  EXPECT_NE(program.run({"graph", model, "--dot", "-"}).out.find("digraph"), std::string::npos);
  EXPECT_NE(program.run({"graph", model, "--toml", "-"}).out.find("[[nodes]]"), std::string::npos);
}

}  // namespace
}  // namespace cyb::test
