// import_model as a whole: what it writes, what it leaves behind when it does not, and what it
// reports.
#include "import/import.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "import/import_support.hpp"
#include "model/model.hpp"

namespace cyb::test {
namespace {

std::size_t n_files(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                std::filesystem::directory_iterator()));
}

TEST(Import, WrittenModelsOpenAndVerify) {
  for (const char* name : {"llama2", "llama3", "smollm2", "mistral", "qwen2", "qwen3", "gemma3"}) {
    SCOPED_TRACE(name);
    Checkpoint checkpoint(name);
    const TemporaryFolder folder;
    ImportReport report;
    ImportOptions options;
    options.name = name;
    const auto written = import_model(checkpoint.path(), folder.file("x.model"), options, report);
    ASSERT_TRUE(written) << written.error().text();
    const auto model = Model::open(folder.file("x.model"), {.verify_weights = true});
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_TRUE((*model)->verify());
    EXPECT_EQ((*model)->name(), name);
    EXPECT_EQ((*model)->model_id().value(), written->model_id);
    EXPECT_TRUE((*model)->has_graph());
    EXPECT_TRUE((*model)->graph());
    EXPECT_EQ((*model)->config().integer("parameters").value(),
              static_cast<std::int64_t>(report.parameters));
    for (const StoredTensor& tensor : tiny_tensors(name)) {
      const TensorEntry* entry = (*model)->find_tensor(tensor.name);
      ASSERT_NE(entry, nullptr) << tensor.name;
      EXPECT_TRUE(std::ranges::equal((*model)->tensor_bytes(*entry), tensor.bytes)) << tensor.name;
    }
  }
}

TEST(Import, FailureLeavesNothingBehind) {
  const TemporaryFolder folder;
  ImportReport report;
  Checkpoint checkpoint("llama2");
  auto tensors = tiny_tensors("llama2");
  const std::uint32_t nan = 0x7FC00000;
  std::memcpy(tensors.back().bytes.data(), &nan, sizeof nan);  // found while weights are written
  write_weights(checkpoint.path(), tensors);
  const auto failed = import_model(checkpoint.path(), folder.file("x.model"), {}, report);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), "F42");
  EXPECT_EQ(n_files(folder.path()), 0u);
  EXPECT_FALSE(import_model(folder.file("absent"), folder.file("x.model"), {}, report));
  EXPECT_EQ(n_files(folder.path()), 0u);
}

TEST(Import, StoppedImportLeavesNothingBehind) {
  const TemporaryFolder folder;
  Checkpoint checkpoint("llama2");
  std::stop_source stop;
  ImportOptions options;
  options.stop = stop.get_token();
  std::size_t n_calls = 0;
  options.progress = [&](const ImportProgress& progress) {
    ++n_calls;
    EXPECT_LE(progress.bytes_done, progress.bytes_total);
    stop.request_stop();
  };
  ImportReport report;
  const auto written = import_model(checkpoint.path(), folder.file("x.model"), options, report);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind(), ErrorKind::kCancelled);
  EXPECT_GE(n_calls, 1u);
  EXPECT_EQ(n_files(folder.path()), 0u);
}

TEST(Import, SourceKeySeesEveryFile) {
  Checkpoint checkpoint("llama3", 2);
  const auto before = source_key(checkpoint.path());
  ASSERT_TRUE(before) << before.error().text();
  std::uint64_t size = 0;
  for (const auto& file : std::filesystem::directory_iterator(checkpoint.path()))
    size += file.file_size();
  EXPECT_EQ(before->size_bytes, size);
  checkpoint.edit("generation_config.json", [](nlohmann::json& g) { g["top_k"] = 3; });
  const auto after = source_key(checkpoint.path());
  ASSERT_TRUE(after);
  EXPECT_TRUE(after->mtime_ns != before->mtime_ns || after->size_bytes != before->size_bytes);
  const auto gguf =
      source_key(std::string(CYB_TESTS_DIR) + "/golden/gguf/split-00001-of-00003.gguf");
  ASSERT_TRUE(gguf);
  std::uint64_t parts = 0;
  for (const char* part : {"1", "2", "3"}) {
    parts += std::filesystem::file_size(std::string(CYB_TESTS_DIR) + "/golden/gguf/split-0000" +
                                        part + "-of-00003.gguf");
  }
  EXPECT_EQ(gguf->size_bytes, parts);
  EXPECT_FALSE(source_key(checkpoint.file("absent.gguf")));
}

TEST(Import, SourcesAreToldApart) {
  Checkpoint checkpoint("llama2");
  EXPECT_TRUE(is_import_source(checkpoint.path()));
  EXPECT_TRUE(is_import_source(checkpoint.file("model.safetensors")));
  EXPECT_TRUE(is_import_source(std::string(CYB_TESTS_DIR) + "/golden/gguf/llama.gguf"));
  EXPECT_FALSE(is_import_source(checkpoint.file("config.json")));
  EXPECT_FALSE(is_import_source(checkpoint.file("absent")));
  ImportReport report;
  const auto draft = read_source(checkpoint.file("config.json"), report);
  ASSERT_FALSE(draft);
  EXPECT_EQ(draft.error().kind(), ErrorKind::kInvalidInput);
}

TEST(Import, ReportsSayWhatWasUnderstood) {
  Checkpoint checkpoint("llama3");
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  const auto json = nlohmann::json::parse(report_json(checkpoint.report));
  EXPECT_EQ(json["family"], "llama");
  EXPECT_EQ(json["parameters"], 106816);
  EXPECT_EQ(json["layers"], 2);
  EXPECT_EQ(json["context"], 128);
  EXPECT_EQ(json["encodings"][0]["encoding"], "f32");
  EXPECT_EQ(json["stops"][0]["id"], 2);
  EXPECT_EQ(json["template"]["present"], false);
  EXPECT_EQ(json["tokenizer"]["type"], "none");
  EXPECT_NE(json["rope"].get<std::string>().find("llama3"), std::string::npos);
  const std::string text = report_text(checkpoint.report);
  for (const char* part :
       {"family llama", "context", "128 tokens", "theta 500000", "model of ids", "f32 x"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Import, NamesComeFromTheSourceAndAreMadeSafe) {
  const TemporaryFolder folder;
  const std::string bytes = read_file(std::string(CYB_TESTS_DIR) + "/golden/gguf/llama.gguf");
  const std::pair<std::string, std::string> rows[] = {
      {"plain_1.0", "plain_1.0"},
      {"A model (v2)", "A-model--v2-"},
      {"-dash", "dash"},
      {"..", "model"},
      {std::string(200, 'n'), std::string(128, 'n')}};
  for (const auto& [file, name] : rows) {
    SCOPED_TRACE(file);
    const std::string path = folder.file(file + ".gguf");
    write_file(path, bytes);
    ImportReport report;
    const auto draft = read_source(path, report);
    ASSERT_TRUE(draft) << draft.error().text();
    EXPECT_EQ(draft->name, name);
    EXPECT_EQ(report.name, name);
    EXPECT_EQ(mentions(report.assumptions, "is no model name"), file != name) << "said if changed";
  }
}

TEST(Import, ANameThatIsGivenIsTakenAsItIsOrRefused) {
  const std::string source = std::string(CYB_TESTS_DIR) + "/golden/gguf/llama.gguf";
  const auto with = [&](const std::string& name) {
    ImportReport report;
    ImportOptions options;
    options.name = name;
    const auto draft = read_source(source, report, options);
    return draft ? draft->name : draft.error().code() + " " + draft.error().message();
  };
  EXPECT_EQ(with("mine"), "mine");
  EXPECT_EQ(with(std::string(128, 'a')), std::string(128, 'a'));
  for (const std::string& name :
       {std::string(129, 'a'), std::string("a b"), std::string("a/b"), std::string("-x"),
        std::string(".x"), std::string("\u00e9"), std::string("x\n"), std::string(70000, 'a')}) {
    const std::string error = with(name);
    EXPECT_TRUE(error.starts_with("InvalidInput ")) << error.substr(0, 200);
    EXPECT_NE(error.find("want 1 to 128 of"), std::string::npos) << error.substr(0, 200);
    EXPECT_NE(error.find(std::to_string(name.size()) + " bytes"), std::string::npos)
        << error.substr(0, 300);
  }
}

}  // namespace
}  // namespace cyb::test
