// Files around a run of tensors: no result takes the place of what is read or of another result,
// and a source that changed is imported again whatever its times say.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "e2e/npy_file.hpp"
#include "e2e/program.hpp"
#include "import/onnx_support.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

const std::vector<float> kX = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};

TEST(TensorFiles, NoResultTakesThePlaceOfWhatIsRead) {
  const Program program;
  const std::string x = program.file("x.npy"), model = program.file("m.model");
  write_npy(x, "(2, 6)", kX);
  ASSERT_EQ(program.run({"import", golden("onnx/mlp.onnx"), "-o", model}).exit_code, 0);
  const std::string input = "x=" + x, x_bytes = read_all(x), model_bytes = read_all(model);
  const auto refused = [&](std::vector<std::string> line, const std::string& text) {
    const ProcessResult done = program.run(std::move(line));
    EXPECT_EQ(done.exit_code, 1) << done.out << done.err;
    EXPECT_NE(done.err.find(text), std::string::npos) << done.err;
  };
  refused({"run", model, "--input", input, "--trace", x, "--force"}, "is read by this command");
  refused({"run", model, "--input", input, "--trace", model, "--force"}, "is read by this command");
  refused({"graph", model, "--toml", model, "--force"}, "is read by this command");
  refused({"graph", model, "--svg", program.file("./m.model"), "--force"},
          "is read by this command");
  const std::string one = program.file("one");
  refused({"graph", model, "--svg", one, "--dot", one}, "two results would be one file");
  refused({"graph", model, "--svg", "-", "--dot", "-"}, "two results would be one file");
  const std::string out = program.file("out");
  ASSERT_EQ(program.run({"run", model, "--input", input, "--output", out}).exit_code, 0);
  const std::string y = Program::json(program.run({"run", model, "--input", input, "--output", out,
                                                   "--force", "--json"}))["outputs"][0]["file"];
  refused({"run", model, "--input", input, "--output", out, "--trace", y, "--force"},
          "two results would be one file");
  EXPECT_EQ(read_all(x), x_bytes);
  EXPECT_EQ(read_all(model), model_bytes);
}

TEST(TensorFiles, ASourceThatChangedIsImportedAgainWhateverItsTimesSay) {
  const Program program;
  const std::string x = program.file("x.npy"), source = program.file("m.onnx");
  write_npy(x, "(2, 6)", kX);
  const std::string old = read_all(golden("onnx/mlp.onnx"));
  const auto run = [&](const std::string& path) {
    return program.run({"run", path, "--input", "x=" + x}).out;
  };
  const auto stamp = [](const std::string& path) {
    return run_process({"touch", "-d", "1980-01-01", path}).exit_code;
  };
  write_all(source, old);
  ASSERT_EQ(stamp(source), 0);
  const std::string before = run(source);
  ASSERT_NE(before, "");
  // Some byte of the file is one of a weight.
  for (std::size_t at = old.size() / 2; at < old.size(); ++at) {
    std::string changed = old;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    const std::string other = program.file("other.onnx");
    write_all(other, changed);
    const std::string wanted = run(other);
    if (wanted.empty() || wanted == before) continue;
    write_all(source, changed);
    ASSERT_EQ(stamp(source), 0);
    EXPECT_EQ(run(source), wanted);
    return;
  }
  FAIL() << "no byte of the file changes the result";
}

TEST(TensorFiles, BenchOfTensorsTakesNoLengths) {
  const Program program;
  const std::string x = program.file("x.npy");
  write_npy(x, "(2, 6)", kX);
  const ProcessResult done =
      program.run({"bench", golden("onnx/mlp.onnx"), "--input", "x=" + x, "-r", "1", "-p", "5"});
  EXPECT_EQ(done.exit_code, 1) << done.out;
  EXPECT_NE(done.err.find("-p, -n and -b are for language models"), std::string::npos) << done.err;
}

TEST(TensorFiles, ADamagedCopyInTheStoreIsMadeAgain) {
  const Program program;
  const std::string x = program.file("x.npy"), source = program.file("mlp.onnx");
  write_npy(x, "(2, 6)", kX);
  write_all(source, read_all(golden("onnx/mlp.onnx")));
  const std::vector<std::string> line = {"run", source, "--input", "x=" + x, "--verify"};
  const std::string wanted = program.run(line).out;
  ASSERT_NE(wanted, "");
  const std::string copy = Program::json(program.run({"list", "--json"}))["models"][0]["path"];
  const std::string sound = read_all(copy);
  // The first bytes and the size are looked at when the store is asked, the weights by --verify.
  std::string bad = sound;
  bad.back() = static_cast<char>(bad.back() ^ 1);
  fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add);
  write_all(copy, bad);
  const ProcessResult again = program.run(line);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, wanted);
  EXPECT_NE(again.err.find("the store's copy is damaged"), std::string::npos) << again.err;
  EXPECT_EQ(read_all(copy), sound);
  fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add);
  write_all(copy, bad);
  const ProcessResult named = program.run({"run", "mlp", "--input", "x=" + x, "--verify"});
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_NE(named.err.find("import its source again"), std::string::npos) << named.err;
}

TEST(TensorFiles, WhatARunWithoutInputsSays) {
  const Program program;
  const std::string model = program.file("m.model");
  ASSERT_EQ(program.run({"import", golden("onnx/mlp.onnx"), "-o", model}).exit_code, 0);
  const ProcessResult done = program.run({"run", model});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.err.find("it takes: x f32"), std::string::npos) << done.err;
  const ProcessResult twice =
      program.run({"import", golden("onnx/mlp.onnx"), "-o", program.file("n.model"), "--dim", "N=2",
                   "--dim", "N=3"});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_NE(twice.err.find("--dim N=3: N is 2 already"), std::string::npos) << twice.err;
}

TEST(TensorFiles, OutputsAreChosenByName) {
  const Program program;
  const std::string source = program.file("m.onnx"), x = program.file("x.npy");
  write_all(source, onnx_model(Proto()
                                   .message(1, onnx_node("Relu", {"x"}, "a/b"))
                                   .message(1, onnx_node("Neg", {"x"}, "a_b"))
                                   .message(11, onnx_value("x", {2}))
                                   .message(12, onnx_value("a/b", {2}))
                                   .message(12, onnx_value("a_b", {2}))));
  write_npy(x, "(2,)", {1, -2});
  const std::string out = program.file("out");
  std::vector<std::string> line = {"run", source, "--input", "x=" + x};
  EXPECT_EQ(program.run(line).out.find("a/b f32 [2]  min 0 "), 0u) << program.run(line).out;
  line.insert(line.end(), {"--output", out});
  const ProcessResult both = program.run(line);
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_NE(both.err.find("choose one with --select"), std::string::npos) << both.err;
  line.insert(line.end(), {"--select", "a_b", "--json"});
  const auto outputs = Program::json(program.run(line))["outputs"];
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0]["name"], "a_b");
  std::string wanted(sizeof(float) * 2, '\0');
  const float values[] = {-1, 2};
  std::memcpy(wanted.data(), values, sizeof values);
  EXPECT_TRUE(read_all(out + "/a_b.npy").ends_with(wanted));
  line.insert(line.end(), {"--force", "--select", "c"});
  const ProcessResult unknown = program.run(line);
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("outputs are: a/b, a_b"), std::string::npos) << unknown.err;
}

TEST(TensorFiles, AFullDiskLeavesNoOutput) {
  const Program program;
  const std::string source = program.file("m.onnx"), model = program.file("m.model"),
                    small = program.file("small.npy"), large = program.file("large.npy");
  write_all(source, onnx_model(Proto()
                                   .message(1, onnx_node("Relu", {"small"}, "first"))
                                   .message(1, onnx_node("Relu", {"large"}, "second"))
                                   .message(11, onnx_value("small", {2}))
                                   .message(11, onnx_value("large", {4000}))
                                   .message(12, onnx_value("first", {2}))
                                   .message(12, onnx_value("second", {4000}))));
  ASSERT_EQ(program.run({"import", source, "-o", model}).exit_code, 0);
  write_npy(small, "(2,)", {1, 2});
  write_npy(large, "(4000,)", std::vector<float>(4000, 3.0f));
  const std::string out = program.file("out");
  // A size limit on files stands for a full disk: the first output fits, the second does not.
  ProcessOptions options;
  options.environment = program.environment();
  const auto run = [&](const std::string& limit) {
    return run_process({"bash", "-c",
                        limit + " exec \"$0\" run \"$1\" --input small=\"$2\" --input "
                                "large=\"$3\" --output \"$4\"",
                        built_program("cyb-llm"), model, small, large, out},
                       options);
  };
  const ProcessResult full = run("trap '' XFSZ; ulimit -f 8;");
  EXPECT_EQ(full.exit_code, 4) << full.err;
  EXPECT_NE(full.err.find("second.npy"), std::string::npos) << full.err;
  EXPECT_TRUE(!fs::exists(out) || fs::is_empty(out));
  const ProcessResult whole = run("");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_TRUE(fs::exists(out + "/first.npy") && fs::exists(out + "/second.npy"));
}

}  // namespace
}  // namespace cyb::test
