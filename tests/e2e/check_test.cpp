// check: what passes, and for each row a damaged model, source or golden that makes that row fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "e2e/program.hpp"
#include "support/models.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Rows by verdict.
std::vector<std::string> rows(const Json& report, const std::string& verdict) {
  std::vector<std::string> out;
  for (const Json& row : report.at("checks")) {
    if (row.at("verdict") == verdict) out.push_back(row.at("name"));
  }
  return out;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

struct Checked {
  Program program;
  std::string source = program.file("source"), other = program.file("other"),
              model = program.file("m.model");

  Checked() {
    EXPECT_TRUE(write_text_checkpoint(source));
    write(source + "/generation_config.json", R"({"eos_token_id": [2]})");
    fs::copy(source, other);
  }
  void import_source() const {
    const ProcessResult result = program.run({"import", source, "-o", model});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  ProcessResult check(const std::string& what, const std::string& against = "") const {
    std::vector<std::string> arguments = {"check", what, "--json", "--threads", "1"};
    if (!against.empty()) arguments.insert(arguments.end(), {"--against", against});
    return program.run(arguments);
  }
};

using Names = std::vector<std::string>;

TEST(Check, AModelAlonePassesAndSaysWhatWasNotRun) {
  const Checked checked;
  const ProcessResult result = checked.check(checked.source);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const Json json = Program::json(result);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(rows(json, "pass"),
            (Names{"round trip", "control tokens", "template", "renderings", "stop tokens",
                   "reference = cpu", "curated = graph", "prefill = one by one"}));
  EXPECT_TRUE(rows(json, "fail").empty());
  EXPECT_EQ(rows(json, "not run"),
            (Names{"configuration", "weights", "vocabulary", "special tokens", "token ids",
                   "golden ids", "golden texts", "golden renderings", "golden stops",
                   "golden logits", "golden greedy"}));
  EXPECT_EQ(json["passed"], 8);
  EXPECT_EQ(json["not_run"], 11);
  for (const Json& row : json["checks"]) EXPECT_FALSE(row.at("detail").empty()) << row;
}

TEST(Check, AgainstItsSourceAndGoldensEveryRowPasses) {
  const Checked checked;
  checked.import_source();
  fs::copy_file(golden("check/check_goldens.json"), checked.source + "/check_goldens.json");
  const ProcessResult result = checked.check(checked.model, checked.source);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const Json json = Program::json(result);
  EXPECT_EQ(json["passed"], 19) << json.dump(1);
  EXPECT_EQ(json["not_run"], 0);
  const ProcessResult table =
      checked.program.run({"check", checked.model, "--against", checked.source, "--threads", "1"});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_NE(table.out.find("19 passed, 0 failed, 0 not run"), std::string::npos) << table.out;
}

struct Damage {
  const char* row;    // that fails, alone
  const char* words;  // of its detail
  std::function<void(const std::string& folder)> make;
};

void edit(const std::string& path, const std::function<void(Json&)>& change) {
  Json json = Json::parse(read(path));
  change(json);
  write(path, json.dump());
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"configuration", "rope_theta",
       [](const std::string& folder) {
         edit(folder + "/config.json", [](Json& j) { j["rope_theta"] = 20000.0; });
       }},
      {"weights", "1 of",
       [](const std::string& folder) {
         std::string bytes = read(folder + "/model.safetensors");
         bytes[bytes.size() - 40] = static_cast<char>(bytes[bytes.size() - 40] ^ 1);
         write(folder + "/model.safetensors", bytes);
       }},
      {"special tokens", "PAD",
       [](const std::string& folder) {
         edit(folder + "/config.json", [](Json& j) { j["pad_token_id"] = 0; });
       }},
      {"token ids", "differ",
       [](const std::string& folder) {
         edit(folder + "/tokenizer.json", [](Json& j) {
           j["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false;
           j["pre_tokenizer"]["pretokenizers"].push_back(
               {{"type", "Punctuation"}, {"behavior", "Isolated"}});
         });
       }},
      {"template", "differs from byte",
       [](const std::string& folder) {
         edit(folder + "/tokenizer_config.json", [](Json& j) {
           j["chat_template"] = j["chat_template"].get<std::string>() + "{# other #}";
         });
       }},
      {"stop tokens", "is a stop of the source",
       [](const std::string& folder) {
         write(folder + "/generation_config.json", R"({"eos_token_id": [2, 0]})");
       }},
  };
  return all;
}

TEST(Check, ADifferenceToTheSourceFailsItsRowAlone) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.row);
    const Checked checked;
    checked.import_source();
    damage.make(checked.other);
    const ProcessResult result = checked.check(checked.model, checked.other);
    EXPECT_EQ(result.exit_code, 6) << result.out << result.err;
    const Json json = Program::json(result);
    ASSERT_TRUE(json.is_object() && json.contains("checks")) << result.out;
    EXPECT_EQ(json["ok"], false);
    EXPECT_EQ(rows(json, "fail"), Names{damage.row}) << json.dump(1);
    EXPECT_NE(result.out.find(damage.words), std::string::npos) << json.dump(1);
  }
}

TEST(Check, ASwappedMergeIsSeenInTheVocabulary) {
  const Checked checked;
  checked.import_source();
  edit(checked.other + "/tokenizer.json", [](Json& j) {
    Json& merges = j["model"]["merges"];
    std::swap(merges[merges.size() - 1], merges[merges.size() - 2]);
  });
  const ProcessResult result = checked.check(checked.model, checked.other);
  EXPECT_EQ(result.exit_code, 6) << result.out;
  EXPECT_TRUE(has(rows(Program::json(result), "fail"), "vocabulary")) << result.out;
}

/// Faults that the model itself shows.
TEST(Check, AModelThatContradictsItselfFails) {
  const std::vector<Damage> all = {
      {"round trip", "comes back as",
       [](const std::string& folder) {
         edit(folder + "/tokenizer.json", [](Json& j) { j["decoder"] = {{"type", "Fuse"}}; });
       }},
      {"control tokens", "becomes the control token",
       [](const std::string& folder) {
         edit(folder + "/tokenizer.json", [](Json& j) {
           Json token = j["added_tokens"][0];
           token["content"] = "The";
           token["id"] = j["model"]["vocab"].at("The");
           j["added_tokens"].push_back(token);
         });
       }},
      {"renderings", "refuses all",
       [](const std::string& folder) {
         edit(folder + "/tokenizer_config.json",
              [](Json& j) { j["chat_template"] = "{{ raise_exception('no') }}"; });
       }},
      {"template", "cannot be used",
       [](const std::string& folder) {
         edit(folder + "/tokenizer_config.json",
              [](Json& j) { j["chat_template"] = "{{ x | no_such_filter }}"; });
       }},
      {"stop tokens", "which is no stop token",
       [](const std::string& folder) {
         write(folder + "/generation_config.json", R"({"eos_token_id": 0})");
         edit(folder + "/config.json", [](Json& j) { j["eos_token_id"] = 0; });
         edit(folder + "/tokenizer_config.json", [](Json& j) { j["eos_token"] = "<|endoftext|>"; });
       }},
  };
  for (const Damage& damage : all) {
    SCOPED_TRACE(damage.row);
    const Checked checked;
    damage.make(checked.other);
    const ProcessResult result = checked.check(checked.other);
    EXPECT_EQ(result.exit_code, 6) << result.out << result.err;
    const Json json = Program::json(result);
    ASSERT_TRUE(json.is_object() && json.contains("checks")) << result.out;
    EXPECT_EQ(rows(json, "fail"), Names{damage.row}) << json.dump(1);
    EXPECT_NE(result.out.find(damage.words), std::string::npos) << json.dump(1);
  }
}

TEST(Check, AWrongGoldenFailsItsRowAlone) {
  const Checked checked;
  checked.import_source();
  const std::string path = checked.program.file("goldens.json");
  const std::vector<std::pair<const char*, std::function<void(Json&)>>> changes = {
      {"golden ids",
       [](Json& j) {
         j["texts"].push_back("ab");
         j["ids"].push_back({5});
       }},
      {"golden texts", [](Json& j) { j["decoded"][3] = "something else"; }},
      {"golden renderings",
       [](Json& j) { j["renderings"][0]["text"] = "<|im_start|>user\nHi<|im_end|>"; }},
      {"golden stops", [](Json& j) { j["stop_ids"].push_back(7); }},
      {"golden logits",
       [](Json& j) {
         Json& value = j["logits"][0]["rows"][0]["values"][5];
         value = value.get<double>() + 0.01;
       }},
      {"golden greedy",
       [](Json& j) { j["greedy"][1]["ids"][4] = j["greedy"][1]["ids"][4].get<int>() ^ 1; }}};
  for (const auto& [row, change] : changes) {
    SCOPED_TRACE(row);
    fs::copy_file(golden("check/check_goldens.json"), path, fs::copy_options::overwrite_existing);
    edit(path, change);
    const ProcessResult result = checked.check(checked.model, path);
    EXPECT_EQ(result.exit_code, 6) << result.out << result.err;
    EXPECT_EQ(rows(Program::json(result), "fail"), Names{row}) << result.out;
  }
}

TEST(Check, WhatCannotBeReadIsAnErrorAndNoVerdict) {
  const Checked checked;
  EXPECT_EQ(checked.check(checked.source, checked.program.file("nowhere")).exit_code, 4);
  const std::string bad = checked.program.file("bad.json");
  write(bad, "{}");
  const ProcessResult result = checked.check(checked.source, bad);
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_NE(result.out.find("no goldens"), std::string::npos) << result.out;
}

TEST(Check, AQuantisedModelIsHeldToItsOriginal) {
  const Checked checked;
  const std::string small = checked.program.file("small.model");
  const ProcessResult made =
      checked.program.run({"quantize", checked.source, "--to", "q8", "-o", small});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  fs::copy_file(golden("check/check_goldens.json"), checked.source + "/check_goldens.json");
  const ProcessResult result = checked.check(small, checked.source);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("in another encoding"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("mean divergence"), std::string::npos) << result.out;
  EXPECT_EQ(rows(Program::json(result), "not run"), Names{"golden greedy"});
  for (const char* kept : {"*_proj.weight=f16", "*_proj.weight=bf16"}) {
    const std::string rounded = checked.program.file("rounded.model");
    const ProcessResult kept_in = checked.program.run(
        {"quantize", checked.source, "--to", "q8", "--keep", kept, "-o", rounded, "--force"});
    ASSERT_EQ(kept_in.exit_code, 0) << kept_in.err;
    EXPECT_EQ(checked.check(rounded, checked.source).exit_code, 0) << kept;
  }
}

/// A head of zeros gives every token the same probability.
TEST(Perplexity, AlarmsWhereItIsTheSizeOfTheVocabulary) {
  const Checked checked;
  const std::string text = checked.program.file("t.txt");
  write(text, "The quick brown fox jumps over the lazy dog, and the dog sleeps on.");
  const auto perplexity = [&](const std::string& model) {
    return checked.program.run({"perplexity", model, "--file", text, "--json"});
  };
  const ProcessResult sound = perplexity(checked.source);
  ASSERT_EQ(sound.exit_code, 0) << sound.err;
  EXPECT_EQ(Program::json(sound)["uniform"], false) << sound.out;
  EXPECT_EQ(sound.err.find("size of the vocabulary"), std::string::npos) << sound.err;
  std::string bytes = read(checked.other + "/model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(8 + header), 1200 * 32 * 4, '\0');
  write(checked.other + "/model.safetensors", bytes);
  const ProcessResult empty = perplexity(checked.other);
  ASSERT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_NEAR(Program::json(empty)["perplexity"].get<double>(), 1200.0, 1.2);
  EXPECT_EQ(Program::json(empty)["uniform"], true) << empty.out;
  EXPECT_NE(empty.err.find("warning: the perplexity is the size of the vocabulary (1200)"),
            std::string::npos)
      << empty.err;
}

TEST(Check, SmolLm2AgainstItsGgufFile) {
  ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2);
  const Program program;
  const ProcessResult result =
      program.run({"check", model_file(kSmolLm2), "--against", model_file(kSmolLm2), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const Json json = Program::json(result);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["passed"], 13) << json.dump(1);
}

}  // namespace
}  // namespace cyb::test
