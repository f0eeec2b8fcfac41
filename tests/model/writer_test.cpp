// The writer: the worked example byte for byte, layout rules, refusals, cancellation.
#include "model/writer.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "base/file.hpp"
#include "model/model.hpp"
#include "model/temporary_folder.hpp"
#include "support/example_model.hpp"

namespace cyb {
namespace {

using test::documented_example;
using test::example_draft;
using test::TemporaryFolder;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string_view body_of(std::string_view text, std::string_view name) {
  const std::string line = "~~~" + std::string(name) + "\n";
  const std::size_t begin = text.find("\n" + line) + 1 + line.size();
  if (text.substr(begin).starts_with("~~~")) return {};
  return text.substr(begin, text.find("\n~~~", begin) + 1 - begin);
}

std::string error_of(const ModelDraft& draft, const WriteOptions& options = {}) {
  const TemporaryFolder folder;
  const auto written = write_model(folder / "m.model", draft, options);
  EXPECT_FALSE(written.has_value());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "something was left behind";
  return written ? "" : written.error().code() + " " + written.error().message();
}

TEST(WriterExample, EqualsTheDocumentByteForByte) {
  const TemporaryFolder folder;
  const auto written = write_model(folder / "m.model", documented_example());
  ASSERT_TRUE(written.has_value()) << written.error().text();
  EXPECT_EQ(hex(written->model_id),
            "53f6141ded7eca33abbce363bfe45b99af728345b2b19284f82e31d684693f99");
  EXPECT_EQ(hex(written->file_id),
            "9e2bfc5e3609493cb06ff927fbd3c5ceee4a244e2710ca4576f6e070508ad995");
  EXPECT_EQ(written->file_bytes, 45184u);
  const std::string bytes = read_file(folder / "m.model");
  ASSERT_EQ(bytes.size(), 45184u);
  EXPECT_EQ(bytes.substr(0, 4096),
            read_file(std::string(CYB_TESTS_DIR) + "/golden/model/example.text"));
  EXPECT_EQ(hex(blake3(std::string_view(bytes).substr(4096))),
            "89719dfff11d443ec1a292bfc04a98f0a2a2f717d12c0af20855adb1a2055dd2");
  EXPECT_EQ(hex(blake3(std::string_view(bytes))), hex(written->file_id));
}

TEST(WriterExample, BodyHashesOfTheDocument) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_model(folder / "m.model", documented_example()).has_value());
  const std::string bytes = read_file(folder / "m.model");
  struct Row {
    std::string_view name;
    std::size_t size;
    std::string_view begin, end;
  };
  for (const Row& row :
       {Row{"config", 485, "ef866345", "3df48b4f"}, Row{"program", 0, "af1349b9", "cae41f3262"},
        Row{"tensors", 1084, "417a607c", "1ed1c662"}, Row{"vocab", 124, "8c3ac425", "5a518ff7"}}) {
    const std::string_view body = body_of(bytes, row.name);
    EXPECT_EQ(body.size(), row.size) << row.name;
    const std::string digest = hex(blake3(body));
    EXPECT_TRUE(digest.starts_with(row.begin) && digest.ends_with(row.end)) << row.name << digest;
  }
}

TEST(Writer, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  ModelDraft draft = example_draft();
  draft.lineage.set("source", "a/b");
  draft.chat = ConfigTable();
  draft.chat->set("format", "custom");
  draft.chat->set("template", "{% for m in messages %}\n~~~\"\\{{ m }}\t\u00e9{% endfor %}");
  draft.eval = "[[benchmarks]]\nname = \"x\"\nprompt = \"2+2?\"\nexpected_contains = [\"4\"]\n";
  const auto written = write_model(folder / "m.model", draft);
  ASSERT_TRUE(written.has_value()) << written.error().text();
  const auto model = Model::open(folder / "m.model");
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ((*model)->tensors().size(), draft.tensors.size());
  for (std::size_t i = 0; i < draft.tensors.size(); ++i) {
    const TensorEntry& entry = (*model)->tensors()[i];
    EXPECT_EQ(entry.name, draft.tensors[i].name);
    EXPECT_EQ(entry.offset % 4096, 0u);
    ASSERT_TRUE(entry.hash.has_value());
    EXPECT_EQ(hex(*entry.hash), hex(blake3((*model)->tensor_bytes(entry))));
  }
  EXPECT_EQ((*model)->chat()->string("template").value(), draft.chat->string("template").value());
  EXPECT_EQ((*model)->frontmatter().string("cyb.lineage.source").value(), "a/b");
  EXPECT_EQ(hex((*model)->model_id().value()), hex(written->model_id));
  EXPECT_EQ(hex((*model)->computed_model_id().value()), hex(written->model_id));
  EXPECT_EQ(hex((*model)->file_id().value()), hex(written->file_id));
  EXPECT_EQ((*model)->misaligned_tensors(), 0u);
  const auto vocab = (*model)->vocab();
  ASSERT_TRUE(vocab.has_value()) << vocab.error().text();
  ASSERT_EQ((*vocab)->tokens.size(), 6u);
  EXPECT_EQ((*vocab)->tokens[5], "\u0120");
  EXPECT_EQ((*vocab)->merges[1], "b");
  EXPECT_EQ((*vocab)->special, (std::vector<std::int32_t>{0, 1}));
  EXPECT_TRUE((*model)->verify().has_value());
}

TEST(Writer, SameDraftSameBytes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_model(folder / "a", example_draft()).has_value());
  ASSERT_TRUE(write_model(folder / "b", example_draft()).has_value());
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

TEST(Writer, EmptyTensorsAndUnevenSizes) {
  const TemporaryFolder folder;
  ModelDraft draft = example_draft();
  draft.tensors.push_back(test::repeated_tensor("extra.empty", DType::kF32, {0, 7}));
  draft.tensors.push_back(test::repeated_tensor("extra.odd", DType::kF16, {5, 3}));
  draft.tensors.push_back(test::repeated_tensor("extra.last", DType::kQ8, {0, 32}));
  const auto written = write_model(folder / "m", draft);
  ASSERT_TRUE(written.has_value()) << written.error().text();
  const auto model = Model::open(folder / "m", {.verify_weights = true});
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ((*model)->find_tensor("extra.odd")->size_bytes, 30u);
  EXPECT_TRUE((*model)->tensor_bytes(*(*model)->find_tensor("extra.empty")).empty());
}

TEST(WriterRefuses, F06BodyLineThatLooksLikeADelimiter) {
  ModelDraft draft = example_draft();
  draft.card = "# one\n\n~~~python\nx\n~~~\n";
  EXPECT_EQ(error_of(draft), "F06 card: body line 3 starts with \"~~~\"");
  draft.card = "~~~";
  EXPECT_EQ(error_of(draft), "F06 card: body line 1 starts with \"~~~\"");
  draft.card.clear();
  draft.program = "a\n~~~b\n";
  EXPECT_EQ(error_of(draft), "F06 program: body line 2 starts with \"~~~\"");
}

TEST(WriterRefuses, F42NonFiniteWeights) {
  const float inf = std::numeric_limits<float>::infinity();
  ModelDraft draft = example_draft();
  draft.tensors[1] =
      test::repeated_tensor(draft.tensors[1].name, DType::kF32, {32}, test::f32_bytes(inf));
  EXPECT_EQ(error_of(draft),
            "F42 tensor \"model.layers.0.input_layernorm.weight\": non-finite value at element 0");
  // Every float and block format, one bad block at a time, handed over in odd pieces.
  struct Row {
    DType dtype;
    std::size_t offset;
    std::uint16_t bits;
  };
  for (const Row& row :
       {Row{DType::kF16, 0, 0x7C00}, Row{DType::kBf16, 0, 0xFF80}, Row{DType::kQ8, 0, 0x7E00},
        Row{DType::kQ4, 0, 0xFC00}, Row{DType::kQ4_1, 2, 0x7C00}, Row{DType::kQ5_0, 0, 0x7C00},
        Row{DType::kQ5_1, 2, 0x7C01}, Row{DType::kQ2k, 82, 0x7C00}, Row{DType::kQ3k, 108, 0x7C00},
        Row{DType::kQ4k, 2, 0x7C00}, Row{DType::kQ5k, 0, 0x7C00}, Row{DType::kQ6k, 208, 0x7C00}}) {
    const FormatInfo& format = format_info(row.dtype);
    const std::int64_t columns = 4 * static_cast<std::int64_t>(format.block_values);
    std::vector<std::byte> bytes(8 * format.block_bytes);
    std::memcpy(bytes.data() + 5 * format.block_bytes + row.offset, &row.bits, 2);
    draft.tensors[1] = {draft.tensors[1].name, row.dtype, Shape{2, columns},
                        [bytes](const ByteSink& sink) -> Result<void> {
                          for (std::size_t at = 0; at < bytes.size(); at += 7) {
                            CYB_TRY(sink(std::span(bytes).subspan(
                                at, std::min<std::size_t>(7, bytes.size() - at))));
                          }
                          return {};
                        }};
    EXPECT_EQ(error_of(draft),
              "F42 tensor \"model.layers.0.input_layernorm.weight\": non-finite value at element " +
                  std::to_string(5 * format.block_values))
        << format.name;
  }
}

TEST(WriterRefuses, WhatAReaderWouldRefuse) {
  const std::string name = "model.layers.0.input_layernorm.weight";
  ModelDraft draft = example_draft();
  const auto with = [&](DType dtype, const Shape& shape) {
    ModelDraft changed = example_draft();
    changed.tensors[1].dtype = dtype;
    changed.tensors[1].shape = shape;
    return error_of(changed);
  };
  EXPECT_EQ(with(DType::kQ8, {32}), "F29 tensor \"" + name + "\": encoding q8 needs rank >= 2");
  EXPECT_EQ(with(DType::kQ4k, {2, 576}),
            "F22 tensor \"" + name + "\": last dimension 576 is not a multiple of 256 (q4k)");
  EXPECT_EQ(with(DType::kF32, {1, 1, 1, 1, 1, 1}),
            "F20 tensor \"" + name + "\": shape [1, 1, 1, 1, 1, 1]: rank > 5");
  EXPECT_EQ(with(DType::kF32, {-1}), "F20 tensor \"" + name + "\": shape [-1]: negative dimension");
  EXPECT_EQ(with(DType::kF32, {1LL << 32, 1LL << 32}),
            "F20 tensor \"" + name + "\": shape [4294967296, 4294967296]: overflow");
  EXPECT_EQ(with(DType::kF32, {16}).substr(0, 4), "Weig") << "fewer bytes declared than produced";
  EXPECT_EQ(with(DType::kF32, {64}),
            "WeightFormatMismatch tensor \"" + name + "\" is declared f32 [64] but has 128 bytes");
  EXPECT_EQ(with(DType::kTernary, {8, 64}),
            "F28 tensor \"" + name + "\": ternary needs \"" + name + ".scale\" f32 [1] or [8]");
  draft.tensors[1].name = draft.tensors[0].name;
  EXPECT_EQ(error_of(draft), "F09 duplicate key \"model.embed_tokens.weight\"");
  draft = example_draft();
  draft.config.table("architecture").set("vocab_size", 7);
  EXPECT_EQ(error_of(draft).substr(0, 4), "F33 ");
  draft = example_draft();
  draft.config.table("architecture").set("tie_word_embeddings", false);
  EXPECT_EQ(error_of(draft), "F32 model_type llama: missing tensor \"lm_head.weight\"");
  draft = example_draft();
  draft.vocab.tokens.push_back("c");
  EXPECT_EQ(error_of(draft), "F34 vocab: 7 tokens, config says 6");
  draft = example_draft();
  draft.config.erase("model_type");
  EXPECT_EQ(error_of(draft), "F31 config: model_type: missing");
  draft = example_draft();
  draft.vocab.tokens = {};
  for (const char* token : {"a", "b", "\xFF", "d", "e", "f"}) draft.vocab.tokens.push_back(token);
  EXPECT_EQ(error_of(draft), "F05 vocab: token 2: invalid UTF-8");
  draft = example_draft();
  draft.name = "../x";
  EXPECT_EQ(error_of(draft),
            "InvalidInput input: model name \"../x\": want 1 to 128 of A-Z a-z 0-9 . _ -");
}

TEST(WriterRefuses, AGraphThatIsNotValid) {
  ModelDraft draft = example_draft();
  draft.graph_hex = "00";
  EXPECT_EQ(error_of(draft), "G01 graph: not a CYIR v1 graph");
  const std::string nodes =
      "version = 1\nsymbols = [\"B\", \"S\"]\noutputs = [\"y\"]\n[[inputs]]\nname = \"ids\"\ndtype "
      "= \"i32\"\n"
      "shape = [\"B\", \"S\"]\n[[nodes]]\nid = 0\nop = \"TokenEmbed\"\nin = [\"ids\", \"";
  const auto graph = [&](const std::string& weight) {
    return graph_to_hex(
        encode_graph(parse_graph_toml(nodes + weight + "\"]\nout = [\"y\"]\n").value()));
  };
  draft.graph_hex = graph("model.embed.weight");
  EXPECT_EQ(
      error_of(draft),
      "G08 graph: node 0: \"model.embed.weight\" is not an input, an earlier output or a weight");
  draft.graph_hex = graph("model.embed_tokens.weight");
  const TemporaryFolder folder;
  const auto written = write_model(folder / "m", draft);
  ASSERT_TRUE(written.has_value()) << written.error().text();
  const auto model = Model::open(folder / "m");
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_TRUE((*model)->verify().has_value());
  EXPECT_EQ((*model)->graph()->nodes.size(), 1u);
}

TEST(WriterRefuses, CancelledLeavesNothing) {
  std::stop_source source;
  WriteOptions options;
  options.stop = source.get_token();
  std::uint64_t reports = 0;
  options.progress = [&](const WriteProgress& progress) {
    EXPECT_LE(progress.bytes_done, progress.bytes_total);
    if (++reports == 3) source.request_stop();
  };
  EXPECT_EQ(error_of(example_draft(), options).substr(0, 9), "Cancelled");
}

TEST(Writer, ProgressEndsAtTheTotal) {
  const TemporaryFolder folder;
  std::uint64_t done = 0, total = 1;
  WriteOptions options;
  options.progress = [&](const WriteProgress& progress) {
    EXPECT_GE(progress.bytes_done, done);
    done = progress.bytes_done;
    total = progress.bytes_total;
  };
  ASSERT_TRUE(write_model(folder / "m", example_draft(), options).has_value());
  EXPECT_EQ(done, total);
}

}  // namespace
}  // namespace cyb
