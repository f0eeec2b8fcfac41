// Generation at the command line: samplers and their order, several answers, what does not fit,
// guesses, KV types, saved prompts: what each does, and that nothing is ignored in silence.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "e2e/program.hpp"
#include "support/regime.hpp"
#include "support/terminal.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;
using Line = std::vector<std::string>;

class GenerationCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    program = new Program;
    TextCheckpointOptions options;
    options.context_tokens = 256;
    ASSERT_TRUE(write_text_checkpoint(program->file("model"), options));
  }
  static void TearDownTestSuite() { delete program; }

  static ProcessResult run(Line line) {
    line.insert(line.begin(), {"run", program->file("model"), "--raw"});
    return program->run(line);
  }
  static nlohmann::json answer(Line line) {
    line.push_back("--json");
    const ProcessResult result = run(line);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Program::json(result);
  }

  static Program* program;
};
Program* GenerationCommand::program = nullptr;

const std::string kText = "the cat sat on the mat, the cat sat on the";

TEST_F(GenerationCommand, EverySamplerChangesTheAnswerAndIsReproducible) {
  const Line base = {kText, "--max-tokens", "24", "--seed", "5", "--temperature", "1.5"};
  const auto with = [&](Line more) {
    Line line = base;
    line.insert(line.end(), more.begin(), more.end());
    return answer(line)["tokens"];
  };
  const auto plain = with({});
  EXPECT_EQ(with({}), plain);
  const std::vector<Line> all = {
      {"--top-k", "2"},
      {"--top-p", "0.05"},
      {"--min-p", "0.7"},
      {"--typical-p", "0.05"},
      {"--top-n-sigma", "0.3"},
      {"--xtc-probability", "1", "--xtc-threshold", "0.0001"},
      {"--temperature-range", "1.4", "--temperature-exponent", "0.5"},
      {"--mirostat-tau", "1", "--mirostat-eta", "0.2"},
      {"--presence-penalty", "8"},
      {"--frequency-penalty", "8", "--penalty-last-n", "64"},
      {"--repetition-penalty", "3"},
      {"--logit-bias", "70=-inf", "--logit-bias", "71=9"},
  };
  for (const Line& line : all) {
    const auto one = with(line);
    EXPECT_NE(one, plain) << line[0];
    EXPECT_EQ(with(line), one) << line[0];
  }
  EXPECT_EQ(with({"--samplers", "temperature"}), plain);
  EXPECT_NE(with({"--samplers", "top_p,temperature", "--top-p", "0.3"}),
            with({"--samplers", "temperature,top_p", "--top-p", "0.3"}));
}

TEST_F(GenerationCommand, ABiasByTextIsTheBiasOfItsToken) {
  const auto forced = answer({kText, "--max-tokens", "3", "--logit-bias", " the=500"});
  ASSERT_EQ(forced["tokens"].size(), 3u);
  EXPECT_EQ(forced["text"], " the the the");
  const std::string id = std::to_string(forced["tokens"][0].get<int>());
  EXPECT_EQ(answer({kText, "--max-tokens", "3", "--logit-bias", id + "=500"})["text"],
            " the the the");
  const auto refused = run({kText, "--logit-bias", "not one token at all=1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("is not one token"), std::string::npos) << refused.err;
  // A number is an id; in quotes it is a text.
  EXPECT_EQ(answer({kText, "--max-tokens", "2", "--logit-bias", "\"7\"=500"})["text"], "77");
}

TEST_F(GenerationCommand, DryEndsARepetition) {
  const Line base = {kText, "--max-tokens", "40"};
  Line dry = base;
  dry.insert(dry.end(), {"--dry-multiplier", "50", "--dry-base", "2", "--dry-allowed-length", "1",
                         "--dry-last-n", "200", "--dry-breaker", "\n"});
  EXPECT_NE(answer(dry)["tokens"], answer(base)["tokens"]);
}

TEST_F(GenerationCommand, WrongAndUselessOptionsAreSaid) {
  const std::vector<std::pair<Line, std::string>> wrong = {
      {{"--samplers", "temperature,top_q"}, "\"top_q\" is no sampler"},
      {{"--samplers", "top_k,top_k"}, "stands twice"},
      {{"--samplers", "mirostat,top_k"}, "must be the last"},
      {{"--samplers", "top_k,"}, "\"\" is no sampler"},
      {{"--samplers", "temperature", "--top-k", "3"}, "does not list it"},
      {{"--logit-bias", "5"}, "is not ID=V or TEXT=V"},
      {{"--logit-bias", "5=hot"}, "is not ID=V or TEXT=V"},
      {{"--logit-bias", "=1"}, "is not ID=V or TEXT=V"},
      {{"--logit-bias", "99999=1"}, "token id 99999 is not in"},
      {{"--typical-p", "0"}, "is not a number from"},
      {{"--overflow", "fall"}, "is none of error, truncate, shift"},
      {{"--speculate", "lookup:0"}, "is not lookup or lookup:N"},
      {{"--speculate", "magic"}, "is not lookup or lookup:N"},
      {{"--speculate", "lookup", "--draft", "m"}, "both guess"},
      {{"--draft-tokens", "3"}, "needs --draft"},
      {{"--answers", "2", "--draft", "m"}, "one answer at a time"},
      {{"--answers", "0"}, "is not a whole number"},
      {{"--kv", "q5"}, "is none of f32, f16, q8, q4"},
      {{"--profile", "--top-k", "3"},
       "--profile is for a model of tensors, --top-k for one of text"},
      {{"--image-size", "4x4"}, "is for a model of tensors"},
  };
  for (const auto& [options, words] : wrong) {
    Line line = {kText};
    line.insert(line.end(), options.begin(), options.end());
    const ProcessResult result = run(line);
    EXPECT_EQ(result.exit_code, 1) << options[1] << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << options[1] << ": " << result.err;
    EXPECT_EQ(result.out, "");
  }
  const auto noted = [&](Line line) {
    line.insert(line.begin(), {kText, "--max-tokens", "1"});
    return run(line).err;
  };
  EXPECT_NE(noted({"--typical-p", "0.5", "--temperature", "0"}).find("--typical-p has no effect"),
            std::string::npos);
  EXPECT_NE(noted({"--dry-base", "2"}).find("--dry-base has no effect"), std::string::npos);
  EXPECT_NE(noted({"--mirostat-eta", "0.2"}).find("--mirostat-eta has no effect"),
            std::string::npos);
}

// V11 of docs/cases.md at the command line.
TEST_F(GenerationCommand, SeveralAnswersDifferAndTheFirstIsTheSoloOne) {
  const Line base = {kText, "--max-tokens", "20", "--temperature", "1.2", "--seed", "7"};
  Line many = base;
  many.insert(many.end(), {"--answers", "8", "--logprobs", "1"});
  const auto json = answer(many);
  ASSERT_EQ(json["answers"].size(), 8u);
  std::set<std::string> texts;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(json["answers"][i]["index"], i);
    EXPECT_EQ(json["answers"][i]["logprobs"].size(), json["answers"][i]["tokens"].size());
    texts.insert(json["answers"][i]["tokens"].dump());
  }
  EXPECT_EQ(texts.size(), 8u);
  EXPECT_EQ(json["answers"][0]["tokens"], answer(base)["tokens"]);
  const auto again = answer(many);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(again["answers"][i]["tokens"], json["answers"][i]["tokens"]);
  EXPECT_EQ(json["seed"], 7);
  Line text = base;
  text.insert(text.end(), {"--answers", "2"});
  const ProcessResult shown = run(text);
  EXPECT_NE(shown.out.find("[answer 1 of 2]"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("[answer 2 of 2]"), std::string::npos);
}

// V09 of docs/cases.md at the command line.
TEST_F(GenerationCommand, TruncationOnlyWhenAskedAndThenReported) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word ";
  const ProcessResult refused = run({text, "--ctx", "64", "--max-tokens", "8", "--json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(Program::json(refused)["error"]["code"], "ContextOverflow");
  const auto cut = answer({text, "--ctx", "64", "--max-tokens", "8", "--overflow", "truncate"});
  EXPECT_EQ(cut["overflow"]["mode"], "truncate");
  EXPECT_GT(cut["overflow"]["dropped_prompt_tokens"].get<int>(), 100);
  EXPECT_EQ(cut["prompt_tokens"], 56);
  EXPECT_EQ(cut["overflow"]["shifts"], 0);
  const auto shifted = answer({text, "--ctx", "64", "--max-tokens", "150", "--overflow", "shift",
                               "--logit-bias", " the=300"});
  EXPECT_EQ(shifted["tokens"].size(), 150u);
  EXPECT_GT(shifted["overflow"]["shifts"].get<int>(), 1);
  EXPECT_EQ(shifted["finish_reason"], "length");
  const ProcessResult said =
      run({text, "--ctx", "64", "--max-tokens", "8", "--overflow", "truncate"});
  EXPECT_NE(said.err.find("tokens of the prompt were left out"), std::string::npos) << said.err;
  EXPECT_FALSE(answer({kText, "--max-tokens", "2"}).contains("overflow"));
}

TEST_F(GenerationCommand, GuessesChangeNothingAndAreCounted) {
  for (const Line& sampling : std::vector<Line>{{}, {"--temperature", "0.9", "--seed", "4"}}) {
    Line base = {kText, "--max-tokens", "60"};
    base.insert(base.end(), sampling.begin(), sampling.end());
    const auto plain = answer(base);
    EXPECT_FALSE(plain.contains("speculation"));
    Line lookup = base, draft = base;
    lookup.insert(lookup.end(), {"--speculate", "lookup:6"});
    draft.insert(draft.end(), {"--draft", program->file("model"), "--draft-tokens", "3"});
    const auto ahead = answer(lookup), followed = answer(draft);
    EXPECT_EQ(ahead["tokens"], plain["tokens"]);
    EXPECT_EQ(followed["tokens"], plain["tokens"]);
    EXPECT_EQ(ahead["speculation"]["kind"], "lookup");
    EXPECT_EQ(ahead["speculation"]["max_tokens"], 6);
    EXPECT_EQ(followed["speculation"]["kind"], "draft");
    EXPECT_EQ(followed["speculation"]["accepted"], followed["speculation"]["drafted"]);
    EXPECT_EQ(followed["speculation"]["acceptance"], 1.0);
    EXPECT_NE(run(lookup).err.find("guesses were right"), std::string::npos);
  }
}

TEST_F(GenerationCommand, ASavedPromptGoesOnAndIsRefusedWhereItDoesNotFit) {
  const std::string cache = program->file("prompt.cache");
  fs::remove(cache);
  std::string text;
  for (int i = 0; i < 14; ++i) text += "word number " + std::to_string(i) + ", ";
  const Line base = {text, "--max-tokens", "12", "--temperature", "0.8", "--seed", "3"};
  const auto plain = answer(base);
  Line cached = base;
  cached.insert(cached.end(), {"--prompt-cache", cache});
  const auto first = answer(cached);
  ASSERT_TRUE(fs::exists(cache));
  const auto second = answer(cached);
  EXPECT_EQ(first["tokens"], plain["tokens"]);
  EXPECT_EQ(second["tokens"], plain["tokens"]);
  EXPECT_FALSE(first.contains("reused_tokens"));
  EXPECT_GT(second["reused_tokens"].get<int>(), 60);

  // Before the answer, not after it: stdout has one object.
  Line nowhere = base;
  nowhere.insert(nowhere.end(), {"--json", "--prompt-cache", program->file("none") + "/x"});
  const ProcessResult unwritable = run(nowhere);
  EXPECT_EQ(unwritable.exit_code, 4);
  EXPECT_EQ(Program::json(unwritable)["error"]["code"], "Io") << unwritable.out;

  const auto refused = [&](Line more, const std::string& code) {
    Line line = cached;
    line.insert(line.end(), more.begin(), more.end());
    line.push_back("--json");
    const auto before = fs::last_write_time(cache);
    const ProcessResult result = run(line);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(Program::json(result)["error"]["code"], code) << result.out;
    EXPECT_EQ(fs::last_write_time(cache), before);
  };
  refused({"--kv", "q8"}, "K03");
  const std::string other = regime_backend() == "reference" ? "cpu" : "reference";
  refused({"--backend", other}, "K03");
  refused({"--exact"}, "K03");
  fs::resize_file(cache, fs::file_size(cache) - 1);
  refused({}, "K01");
  std::ofstream(cache) << "something else";
  refused({}, "K01");
}

TEST_F(GenerationCommand, KvTypesAnswerToo) {
  for (const char* kv : {"f32", "f16", "q8", "q4"}) {
    for (const char* backend : {"cpu", "reference"}) {
      const auto json = answer({kText, "--max-tokens", "6", "--kv", kv, "--backend", backend});
      EXPECT_EQ(json["tokens"].size(), 6u) << kv << backend;
    }
  }
}

TEST_F(GenerationCommand, AChatIsSavedAndGoesOn) {
  const std::string saved = program->file("kept.chat");
  fs::remove(saved);
  const Line line = {built_program("cyb-llm"), "run", program->file("model"), "--max-tokens", "4"};
  {
    Terminal terminal(line, program->environment());
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("hello there, how are you on this fine day of the year\r");
    ASSERT_TRUE(terminal.wait_for("\n> "));
    terminal.type("/save " + saved + "\r");
    ASSERT_TRUE(terminal.wait_for("2 messages saved")) << terminal.screen();
    terminal.type("/quit\r");
    EXPECT_EQ(terminal.finish(), 0);
  }
  Terminal terminal(line, program->environment());
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("/load " + saved + "\r");
  ASSERT_TRUE(terminal.wait_for("2 messages loaded")) << terminal.screen();
  terminal.type("and you?\r");
  ASSERT_TRUE(terminal.wait_for("\n> "));
  terminal.type("/stats\r");
  ASSERT_TRUE(terminal.wait_for("of them cached")) << terminal.screen();
  EXPECT_EQ(terminal.screen().find(", 0 of them cached"), std::string::npos) << terminal.screen();
  terminal.type("/load " + program->file("none.chat") + "\r");
  ASSERT_TRUE(terminal.wait_for("cannot open")) << terminal.screen();
  terminal.type("/load\r");
  ASSERT_TRUE(terminal.wait_for("needs a file name")) << terminal.screen();
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.finish(), 0);
}

}  // namespace
}  // namespace cyb::test
