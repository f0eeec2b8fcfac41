// Hugging Face folders: generation settings, tokenizer files, chat templates, hostile JSON.
#include <gtest/gtest.h>

#include "import/import_support.hpp"
#include "model/model.hpp"

namespace cyb::test {
namespace {

TEST(HfImport, GenerationConfig) {
  Checkpoint checkpoint("llama2");
  checkpoint.edit("generation_config.json", [](nlohmann::json& g) {
    g = {{"do_sample", true},      {"temperature", 0.6}, {"top_p", 0.9},         {"typical_p", 0.8},
         {"eos_token_id", {5, 6}}, {"num_beams", 4},     {"length_penalty", 1.0}};
  });
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(text_at(*draft, "sampling.method"), "chain");
  EXPECT_EQ(number_at(*draft, "sampling.temperature"), 0.6);
  EXPECT_EQ(number_at(*draft, "sampling.top_p"), 0.9);
  EXPECT_EQ(number_at(*draft, "sampling.typical_p"), 0.8);
  EXPECT_EQ(number_at(*draft, "sampling.top_k"), 50);  // transformers' default
  ASSERT_EQ(checkpoint.report.stops.size(), 2u);
  EXPECT_EQ(checkpoint.report.stops[0].id, 5);
  EXPECT_TRUE(mentions(checkpoint.report.warnings, "num_beams"));
  EXPECT_FALSE(mentions(checkpoint.report.warnings, "length_penalty"));
  checkpoint.edit("generation_config.json", [](nlohmann::json& g) { g["eos_token_id"] = 256; });
  EXPECT_NE(checkpoint.error().find("eos_token_ids"), std::string::npos);
  checkpoint.edit("generation_config.json", [](nlohmann::json& g) { g = {{"top_p", 1.5}}; });
  EXPECT_NE(checkpoint.error().find("top_p"), std::string::npos);
}

/// A llama checkpoint with as many rows as one of the small tokenizers has tokens, and that
/// tokenizer.
class WithTokenizer : public Checkpoint {
 public:
  WithTokenizer(const std::string& tokenizer, std::int64_t n_rows) : Checkpoint("llama2") {
    edit_config([n_rows](nlohmann::json& c) { c["vocab_size"] = n_rows; });
    auto tensors = tiny_tensors("llama2");
    for (StoredTensor& tensor : tensors) {
      if (tensor.shape[0] == 256) tensor = f32_tensor(tensor.name, {n_rows, 64});
    }
    write_weights(path(), tensors);
    write_file(file("tokenizer.json"),
               read_file(std::string(CYB_TESTS_DIR) + "/golden/tokenizer/" + tokenizer + ".json"));
  }
};

TEST(HfImport, TokenizerAndItsConfig) {
  WithTokenizer checkpoint("smollm", 1216);
  checkpoint.edit("tokenizer_config.json", [](nlohmann::json& t) {
    t = {{"eos_token", "<|im_end|>"},
         {"bos_token", {{"content", "<|im_start|>"}}},
         {"add_bos_token", true},
         {"chat_template", "{{ messages[0].content }}"}};
  });
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(text_at(*draft, "tokenizer.type"), "bpe");
  EXPECT_EQ(text_at(*draft, "tokenizer.pre"), "smollm");
  EXPECT_TRUE(flag_at(*draft, "tokenizer.add_bos_token"));
  ASSERT_EQ(draft->vocab.tokens.size(), 1216u);
  EXPECT_EQ(draft->vocab.tokens[1215], "[PAD1215]");
  EXPECT_EQ(draft->vocab.types[1215], TokenType::kUnused);
  EXPECT_TRUE(mentions(checkpoint.report.assumptions, "[PAD<id>]"));
  ASSERT_TRUE(checkpoint.report.bos);
  EXPECT_EQ(checkpoint.report.bos->text, "<|im_start|>");
  EXPECT_EQ(checkpoint.report.stops.back().text, "<|im_end|>");
  ASSERT_TRUE(draft->chat);
  EXPECT_EQ(*draft->chat->find("format")->string(), "custom");
  EXPECT_EQ(*draft->chat->find("template")->string(), "{{ messages[0].content }}");
}

TEST(HfImport, EveryBuiltTokenizerReachesTheModelFile) {
  const std::pair<const char*, const char*> rows[] = {{"gpt2", "bpe"},   {"smollm", "bpe"},
                                                      {"qwen2", "bpe"},  {"llama3", "bpe"},
                                                      {"llama2", "spm"}, {"gemma", "spm"}};
  for (const auto& [name, type] : rows) {
    SCOPED_TRACE(name);
    WithTokenizer checkpoint(name, 1300);
    const TemporaryFolder folder;
    ImportReport report;
    const auto written = import_model(checkpoint.path(), folder.file("x.model"), {}, report);
    ASSERT_TRUE(written) << written.error().text();
    EXPECT_EQ(report.tokenizer, type);
    const auto model = Model::open(folder.file("x.model"));
    ASSERT_TRUE(model) << model.error().text();
    const auto vocab = (*model)->vocab();
    ASSERT_TRUE(vocab) << vocab.error().text();
    EXPECT_EQ((*vocab)->tokens.size(), 1300u);
    const auto json = nlohmann::json::parse(read_file(checkpoint.file("tokenizer.json")));
    for (const auto& [text, id] : json["model"]["vocab"].items())
      EXPECT_EQ((*vocab)->tokens[id.get<std::size_t>()], text);
    for (const auto& added : json["added_tokens"]) {
      EXPECT_EQ((*vocab)->tokens[added["id"].get<std::size_t>()],
                added["content"].get<std::string>());
    }
  }
}

TEST(HfImport, TemplatesFromListsAndFiles) {
  WithTokenizer checkpoint("smollm", 1200);
  checkpoint.edit("tokenizer_config.json", [](nlohmann::json& t) {
    t["chat_template"] = {{{"name", "default"}, {"template", "{{ 1 }}"}},
                          {{"name", "tool_use"}, {"template", "{{ 2 }}"}}};
  });
  const auto listed = checkpoint.import();
  ASSERT_TRUE(listed) << listed.error().text();
  EXPECT_EQ(*listed->chat->find("template")->string(), "{{ 1 }}");
  EXPECT_TRUE(mentions(checkpoint.report.warnings, "tool_use"));
  write_file(checkpoint.file("chat_template.jinja"), "{{ 3 }}");
  const auto from_file = checkpoint.import();
  ASSERT_TRUE(from_file) << from_file.error().text();
  EXPECT_EQ(*from_file->chat->find("template")->string(), "{{ 3 }}");
}

// Case C03: an unsupported template is a warning with line and column, and the import goes on.
TEST(HfImport, BadTemplateIsAWarning) {
  WithTokenizer checkpoint("smollm", 1200);
  write_file(checkpoint.file("chat_template.jinja"), "hello\n{{ messages | no_such_filter }}");
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_NE(checkpoint.report.chat_template.problem, "");
  EXPECT_TRUE(mentions(checkpoint.report.warnings, "line 2"));
  EXPECT_TRUE(draft->chat.has_value());
}

TEST(HfImport, TokenizersThatAreNotReadAreRefused) {
  Checkpoint checkpoint("llama2");
  write_file(checkpoint.file("tokenizer.model"), "x");
  EXPECT_NE(checkpoint.error().find("tokenizer.model"), std::string::npos);
  WithTokenizer small("smollm", 700);  // fewer rows than tokens
  EXPECT_NE(small.error().find("vocab"), std::string::npos) << small.error();
}

TEST(HfImport, HostileJson) {
  Checkpoint checkpoint("llama2");
  const std::string config = read_file(checkpoint.file("config.json"));
  write_file(checkpoint.file("config.json"), R"({"model_type":"llama","model_type":"llama"})");
  EXPECT_NE(checkpoint.error().find("duplicate"), std::string::npos);
  write_file(checkpoint.file("config.json"), std::string(100000, '['));
  EXPECT_NE(checkpoint.error().find("nesting"), std::string::npos);
  write_file(checkpoint.file("config.json"), config + std::string(1, '\0') + "junk");
  EXPECT_NE(checkpoint.error().find("NUL"), std::string::npos);
  write_file(checkpoint.file("config.json"), "[]");
  EXPECT_NE(checkpoint.error(), "");
  std::filesystem::remove(checkpoint.file("config.json"));
  EXPECT_NE(checkpoint.error().find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace cyb::test
