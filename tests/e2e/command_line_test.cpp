// Command lines that are wrong: what they say, that --json says it as one object, that no option is
// ignored in silence. Nothing here needs a model.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

using Line = std::vector<std::string>;

std::string shown(const Line& line) {
  std::string out;
  for (const std::string& word : line) out += word + " ";
  return out;
}

TEST(CommandLine, EveryFailureIsOneJsonObject) {
  const Program program;
  const std::vector<Line> wrong = {
      {"--json"},
      {"frobnicate", "--json"},
      {"run", "--json"},
      {"run", "m", "--frob", "--json"},
      {"run", "m", "--json", "--temperature", "hot"},
      {"run", "m", "p", "extra", "--json"},
      {"run", "m", "--json", "--seed"},
      {"run", "m", "p", "--seed", "1", "--seed", "2", "--json"},
      {"run", "m", "p", "--json=yes"},
      {"--json", "list"},
      {"list", "extra", "--json"},
      {"import", "--json"},
      {"bench", "m", "-p", "0", "-n", "0", "--json"},
  };
  for (const Line& line : wrong) {
    const ProcessResult result = program.run(line);
    EXPECT_EQ(result.exit_code, 1) << shown(line) << result.err;
    EXPECT_TRUE(result.err.starts_with("error: ")) << shown(line) << result.err;
    if (line.back() == "--json=yes") continue;  // is no --json
    const auto json = Program::json(result);
    ASSERT_TRUE(json.is_object()) << shown(line) << result.out;
    EXPECT_EQ(json["error"]["code"], "Usage") << shown(line);
    EXPECT_EQ(json["error"]["kind"], "InvalidInput") << shown(line);
    EXPECT_EQ(result.err.find(json["error"]["message"].get<std::string>()), 7u) << result.err;
  }
  // After "--" it is a text.
  EXPECT_EQ(program.run({"run", "m", "--frob", "--", "--json"}).out, "");
}

TEST(CommandLine, SaysWhatWasWrongAndWhatToDo) {
  const Program program;
  struct Case {
    Line line;
    std::string error, hint;
  };
  const std::vector<Case> cases = {
      {{}, "a command is missing, as in: cyb-llm run MODEL \"What is gravity?\"", "cyb-llm --help"},
      {{"rum", "m"}, "unknown command \"rum\"; did you mean run?", "cyb-llm --help"},
      {{"help"}, "unknown command \"help\"; did you mean --help?", "cyb-llm --help"},
      {{"--quite", "list"},
       "unknown option \"--quite\" of list; did you mean --quiet?",
       "cyb-llm list --help"},
      {{"run"},
       "MODEL is missing: A .model, a GGUF or ONNX file or a Hugging Face folder, or a name or id "
       "in the "
       "store",
       "cyb-llm run --help"},
      {{"run", "m", "--temprature", "1"},
       "unknown option \"--temprature\" of run; did you mean --temperature?",
       "cyb-llm run --help"},
      {{"run", "m", "-x"},
       "unknown option \"-x\" of run (a text that begins with - goes after --)",
       "cyb-llm run --help"},
      {{"run", "m", "two", "words"},
       "unexpected argument \"words\": run takes MODEL and PROMPT; quote a text that has spaces",
       "cyb-llm run --help"},
      {{"list", "x"}, "unexpected argument \"x\": list takes none", "cyb-llm list --help"},
      {{"--temperature", "1", "run", "m"},
       "--temperature stands before the command; it goes after it: cyb-llm run --temperature",
       "cyb-llm run --help"},
      {{"run", "m", "--seed"}, "--seed needs a value: --seed S", "cyb-llm run --help"},
      {{"run", "m", "--seed", "1", "--seed", "2"},
       "--seed is given more than once",
       "cyb-llm run --help"},
      {{"run", "m", "--exact=no"}, "--exact takes no value", "cyb-llm run --help"},
      {{"run", "m", "--seed", "x"},
       "--seed: \"x\" is not a whole number from 0 to 18446744073709551615",
       "cyb-llm run --help"},
      {{"run", ""}, "MODEL: the empty text is no value", "cyb-llm run --help"},
  };
  for (const Case& c : cases) {
    const ProcessResult result = program.run(c.line);
    EXPECT_EQ(result.exit_code, 1) << shown(c.line);
    EXPECT_EQ(result.err, "error: " + c.error + "\nSee: " + c.hint + "\n") << shown(c.line);
    EXPECT_EQ(result.out, "") << shown(c.line);
  }
  const std::string unknown = program.run({"frobnicate"}).err;
  EXPECT_NE(unknown.find("the commands are run, replay, serve, import, pull, quantize"),
            std::string::npos)
      << unknown;
  std::ofstream(program.file("x.gguf")) << "GGUF";
  const std::string file = program.run({program.file("x.gguf")}).err;
  EXPECT_NE(file.find("as in: cyb-llm run " + program.file("x.gguf")), std::string::npos) << file;
}

TEST(CommandLine, HelpWinsOverMistakes) {
  const Program program;
  const ProcessResult help = program.run({"run", "--temperature", "hot", "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_NE(help.out.find("--temperature"), std::string::npos);
  EXPECT_NE(program.run({"--help"}).out.find("What is gravity?"), std::string::npos);
  const ProcessResult plan = program.run({"plan", "--batch", "none", "--help"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  for (const char* text : {"--batch", "--ctx", "--kv", "--dim", "cyb-llm plan MODEL",
                           "Exit code 0: it fits in the memory that can be used now; 4"}) {
    EXPECT_NE(plan.out.find(text), std::string::npos) << text << "\n" << plan.out;
  }
}

TEST(CommandLine, OptionsThatGoNotTogetherAreRefused) {
  const Program program;
  const std::vector<std::pair<Line, std::string>> cases = {
      {{"run", "m", "p", "--raw", "--chat", "plain"}, "--raw is plain completion"},
      {{"run", "m", "p", "--chat", "custom"}, "\"custom\" is none of chatml, llama3, gemma, plain"},
      {{"run", "m", "p", "--chat", ""}, "--chat: the empty text is no value"},
      {{"run", "m", "p", "--logprobs", "3"}, "--logprobs is shown in the JSON only"},
      {{"run", "m", "p", "--stop", ""}, "--stop: the empty text is no value"},
      {{"run", "m", "p", "--stop="}, "--stop: the empty text is no value"},
      {{"run", "m", "p", "--stop", "a\xFF"}, "--stop is not UTF-8: byte 0xFF at offset 1"},
      {{"run", "m", "p", "--system", "\xC3"}, "--system is not UTF-8: byte 0xC3 at offset 0"},
      {{"run", "m", "ab\x80"}, "the prompt is not UTF-8: byte 0x80 at offset 2"},
      {{"run", "m", "p", "--prompt-file", "f"}, "the prompt is given twice"},
      {{"run", "m", ""}, "the prompt is empty"},
      {{"run", "m", " \n"}, "the prompt is empty"},
      {{"run", "m"}, "the prompt is empty"},  // standard input ends at once
      {{"tokenize", "m", "x", "--decode", "1"}, "--decode takes ids, no text"},
      {{"tokenize", "m", "--decode", "1", "--no-bos"}, "--no-bos has no effect"},
      {{"tokenize", "m", "--decode", "1", "--parse-special"}, "--parse-special has no effect"},
      {{"tokenize", "m", "\xFF"}, "the text is not UTF-8"},
      {{"logits", "m", "-o", "x.npy"}, "--tokens is missing: --tokens 1,2,3"},
      {{"logits", "m", "--tokens", "1"}, "-o is missing"},
      {{"logits", "m", "--tokens", "1,,2", "-o", "x.npy"}, "element 2 of the token ids is empty"},
      {{"logits", "m", "--tokens", "1", "-o", "-"}, "standard output is not supported"},
      {{"perplexity", "m"}, "the text is empty: give it with --file FILE or through a pipe"},
      {{"import", "m", "--force"}, "--force has no effect without -o FILE"},
      {{"import", "m", "--name", ""}, "--name: the empty text is no value"},
      {{"import", "m", "--name", "a b"}, "--name: \"a b\" is not 1 to 128 of A-Z a-z 0-9 . _ -"},
      {{"bench", "m", "-p", "0", "-n", "0"}, "-p 0 -n 0 leaves nothing to measure"},
      {{"bench", "m", "-p", "0,8"}, "-p: 0 (none) stands alone"},
      {{"bench", "m", "-t", "1", "--threads", "2"}, "-t and --threads both say"},
      {{"bench", "m", "-p", "1,,2"}, "\"1,,2\": element 2 is empty"},
      {{"bench", "m", "-n", "1,"}, "\"1,\": element 2 is empty"},
      {{"bench", "m", "-t", ",1"}, "\",1\": element 1 is empty"},
      {{"bench", "m", "-b", ""}, "element 1 is empty"},
  };
  for (const auto& [line, text] : cases) {
    const ProcessResult result = program.run(line);
    EXPECT_EQ(result.exit_code, 1) << shown(line) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << shown(line) << result.err;
    EXPECT_EQ(result.out, "") << shown(line);
  }
}

TEST(Environment, BadValuesNameTheVariable) {
  const Program program;
  std::ofstream(program.file("file")) << "x";
  struct Case {
    std::string variable, value, text;
    int exit_code;
  };
  const std::vector<Case> cases = {
      {"CYB_DATA", program.file("file"), "cannot use as a folder: Not a directory", 4},
      {"CYB_DATA", program.file("file") + "/below", "cannot use as a folder: Not a directory", 4},
      {"CYB_CACHE", program.file("file"), "cannot use as a folder: Not a directory", 4},
      {"CYB_THREADS", "abc", "\"abc\" is not a whole number from 1 to 1024", 1},
      {"CYB_THREADS", "0", "\"0\" is not a whole number from 1 to 1024", 1},
      {"CYB_PATH", "fast", "unknown path \"fast\"; choose one of auto, curated, graph, nox", 3},
      {"CYB_BACKEND", "tpu", "unknown backend \"tpu\"; choose one of auto, ", 3},
      {"CYB_ISA", "mmx", "unknown instruction set \"mmx\"; choose one of scalar, ", 1},
  };
  for (const Case& c : cases) {
    ProcessOptions options;
    for (const std::string& entry : program.environment()) options.environment.push_back(entry);
    options.environment.push_back(c.variable + "=" + c.value);
    const ProcessResult result = run_process({built_program("cyb-llm"), "list", "--json"}, options);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.variable << result.err;
    EXPECT_TRUE(result.err.starts_with("error: " + c.variable + ": ")) << result.err;
    EXPECT_NE(result.err.find(c.text), std::string::npos) << result.err;
    EXPECT_TRUE(Program::json(result)["error"].is_object()) << result.out;
  }
}

TEST(OutputFiles, AreNotOverwrittenUnasked) {
  const Program program;
  const std::string path = program.file("m.model");
  const Line line = {"import", golden("gguf/llama.gguf"), "-o", path};
  ASSERT_EQ(program.run(line).exit_code, 0);
  const auto before = fs::last_write_time(path);
  const ProcessResult refused = program.run(line);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("exists: --force overwrites it"), std::string::npos) << refused.err;
  EXPECT_EQ(fs::last_write_time(path), before);
  Line forced = line;
  forced.emplace_back("--force");
  EXPECT_EQ(program.run(forced).exit_code, 0);
  const std::string npy = program.file("l.npy");
  std::ofstream(npy) << "precious";
  const ProcessResult logits = program.run({"logits", path, "--tokens", "1,2", "-o", npy});
  EXPECT_EQ(logits.exit_code, 1);
  EXPECT_EQ(fs::file_size(npy), 8u);
  EXPECT_EQ(program.run({"logits", path, "--tokens", "1,2", "-o", npy, "--force"}).exit_code, 0);
  EXPECT_GT(fs::file_size(npy), 8u);
}

TEST(Store, NameThatMovesIsNoted) {
  const Program program;
  const Line line = {"import", golden("gguf/llama.gguf"), "--name", "same"};
  EXPECT_EQ(program.run(line).err.find("the name"), std::string::npos);
  EXPECT_EQ(program.run(line).err.find("the name"), std::string::npos) << "the same bytes";
  ASSERT_TRUE(write_text_checkpoint(program.file("talker")));
  const ProcessResult moved = program.run({"import", program.file("talker"), "--name", "same"});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_NE(moved.err.find("the name \"same\" meant another model, which keeps its id blake3:"),
            std::string::npos)
      << moved.err;
}

TEST(Streams, HelpThatCannotBeWrittenIsAnError) {
  for (const char* what : {"--help", "--version", "run --help"}) {
    const ProcessResult result =
        run_process({"sh", "-c", std::string("exec \"$0\" ") + what + " > /dev/full",
                     built_program("cyb-llm")});
    EXPECT_EQ(result.exit_code, 4) << what;
    EXPECT_EQ(result.err, "error: standard output: cannot write: No space left on device\n");
  }
}

TEST(Streams, ClosedOnesAreNotReusedForFiles) {
  const Program program;
  const std::string path = program.file("m.model");
  // What would go to the closed streams must not land in the file that is written.
  const std::string command = "exec \"$0\" import \"$1\" -o \"$2\" <&- >&- 2>&-";
  const ProcessResult closed =
      run_process({"sh", "-c", command, built_program("cyb-llm"), golden("gguf/llama.gguf"), path});
  EXPECT_EQ(closed.exit_code, 4) << "the report could not be written";
  const std::string other = program.file("n.model");
  ASSERT_EQ(program.run({"import", golden("gguf/llama.gguf"), "-o", other}).exit_code, 0);
  EXPECT_EQ(run_process({"cmp", path, other}).exit_code, 0);
}

TEST(Streams, TerminationEndsTheWaitForInput) {
  const Program program;
  ASSERT_EQ(
      program.run({"import", golden("gguf/llama.gguf"), "-o", program.file("m.model")}).exit_code,
      0);
  for (const char* command : {"perplexity", "run", "tokenize"}) {
    // The pipe stays open: only the signal can end the wait.
    const ProcessResult result = run_process(
        {"bash", "-c",
         "\"$0\" \"$1\" \"$2\" --json < <(exec sleep 20 2>/dev/null) & " + terminate_when_ready(1),
         built_program("cyb-llm"), command, program.file("m.model")});
    EXPECT_EQ(result.exit_code, 5) << command << result.err;
    EXPECT_EQ(result.err, std::string("error: ") + command + " was cancelled\n");
    EXPECT_EQ(Program::json(result)["error"]["code"], "Cancelled") << result.out;
  }
}

}  // namespace
}  // namespace cyb::test
