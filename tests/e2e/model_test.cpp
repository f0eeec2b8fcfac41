// Commands on small GGUF files: import, store, tokenize, logits, perplexity, info, verify, answers
// as JSON.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "e2e/program.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

std::size_t count_files(const std::string& folder) {
  std::size_t n = 0;
  std::error_code code;
  for (fs::recursive_directory_iterator at(folder, code), end; !code && at != end;
       at.increment(code)) {
    n += at->is_regular_file() ? 1u : 0u;
  }
  return n;
}

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

TEST(Store, ImportListInfoVerify) {
  const Program program;
  const ProcessResult imported =
      program.run({"import", golden("gguf/llama.gguf"), "--name", "tiny", "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const auto report = Program::json(imported);
  ASSERT_TRUE(report.is_object()) << imported.out;
  const std::string path = report["path"];
  EXPECT_TRUE(fs::exists(path));
  const auto models = Program::json(program.run({"list", "--json"}))["models"];
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0]["name"], "tiny");
  EXPECT_EQ(models[0]["path"], path);
  const std::string id = models[0]["model_id"];
  for (const std::string& what : {std::string("tiny"), id, id.substr(0, 15), path}) {
    const ProcessResult info = program.run({"info", what, "--json"});
    ASSERT_EQ(info.exit_code, 0) << what << info.err;
    EXPECT_EQ(Program::json(info)["model_id"], id) << what;
  }
  const ProcessResult verified = program.run({"verify", "tiny", "--json"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_EQ(Program::json(verified)["model_id"], id);
  EXPECT_NE(program.run({"info", "tiny"}).out.find("context"), std::string::npos);
}

TEST(Store, QuietImportPrintsThePathAlone) {
  const Program program;
  const std::string path = program.file("m.model");
  const ProcessResult result = program.run({"import", golden("gguf/llama.gguf"), "-o", path, "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, path + "\n");
}

TEST(Store, AModelOfOnesOwnIsCheckedAndTaken) {
  const Program program;
  const std::string path = program.file("m.model");
  ASSERT_EQ(program.run({"import", golden("gguf/llama.gguf"), "-o", path}).exit_code, 0);
  const ProcessResult taken = program.run({"import", path, "--name", "own", "--json"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const auto answer = Program::json(taken);
  EXPECT_EQ(answer["name"], "own");
  EXPECT_EQ(read_all(answer["path"]), read_all(path));
  EXPECT_EQ(Program::json(program.run({"info", "own", "--json"}))["model_id"], answer["model_id"]);
  EXPECT_EQ(program.run({"verify", "own"}).exit_code, 0);
  EXPECT_EQ(program.run({"import", path, "-o", program.file("n.model")}).exit_code, 1);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('\x01');
  }
  EXPECT_EQ(program.run({"import", path, "--name", "damaged"}).exit_code, 2);
  EXPECT_EQ(Program::json(program.run({"list", "--json"}))["models"].size(), 1u);
}

TEST(Store, SourceIsImportedOnce) {
  const Program program;
  const std::string source = program.file("model.gguf");
  fs::copy_file(golden("gguf/llama.gguf"), source);
  const ProcessResult first = program.run({"info", source});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("into the store (once)"), std::string::npos);
  EXPECT_EQ(program.run({"info", source}).err, "");
  fs::last_write_time(source, fs::last_write_time(source) + std::chrono::hours(1));
  EXPECT_EQ(program.run({"info", source}).err, "") << "a touched file has the same bytes";
  const std::string copy = program.file("copy.gguf");
  fs::copy_file(source, copy);
  EXPECT_EQ(program.run({"info", copy}).err, "") << "a copy has the same bytes";
  EXPECT_EQ(Program::json(program.run({"list", "--json"}))["models"].size(), 1u);
}

TEST(Store, DamagedModelIsFoundByVerify) {
  const Program program;
  const std::string path = program.file("m.model");
  ASSERT_EQ(program.run({"import", golden("gguf/llama.gguf"), "-o", path}).exit_code, 0);
  EXPECT_EQ(Program::json(program.run({"list", "--json"}))["models"].size(), 0u)
      << "-o does not touch the store";
  const auto size = fs::file_size(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size - 5));
    file.put('\x01');
  }
  const ProcessResult verified = program.run({"verify", path, "--json"});
  EXPECT_EQ(verified.exit_code, 2) << verified.out;
  const std::string code = Program::json(verified)["error"]["code"];
  EXPECT_TRUE(code == "F40" || code == "F41") << code;
  fs::resize_file(path, size - 1);
  const ProcessResult truncated = program.run({"info", path, "--json"});
  EXPECT_EQ(truncated.exit_code, 2);
  EXPECT_EQ(Program::json(truncated)["error"]["code"], "F11");
}

TEST(Import, BadFilesAreRefusedAndLeaveNothing) {
  const Program program;
  std::ifstream table(golden("bad/EXPECT.json"));
  const auto expect = nlohmann::json::parse(table);
  std::size_t n_refused = 0, n_taken = 0;
  for (const auto& [path, row] : expect.items()) {
    if (!path.starts_with("gguf/")) continue;
    SCOPED_TRACE(path);
    const ProcessResult result = program.run({"import", golden("bad/" + path), "--json"});
    const auto json = Program::json(result);
    if (!row.contains("code")) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      ++n_taken;
      continue;
    }
    ++n_refused;
    EXPECT_EQ(result.exit_code, row["exit"].get<int>()) << result.err;
    ASSERT_TRUE(json.contains("error")) << result.out;
    EXPECT_EQ(json["error"]["code"], row["code"]);
    EXPECT_TRUE(
        json["error"]["message"].get<std::string>().starts_with(row["message"].get<std::string>()))
        << result.out;
    EXPECT_TRUE(result.err.starts_with("error: " + golden("bad/" + path) + ": ")) << result.err;
  }
  EXPECT_GT(n_refused, 100u);
  EXPECT_EQ(Program::json(program.run({"list", "--json"}))["models"].size(), n_taken);
  EXPECT_EQ(count_files(program.file("data/models/staging")), 0u);
  const ProcessResult missing =
      program.run({"import", golden("gguf"), "-o", program.file("x.model")});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_FALSE(fs::exists(program.file("x.model")));
}

TEST(Import, FullDiskLeavesNothing) {
  const Program program;
  // A size limit on files stands for a full disk.
  const ProcessResult result =
      run_process({"bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" import \"$1\" -o \"$2\"",
                   built_program("cyb-llm"), golden("gguf/llama.gguf"), program.file("out.model")});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("cannot write: File too large"), std::string::npos) << result.err;
  EXPECT_EQ(count_files(program.file("")), 0u);
}

class WithModel : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_text_checkpoint(model)); }
  Program program;
  std::string model = program.file("talker");
};

TEST_F(WithModel, TokenizeAndBack) {
  const ProcessResult result = program.run({"tokenize", model, "the cat", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = Program::json(result);
  ASSERT_EQ(json["ids"].size(), json["pieces"].size());
  ASSERT_GE(json["ids"].size(), 1u);
  std::string ids;
  for (const auto& id : json["ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  const ProcessResult text = program.run({"tokenize", model, "the cat"});
  EXPECT_TRUE(text.out.starts_with(ids + "\n")) << text.out;
  ProcessOptions piped;
  piped.input = "the cat";
  EXPECT_EQ(program.run({"tokenize", model}, piped).out, text.out);
  EXPECT_EQ(program.run({"tokenize", model, "--file", "-"}, piped).out, text.out);
  const ProcessResult back = program.run({"tokenize", model, "--decode", ids, "--json"});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_NE(Program::json(back)["text"].get<std::string>().find("the cat"), std::string::npos);
  EXPECT_EQ(program.run({"tokenize", model, "--decode", "99999999"}).exit_code, 1);
}

TEST_F(WithModel, LogitsAreWrittenAsNpy) {
  const std::string path = program.file("l.npy");
  const ProcessResult result =
      program.run({"logits", model, "--tokens", "1,2,3,4", "-o", path, "--exact", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto shape = Program::json(result)["shape"];
  const std::string bytes = read_all(path);
  ASSERT_TRUE(bytes.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
  EXPECT_NE(bytes.find("'descr': '<f4', 'fortran_order': False, 'shape': (4, "), std::string::npos);
  const std::size_t header =
      10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ(header % 64, 0u);
  EXPECT_EQ(bytes.size(), header + 4 * 4 * shape[1].get<std::size_t>());
  const std::string graph = program.file("g.npy");
  ASSERT_EQ(
      program
          .run({"logits", model, "--tokens", "1,2,3,4", "-o", graph, "--exact", "--path", "graph"})
          .exit_code,
      0);
  ASSERT_EQ(read_all(graph).size(), bytes.size());
  const ProcessResult bad =
      program.run({"logits", model, "--tokens", "1,99999999", "-o", program.file("bad.npy")});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.err.find("token id 99999999 is not in 0..1199"), std::string::npos) << bad.err;
  EXPECT_FALSE(fs::exists(program.file("bad.npy")));
}

// Nothing fused: the reference keeps its bits, cpu its tolerance.
TEST_F(WithModel, LogitsAreTheSameWithNothingFused) {
  for (const std::string backend : {"reference", "cpu"}) {
    std::vector<std::string> line = {"logits",  model,       "--tokens", "1,2,3,4",
                                     "--exact", "--backend", backend,    "-o"};
    const std::string whole = program.file("whole_" + backend),
                      plain = program.file("plain_" + backend);
    line.push_back(whole);
    ASSERT_EQ(program.run(line).exit_code, 0);
    line.back() = plain;
    line.emplace_back("--no-fuse");
    const ProcessResult done = program.run(line);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const std::string a = read_all(whole), b = read_all(plain);
    ASSERT_GT(a.size(), 4 * sizeof(float) * 1000);
    ASSERT_EQ(a.size(), b.size());
    EXPECT_TRUE(backend != "reference" || a == b);
    const std::size_t header = a.size() - a.size() / sizeof(float) / 1200 * 1200 * sizeof(float);
    for (std::size_t at = header; at < a.size(); at += sizeof(float)) {
      float x = 0, y = 0;
      std::memcpy(&x, a.data() + at, sizeof x);
      std::memcpy(&y, b.data() + at, sizeof y);
      ASSERT_NEAR(x, y, 1e-4F) << backend;
    }
  }
}

TEST_F(WithModel, AnswerAsJson) {
  const std::vector<std::string> line = {
      "run",    model, "--raw",      "once upon", "--max-tokens", "12", "--temperature", "0.8",
      "--seed", "7",   "--logprobs", "3",         "--json"};
  const ProcessResult first = program.run(line);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto json = Program::json(first);
  ASSERT_TRUE(json.is_object()) << first.out;
  for (const char* key : {"text", "tokens", "prompt_tokens", "finish_reason", "logprobs", "path",
                          "backend", "model_id", "seed", "timings"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key : {"load_ms", "prefill_ms", "prefill_tps", "decode_tps", "peak_bytes"}) {
    EXPECT_TRUE(json["timings"].contains(key)) << key;
  }
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["tokens"].size(), json["logprobs"].size());
  EXPECT_EQ(json["logprobs"][0]["top"].size(), 3u);
  EXPECT_EQ(json["logprobs"][0]["top"][0].size(), 2u);
  const auto second = Program::json(program.run(line));
  EXPECT_EQ(second["tokens"], json["tokens"]) << "same seed, same answer";
  EXPECT_EQ(second["logprobs"], json["logprobs"]);
  std::vector<std::string> one_thread = line;
  one_thread.insert(one_thread.end(), {"--threads", "1"});
  EXPECT_EQ(Program::json(program.run(one_thread))["logprobs"], json["logprobs"])
      << "any number of threads";
}

TEST_F(WithModel, WithoutSeedAnswersDiffer) {
  const std::vector<std::string> line = {"run", model,           "--raw", "a",     "--max-tokens",
                                         "24",  "--temperature", "2",     "--json"};
  const auto a = Program::json(program.run(line)), b = Program::json(program.run(line));
  ASSERT_TRUE(a.contains("tokens") && b.contains("tokens")) << a.dump() << b.dump();
  EXPECT_NE(a["seed"], b["seed"]);
  EXPECT_NE(a["tokens"], b["tokens"]);
}

TEST_F(WithModel, DispatchErrors) {
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> line = {"run", model, "--raw", "x", "--max-tokens", "1", "--json"};
    line.insert(line.end(), more.begin(), more.end());
    return program.run(line);
  };
  const ProcessResult path = run({"--path", "fast"});
  EXPECT_EQ(path.exit_code, 3);
  EXPECT_EQ(Program::json(path)["error"]["code"], "D7");
  EXPECT_NE(path.err.find("unknown path \"fast\"; choose one of auto, curated, graph, nox"),
            std::string::npos)
      << path.err;
  const ProcessResult backend = run({"--backend", "tpu"});
  EXPECT_EQ(backend.exit_code, 3);
  EXPECT_EQ(Program::json(backend)["error"]["code"], "D7");
  const ProcessResult nox = run({"--path", "nox"});
  EXPECT_EQ(nox.exit_code, 3);
  EXPECT_EQ(Program::json(nox)["error"]["code"], "D4");
}

TEST_F(WithModel, ContextOverflowIsAnErrorBeforeAnything) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "word ";
  const ProcessResult result = program.run({"run", model, "--raw", text, "--json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(Program::json(result)["error"]["code"], "ContextOverflow");
}

TEST_F(WithModel, ChatTemplateAndPresets) {
  const auto prompt_tokens = [&](std::vector<std::string> line) {
    line.insert(line.begin(), {"run", model});
    line.insert(line.end(), {"--max-tokens", "1", "--json"});
    const ProcessResult result = program.run(line);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Program::json(result).value("prompt_tokens", 0);
  };
  const int own = prompt_tokens({"hello"});
  EXPECT_GT(own, prompt_tokens({"--raw", "hello"}));
  EXPECT_EQ(own, prompt_tokens({"--chat", "chatml", "hello"})) << "the same template, by its name";
  EXPECT_GT(prompt_tokens({"--system", "be brief", "hello"}), own);
  EXPECT_GT(prompt_tokens({"<|im_end|>"}), prompt_tokens({"--raw", "<|im_end|>"}) + 5)
      << "control tokens in a message are text";
  EXPECT_EQ(program.run({"run", model, "--chat", "nobody", "hello"}).exit_code, 1);
}

TEST_F(WithModel, WithoutATemplateChatIsRefused) {
  const std::string plain = program.file("plain");
  ASSERT_TRUE(write_text_checkpoint(plain, {.chat_template = false}));
  const ProcessResult chat = program.run({"run", plain, "hello", "--json"});
  EXPECT_EQ(chat.exit_code, 2);
  EXPECT_NE(chat.err.find("no_chat_template"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("--raw"), std::string::npos) << "says what to do: " << chat.err;
  EXPECT_EQ(program.run({"run", plain, "--raw", "hello", "--max-tokens", "2"}).exit_code, 0);
}

TEST_F(WithModel, FullContextEndsAnAnswer) {
  // Near uniform over 1200 tokens: this seed meets no stop before the context is full, the same on
  // every machine.
  const ProcessResult result = program.run({"run", model, "--raw", "hello", "--temperature", "5",
                                            "--seed", "3", "--backend", "reference", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = Program::json(result);
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_GE(json["prompt_tokens"].get<int>() + static_cast<int>(json["tokens"].size()), 128);
  EXPECT_NE(result.err.find("context of 128 tokens is full"), std::string::npos) << result.err;
}

TEST_F(WithModel, InterruptedImportLeavesNothing) {
  // Stopped while it runs or finished before: either way no half-made file is left.
  for (const char* delay : {"0.001", "0.01", "0.03"}) {
    const ProcessResult result =
        run_process({"timeout", "-s", "INT", delay, built_program("cyb-llm"), "import", model, "-o",
                     program.file("half.model"), "--force"});
    EXPECT_TRUE(result.exit_code == 124 || result.exit_code == 0 || result.exit_code == 5)
        << result.exit_code;
    std::size_t leftovers = 0;
    for (const auto& entry : fs::directory_iterator(program.file(""))) {
      leftovers += entry.path().filename().string().ends_with(".tmp") ? 1u : 0u;
    }
    EXPECT_EQ(leftovers, 0u);
  }
}

TEST_F(WithModel, Perplexity) {
  std::ofstream(program.file("t.txt")) << "the cat sat on the mat and the dog ran to the house";
  const ProcessResult result =
      program.run({"perplexity", model, "--file", program.file("t.txt"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = Program::json(result);
  EXPECT_GT(json["perplexity"].get<double>(), 1.0);
  EXPECT_GE(json["tokens"].get<int>(), 2);
}

TEST_F(WithModel, Bench) {
  const ProcessResult result = program.run(
      {"bench", model, "-p", "8", "-n", "4", "-t", "1,2", "-b", "1,2", "-r", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = Program::json(result)["rows"];
  ASSERT_EQ(rows.size(), 8u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["seconds"].size(), 2u);
    EXPECT_GT(row["tps_median"].get<double>(), 0.0);
  }
}

}  // namespace
}  // namespace cyb::test
