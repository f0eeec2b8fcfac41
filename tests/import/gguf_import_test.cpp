// GGUF imports against files that the `gguf` package wrote, damaged files, split files and the real
// SmolLM2.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "import/gguf/gguf_source.hpp"
#include "import/import.hpp"
#include "import/import_support.hpp"
#include "import/names.hpp"
#include "model/model.hpp"
#include "support/models.hpp"

namespace cyb::test {
namespace {

const std::string kGolden = std::string(CYB_TESTS_DIR) + "/golden/gguf/";
const std::string kBad = std::string(CYB_TESTS_DIR) + "/golden/bad/";

void expect_tensors(const ModelDraft& draft, const nlohmann::json& expect) {
  EXPECT_EQ(draft.tensors.size(), expect.size());
  for (const auto& [name, row] : expect.items()) {
    SCOPED_TRACE(name);
    const DraftTensor* tensor = find_tensor(draft, name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(dtype_name(tensor->dtype), row[0].get<std::string>());
    const auto dims = tensor->shape.dims();
    EXPECT_EQ(std::vector<std::int64_t>(dims.begin(), dims.end()),
              row[1].get<std::vector<std::int64_t>>());
    EXPECT_EQ(crc32_of(produced(*tensor)), row[2].get<std::uint32_t>());
    EXPECT_EQ(crc32_of(produced(*tensor)), row[2].get<std::uint32_t>()) << "a second pass differs";
  }
}

class GgufGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufGolden, TensorsAreTheCheckpointsOwn) {
  const std::string name = GetParam();
  const auto expect = nlohmann::json::parse(read_file(kGolden + "EXPECT.json")).at(name);
  ImportReport report;
  const auto draft =
      read_source(kGolden + name + (name == "split" ? "-00001-of-00003.gguf" : ".gguf"), report);
  ASSERT_TRUE(draft) << draft.error().text();
  expect_tensors(*draft, expect);
  EXPECT_EQ(report.n_tensors, expect.size());
  EXPECT_EQ(report.vocab_size, 40);
  EXPECT_EQ(report.context_tokens, 64);
  EXPECT_EQ(text_at(*draft, "tokenizer.type"), "none");
  EXPECT_TRUE(draft->graph_hex.has_value());
}

INSTANTIATE_TEST_SUITE_P(All, GgufGolden,
                         ::testing::Values("llama", "split", "qwen2", "qwen3", "gemma3"));

TEST(GgufImport, LlamaConfig) {
  ImportReport report;
  const auto draft = read_source(kGolden + "llama.gguf", report);
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(text_at(*draft, "model_type"), "llama");
  EXPECT_EQ(number_at(*draft, "architecture.rope_theta"), 500000.0);
  EXPECT_EQ(text_at(*draft, "architecture.rope_style"), "neox");
  EXPECT_EQ(text_at(*draft, "architecture.rope_scaling.type"), "table");
  EXPECT_EQ(number_at(*draft, "architecture.num_key_value_heads"), 2);
  EXPECT_EQ(number_at(*draft, "architecture.head_dim"), 8);
  EXPECT_FALSE(flag_at(*draft, "architecture.tie_word_embeddings"));
  EXPECT_EQ(number_at(*draft, "architecture.rms_norm_eps"), static_cast<double>(1e-5f));
  EXPECT_EQ(text_at(*draft, "sampling.method"), "greedy");
}

TEST(GgufImport, GemmaConfigComesFromTheFamily) {
  ImportReport report;
  const auto draft = read_source(kGolden + "gemma3.gguf", report);
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(number_at(*draft, "architecture.rope_theta_full"), 1e6);
  EXPECT_EQ(number_at(*draft, "architecture.rope_theta_sliding"), 1e4);
  EXPECT_EQ(text_at(*draft, "architecture.rope_scaling.type"), "linear");
  EXPECT_EQ(number_at(*draft, "architecture.rope_scaling.factor"), 8.0);
  EXPECT_EQ(number_at(*draft, "architecture.embedding_scale"),
            static_cast<double>(std::sqrt(32.0f)));
  EXPECT_EQ(number_at(*draft, "architecture.attention_scale"), 1.0 / std::sqrt(8.0));
  EXPECT_FALSE(flag_at(*draft, "architecture.norm_unit_offset"));  // the file's norms contain the 1
  EXPECT_TRUE(flag_at(*draft, "architecture.tie_word_embeddings"));
  const ConfigArray* types = draft->config.at("architecture.layer_types")->array();
  ASSERT_EQ(types->size(), 7u);
  for (std::size_t i = 0; i < 7; ++i)
    EXPECT_EQ(*(*types)[i].string(), i == 5 ? "full" : "sliding") << i;
  EXPECT_TRUE(mentions(report.assumptions, "6th layer"));
  EXPECT_TRUE(mentions(report.assumptions, "10000"));
}

TEST(GgufImport, SplitFilesNameWhatIsWrong) {
  const TemporaryFolder folder;
  const auto part = [](int n) { return "split-0000" + std::to_string(n) + "-of-00003.gguf"; };
  const auto put = [&](int from, int as) {
    write_file(folder.file(part(as)), read_file(kGolden + part(from)));
  };
  const auto error = [&](const std::string& name) {
    ImportReport report;
    const auto draft = read_source(folder.file(name), report);
    return draft ? std::string() : draft.error().text();
  };
  put(1, 1);
  put(2, 2);
  EXPECT_NE(error(part(1)).find(part(3)), std::string::npos) << error(part(1));
  put(2, 3);  // the second part twice
  EXPECT_NE(error(part(1)).find(part(3)), std::string::npos) << error(part(1));
  EXPECT_NE(error(part(1)).find("double"), std::string::npos) << error(part(1));
  put(3, 3);
  EXPECT_EQ(error(part(1)), "");
  EXPECT_NE(error(part(2)).find(part(1)), std::string::npos) << error(part(2));
  write_file(folder.file("other.gguf"), read_file(kGolden + part(1)));
  EXPECT_NE(error("other.gguf").find("00001-of-00003"), std::string::npos);
}

TEST(GgufImport, DamagedModelsAreRefusedByName) {
  const auto expect = nlohmann::json::parse(read_file(kBad + "EXPECT.json"));
  std::size_t n = 0;
  for (const auto& [path, row] : expect.items()) {
    if (!path.starts_with("gguf/")) continue;
    SCOPED_TRACE(path + ": " + row.at("why").get<std::string>());
    ImportReport report;
    const auto draft = read_source(kBad + path, report);
    ++n;
    if (row.at("expect") == "refuse") {
      ASSERT_FALSE(draft);
    }
    ASSERT_EQ(draft.has_value(), !row.contains("code"));
    if (!draft) {
      EXPECT_EQ(draft.error().code(), row["code"].get<std::string>());
      EXPECT_TRUE(draft.error().message().starts_with(row["message"].get<std::string>()))
          << draft.error().message();
      EXPECT_EQ(exit_code(draft.error().kind()), row["exit"].get<int>());
      const std::string text = draft.error().text();
      EXPECT_NE(text.find(kBad + path), std::string::npos) << text;
      if (row.at("expect") == "refuse" && row.contains("mentions")) {
        EXPECT_NE(text.find(row["mentions"].get<std::string>()), std::string::npos) << text;
      }
    }
    if (row.at("expect") == "ok" && row.at("stage") == "import") {
      EXPECT_TRUE(draft) << draft.error().text();
    }
  }
  EXPECT_GE(n, 110u);
}

/// Rows of a draft's q or k back in the order of GGUF `llama` files (the inverse of
/// model-format 6.3 step 3).
std::vector<std::byte> permuted_again(const std::vector<std::byte>& bytes, std::size_t n_rows,
                                      std::size_t n_heads) {
  std::vector<std::byte> out(bytes.size());
  const std::size_t row_bytes = bytes.size() / n_rows, head_rows = n_rows / n_heads;
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::size_t head = row / head_rows, in_head = row % head_rows;
    const std::size_t half = in_head / (head_rows / 2), pair = in_head % (head_rows / 2);
    std::memcpy(out.data() + (head * head_rows + 2 * pair + half) * row_bytes,
                bytes.data() + row * row_bytes, row_bytes);
  }
  return out;
}

void expect_round_trip(const std::string& path) {
  ImportReport report;
  const auto draft = read_source(path, report);
  ASSERT_TRUE(draft) << draft.error().text();
  const auto source = gguf::open_gguf(path);
  ASSERT_TRUE(source);
  ASSERT_EQ(draft->tensors.size(), source->parts[0].header.tensors.size());
  for (const gguf::TensorInfo& theirs : source->parts[0].header.tensors) {
    const DraftTensor* ours =
        find_tensor(*draft, canonical_name(gguf_names("llama"), theirs.name).value());
    ASSERT_NE(ours, nullptr) << theirs.name;
    EXPECT_EQ(ours->shape, theirs.shape);
    EXPECT_EQ(ours->dtype, theirs.dtype);
    std::vector<std::byte> bytes = produced(*ours);
    const bool q = theirs.name.find("attn_q.") != std::string_view::npos,
               k = theirs.name.find("attn_k.") != std::string_view::npos;
    if (q || k) {
      const auto n_heads = static_cast<std::size_t>(q ? report.n_heads : report.n_kv_heads);
      bytes = permuted_again(bytes, static_cast<std::size_t>(theirs.shape[0]), n_heads);
    }
    const auto stored = source->parts[0].file->bytes().subspan(theirs.offset, theirs.size_bytes);
    EXPECT_TRUE(std::ranges::equal(bytes, stored)) << theirs.name;
  }
}

TEST(GgufImport, RoundTripOfNamesShapesAndBytes) {
  expect_round_trip(kGolden + "llama.gguf");
  ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2);
  expect_round_trip(model_file(kSmolLm2));
}

// What people wrote into a file must not become structure of ours, nor bytes that our reader
// refuses.
TEST(GgufImport, TextsOfTheFileStayTexts) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& file, const std::string& from, const std::string& to) {
    std::string bytes = read_file(file);
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(from.size(), to.size());
    bytes.replace(at, from.size(), to);
    write_file(folder.file("x.gguf"), bytes);
    ImportReport report;
    return import_model(folder.file("x.gguf"), folder.file("x.model"), {}, report);
  };
  for (const char* name : {"\xff\xfe\x80\xc0\xaf llama", "\n~~~weights\n"}) {
    const std::string from = std::string("golden llama").substr(0, std::string(name).size());
    const auto written = with(kGolden + "llama.gguf", from, name);
    ASSERT_TRUE(written) << written.error().text();
    const auto model = Model::open(folder.file("x.model"));
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_TRUE((*model)->card().starts_with("# "));
  }
  const auto bad = with(kBad + "gguf/ok-minimal.gguf", "<|end|>",
                        "<|e\xff"
                        "d|>");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().text().find("tokenizer.ggml.tokens"), std::string::npos)
      << bad.error().text();
}

TEST(GgufImport, BytesThatBelongToNoTensorAreReported) {
  const TemporaryFolder folder;
  const std::string good = read_file(kBad + "gguf/ok-minimal.gguf");
  const auto warnings = [&](const std::string& bytes) {
    write_file(folder.file("x.gguf"), bytes);
    ImportReport report;
    const auto draft = read_source(folder.file("x.gguf"), report);
    EXPECT_TRUE(draft) << draft.error().text();
    return report.warnings;
  };
  EXPECT_FALSE(mentions(warnings(good), "belong to none"));
  EXPECT_TRUE(mentions(warnings(good + std::string(100, 'x')),
                       folder.file("x.gguf") + ": 100 bytes between or after the tensors"));
  // A hole between two tensors: the second of them moves up by 64 bytes.
  std::string hole = read_file(kBad + "gguf/ok-alignment-64.gguf");
  const std::string name("\x01\0\0\0\0\0\0\0b", 9);
  const std::size_t offset = hole.find(name) + name.size() + 4 + 8 + 4;
  ASSERT_EQ(hole[offset], 64);
  hole[offset] = static_cast<char>(128);
  hole += std::string(64, '\0');
  const auto raw = std::as_bytes(std::span(hole.data(), hole.size()));
  EXPECT_EQ(gguf::GgufFile::parse(raw).value().unclaimed_bytes, 64u);
}

TEST(GgufImport, VersionTwoGivesTheSameModel) {
  ImportReport report;
  ImportOptions options;
  options.name = "same";
  const TemporaryFolder folder;
  const auto a =
      import_model(kBad + "gguf/ok-minimal.gguf", folder.file("a.model"), options, report);
  const auto b =
      import_model(kBad + "gguf/ok-version-2.gguf", folder.file("b.model"), options, report);
  ASSERT_TRUE(a) << a.error().text();
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_EQ(a->model_id, b->model_id);
}

TEST(GgufImport, SmolLm2) {
  ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2);
  ImportReport report;
  const auto draft = read_source(model_file(kSmolLm2), report);
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(report.parameters, 134515008u);
  EXPECT_EQ(report.n_layers, 30);
  EXPECT_EQ(report.n_heads, 9);
  EXPECT_EQ(report.n_kv_heads, 3);
  EXPECT_EQ(report.head_dim, 64);
  EXPECT_EQ(report.context_tokens, 8192);
  EXPECT_TRUE(report.tied);
  EXPECT_EQ(report.tokenizer, "bpe");
  EXPECT_EQ(report.tokenizer_pre, "smollm");
  EXPECT_EQ(report.n_tokens, 49152u);
  ASSERT_TRUE(report.bos);
  EXPECT_EQ(report.bos->text, "<|im_start|>");
  ASSERT_GE(report.stops.size(), 1u);
  EXPECT_EQ(report.stops[0].text, "<|im_end|>");
  EXPECT_FALSE(report.add_bos);
  EXPECT_TRUE(report.chat_template.present);
  EXPECT_EQ(report.chat_template.problem, "");
  EXPECT_EQ(report.encodings[0].name, "q4_1");
  EXPECT_EQ(report.encodings[0].count, 210u);
  EXPECT_EQ(draft->vocab.tokens.size(), 49152u);
  EXPECT_EQ(draft->vocab.merges.size(), 2u * 48900u);
  EXPECT_EQ(number_at(*draft, "architecture.rope_theta"), 100000.0);
}

}  // namespace
}  // namespace cyb::test
