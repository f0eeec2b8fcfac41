// Answers under a schema, a grammar or a pattern at the command line: what comes out is valid, and
// mistakes are said with their place.
#include <gtest/gtest.h>

#include <fstream>

#include "e2e/program.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

using Line = std::vector<std::string>;

class GrammarCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    program = new Program;
    ASSERT_TRUE(write_text_checkpoint(program->file("model"), {.context_tokens = 256}));
  }
  static void TearDownTestSuite() { delete program; }

  static ProcessResult run(Line line) {
    line.insert(line.begin(), {"run", program->file("model"), "--raw", "the cat sat"});
    return program->run(line);
  }
  static std::string file(const std::string& name, const std::string& text) {
    std::ofstream(program->file(name)) << text;
    return program->file(name);
  }

  static Program* program;
};
Program* GrammarCommand::program = nullptr;

const char* const kSchema =
    R"({"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}, "n": {"type": "integer",
    "minimum": 0, "maximum": 99}}, "required": ["kind", "n"], "additionalProperties": false})";

TEST_F(GrammarCommand, TheAnswerIsWhatItMustBe) {
  const std::string schema = file("pet.json", kSchema);
  const std::string gbnf = file("pet.gbnf", "root ::= (\"cat \" | \"dog \"){2} [0-9]\n");
  const std::string lark = file("pet.lark", "start: (\"cat\" | \"dog\") INT\n%import common.INT\n");
  for (const char* temperature : {"0", "1.5"}) {
    const auto answer = [&](Line line) {
      line.insert(line.end(),
                  {"--temperature", temperature, "--seed", "3", "--json", "--max-tokens", "200"});
      const ProcessResult result = run(line);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return Program::json(result);
    };
    for (const std::string& given : {schema, std::string(kSchema)}) {
      const auto got = answer({"--json-schema", given});
      ASSERT_EQ(got["finish_reason"], "stop");
      const auto pet = nlohmann::json::parse(got["text"].get<std::string>());
      EXPECT_TRUE(pet["kind"] == "cat" || pet["kind"] == "dog") << pet;
      EXPECT_LE(pet["n"].get<int>(), 99);
    }
    const std::string words = answer({"--grammar", gbnf})["text"];
    EXPECT_EQ(words.size(), 9u) << words;
    EXPECT_TRUE(words.starts_with("cat ") || words.starts_with("dog ")) << words;
    const std::string date = answer({"--regex", "20[0-9]{2}-(0[1-9]|1[0-2])"})["text"];
    EXPECT_EQ(date.size(), 7u) << date;
    const std::string pet = answer({"--lark", lark})["text"];
    EXPECT_TRUE(pet.starts_with("cat") || pet.starts_with("dog")) << pet;
    const auto several = answer({"--json-schema", schema, "--answers", "3"});
    ASSERT_EQ(several["answers"].size(), 3u);
    for (const auto& one : several["answers"])
      EXPECT_TRUE(nlohmann::json::accept(one["text"].get<std::string>())) << one;
    EXPECT_EQ(answer({"--json-schema", schema, "--speculate", "lookup"})["text"],
              answer({"--json-schema", schema})["text"]);
  }
}

TEST_F(GrammarCommand, MistakesAreSaidWithTheirPlace) {
  const std::string gbnf = file("bad.gbnf", "root ::= a\n\nb ::= \"x\n");
  const std::string lark = file("bad.lark", "start.2: \"a\"\n");
  const std::vector<std::pair<Line, std::string>> wrong = {
      {{"--json-schema", R"({"type": "object", "properties": {"a": {"not": {}}}})"},
       "--json-schema: grammar: #/properties/a/not: not is not supported"},
      {{"--json-schema", "{\"type\": }"}, "line 1, column 10: this is not JSON"},
      {{"--json-schema", program->file("none.json")}, "none.json"},
      {{"--grammar", gbnf}, "bad.gbnf: grammar: line 3, column 7: the literal has no end"},
      {{"--lark", lark}, "line 1, column 6: priorities are not supported"},
      {{"--regex", "(a)\\1"}, "--regex: grammar: line 1, column 4: backreferences"},
      {{"--regex", "a", "--grammar", gbnf}, "give one"},
      {{"--regex", "a", "--stop", "b"}, "--stop would cut it"},
  };
  for (const auto& [options, words] : wrong) {
    const ProcessResult result = run(options);
    EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 4) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << words << ": " << result.err;
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace cyb::test
