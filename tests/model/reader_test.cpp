// The reader: one file per way to be refused, hostile sizes, hostile shapes, and what a valid file
// says. The files under golden/model/bad come from golden/make/model_bad.py, a writer of its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "model/model.hpp"
#include "model/temporary_folder.hpp"
#include "model/vocab_text.hpp"
#include "support/example_model.hpp"
#include "support/peak_memory.hpp"

namespace cyb {
namespace {

const std::string kGolden = std::string(CYB_TESTS_DIR) + "/golden/model/";

/// Everything that can be found wrong with a file.
Result<void> check_all(const std::string& path) {
  CYB_ASSIGN(const std::shared_ptr<const Model> model, Model::open(path));
  return model->verify();
}

nlohmann::json expectations() {
  std::ifstream in(kGolden + "bad/expected.json");
  return nlohmann::json::parse(in);
}

class BadFile : public testing::TestWithParam<std::string> {};

TEST_P(BadFile, IsRefusedWithItsCodeAndText) {
  const nlohmann::json want = expectations().at(GetParam());
  const std::string path = kGolden + "bad/" + GetParam() + ".model";
  const auto result = check_all(path);
  ASSERT_FALSE(result.has_value()) << "accepted";
  EXPECT_EQ(result.error().code(), want.at("code").get<std::string>()) << result.error().text();
  EXPECT_EQ(result.error().kind(), ErrorKind::kFormat);
  const std::string text = path + ": " + want.at("text").get<std::string>();
  if (want.at("prefix").get<bool>()) {
    EXPECT_TRUE(result.error().text().starts_with(text)) << result.error().text();
    EXPECT_GT(result.error().text().size(), text.size());
  } else {
    EXPECT_EQ(result.error().text(), text);
  }
}

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  const nlohmann::json expected = expectations();
  for (const auto& item : expected.items()) names.push_back(item.key());
  return names;
}

INSTANTIATE_TEST_SUITE_P(FCodes, BadFile, testing::ValuesIn(bad_files()), [](const auto& row) {
  std::string name = row.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

TEST(BadFiles, EveryCodeOfTheReaderHasOne) {
  std::set<std::string> codes;
  for (const auto& item : expectations()) codes.insert(item.at("code").get<std::string>());
  for (const char* code :
       {"F01", "F02", "F03", "F04", "F05", "F07", "F08", "F09", "F10", "F11", "F12",
        "F13", "F20", "F21", "F22", "F23", "F24", "F25", "F26", "F27", "F28", "F29",
        "F30", "F31", "F32", "F33", "F34", "F35", "F40", "F41", "F42", "F50"}) {
    EXPECT_TRUE(codes.contains(code)) << code;
  }
}

TEST(GoodFile, OfTheOtherWriterIsAccepted) {
  const auto model = Model::open(kGolden + "good.model");
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_TRUE((*model)->verify().has_value());
  EXPECT_EQ((*model)->name(), "bad");
  EXPECT_EQ((*model)->card(), "# bad\n");
  EXPECT_EQ((*model)->tensors().size(), 2u);
  EXPECT_EQ((*model)->chat(), nullptr);
  EXPECT_FALSE((*model)->has_graph());
  EXPECT_EQ((*model)->graph().error().code(), "F10");
}

/// Bytes of a valid file, to be changed by a test. Aligned to 64.
class Sample {
 public:
  explicit Sample(const ModelDraft& draft = test::documented_example()) {
    const test::TemporaryFolder folder;
    EXPECT_TRUE(write_model(folder / "m", draft).has_value());
    std::ifstream in(folder / "m", std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  void replace(std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text)); }
  std::string error(const ModelOptions& options = {}) const {
    const auto model = Model::parse(bytes(), options);
    return model ? "" : model.error().code() + " " + model.error().text();
  }

  std::string text;
};

TEST(Reader, EveryCutOfAFileIsRefused) {
  Sample sample;
  const std::string whole = sample.text;
  for (std::size_t size = 0; size < whole.size(); size += size < 4200 ? 1 : 997) {
    sample.text = whole.substr(0, size);
    EXPECT_NE(sample.error(), "") << size;
  }
}

TEST(Reader, TextLimit) {
  const Sample sample;
  EXPECT_EQ(sample.error({.text_limit_bytes = 4096}), "");
  EXPECT_EQ(sample.error({.text_limit_bytes = 4095}).substr(0, 3), "F07");
  EXPECT_EQ(sample.error({.text_limit_bytes = 2000}), "F10 missing part \"vocab\"");
  EXPECT_EQ(sample.error({.text_limit_bytes = 100}),
            "F01 not a .model file: no \"~~~\" line in the first 100 bytes");
}

TEST(Reader, UnknownTextPartsAndKeysAreKept) {
  Sample sample;
  sample.replace(
      "[[files]]\nname = \"eval\"",
      "[[files]]\nname = \"notes\"\nformat = \"any\"\nx = [1]\n\n[[files]]\nname = \"eval\"");
  sample.replace("~~~eval\n", "~~~notes\n[not toml\n~~~eval\n");
  sample.replace("format_version = 3\n", "format_version = 3\nfuture = {a = 1}\n");
  ASSERT_EQ(sample.error(), "");
  const auto model = Model::parse(sample.bytes());
  EXPECT_EQ((*model)->frontmatter().integer("cyb.future.a").value(), 1);
}

TEST(Reader, TextPartsInAnotherOrder) {
  Sample sample;
  sample.replace("name = \"card\"\nformat = \"md\"", "name = \"eval\"\nformat = \"toml\"");
  sample.replace("name = \"eval\"\nformat = \"toml\"\n\n[[files]]\nname = \"pad\"",
                 "name = \"card\"\nformat = \"md\"\n\n[[files]]\nname = \"pad\"");
  EXPECT_EQ(sample.error(), "F07 unexpected part \"card\": [[files]] expects \"eval\"");
  const std::size_t card = sample.text.find("~~~card\n");
  const std::size_t config = sample.text.find("~~~config\n");
  const std::string body = sample.text.substr(card, config - card);
  sample.text.erase(card, body.size());
  sample.replace("~~~eval\n", "");
  sample.text.insert(card, "~~~eval\n");
  sample.text.insert(sample.text.find("~~~pad\n"), body);
  EXPECT_EQ(sample.error(), "");
}

TEST(Reader, UnalignedWeightsAreCopiedAndCounted) {
  Sample sample;
  sample.replace("~~~pad\n ", "~~~pad\n");
  const auto moved = Model::parse(sample.bytes());
  ASSERT_TRUE(moved.has_value()) << moved.error().text();
  const Sample original;
  const auto model = Model::parse(original.bytes());
  std::size_t misaligned = 0;
  for (std::size_t i = 0; i < (*moved)->tensors().size(); ++i) {
    const auto bytes = (*moved)->tensor_bytes((*moved)->tensors()[i]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
    EXPECT_TRUE(std::ranges::equal(bytes, (*model)->tensor_bytes((*model)->tensors()[i])));
    const std::size_t at = reinterpret_cast<std::uintptr_t>(sample.text.data()) +
                           sample.text.size() - (*moved)->weights_bytes() +
                           (*moved)->tensors()[i].offset;
    misaligned += at % 64 != 0 ? 1 : 0;
  }
  EXPECT_EQ((*moved)->misaligned_tensors(), misaligned);
  // Another pad is another file, not another model.
  EXPECT_EQ(hex((*moved)->computed_model_id().value()), hex((*model)->computed_model_id().value()));
  EXPECT_NE(hex((*moved)->file_id().value()), hex((*model)->file_id().value()));
}

TEST(Reader, LegacyEncodings) {
  Sample sample;
  sample.replace("format_version = 3\n", "");
  EXPECT_EQ(sample.error().substr(0, 3), "F04");
  sample.replace("encoding = \"f32\"", "encoding = \"u32\"");
  const auto ieee = Model::parse(sample.bytes(), {.legacy_encodings = LegacyEncodings::kIeee});
  ASSERT_TRUE(ieee.has_value()) << ieee.error().text();
  EXPECT_EQ((*ieee)->tensors()[0].dtype, DType::kF32);
  EXPECT_EQ(sample.error({.legacy_encodings = LegacyEncodings::kFixed}),
            "NotBuilt reading q8 of tensor \"model.layers.0.self_attn.q_proj.weight\" with "
            "--legacy-encodings=fixed is not built yet");
  // A file that states its version is never read by the old meanings.
  Sample today;
  today.replace("encoding = \"f32\"", "encoding = \"u32\"");
  EXPECT_EQ(today.error({.legacy_encodings = LegacyEncodings::kIeee}).substr(0, 3), "F23");
}

TEST(Reader, LegacyConfigConventions) {
  Sample sample;
  sample.replace("rms_norm_eps = 1e-5", "rms_norm_eps = 100000");
  sample.replace(
      "[sampling]\nmethod = \"greedy\"\n",
      "[sampling]\nmethod = \"chain\"\nscale = 1000\ntemperature = 700\ntop_k = 40000\n");
  sample.replace("eos_token_ids = [1]", "eos_id = 1");
  ASSERT_EQ(sample.error(), "");
  const auto model = Model::parse(sample.bytes());
  const ConfigTable& config = (*model)->config();
  EXPECT_EQ(config.number("architecture.rms_norm_eps").value(), 1e-5);
  EXPECT_EQ(config.number("sampling.temperature").value(), 0.7);
  EXPECT_EQ(config.integer("sampling.top_k").value(), 40);
  EXPECT_EQ(config.at("sampling.scale"), nullptr);
  EXPECT_EQ(config.integers_or_empty("tokenizer.eos_token_ids").value(),
            std::vector<std::int64_t>{1});
}

TEST(Reader, TextPartsAreCheckedWithoutReadingWeights) {
  ModelDraft draft = test::example_draft();
  Sample sample(draft);
  ASSERT_EQ(sample.error(), "");
  Sample config = sample;
  config.replace("rope_theta = 10000.0", "rope_theta = 20000.0");
  EXPECT_EQ(config.error().substr(0, 22), "F40 model id mismatch:");
  Sample vocab = sample;
  vocab.replace("3 = \"b\"", "3 = \"c\"");
  EXPECT_EQ(vocab.error().substr(0, 3), "F40");
  Sample card = sample;
  card.replace("One-layer", "Two-layer");
  EXPECT_EQ(card.error(), "") << "the card is outside the identity";
  Sample weights = sample;
  weights.text.back() = '\x40';
  EXPECT_EQ(weights.error(), "") << "weights are only read on demand";
  EXPECT_EQ(weights.error({.verify_weights = true}),
            "F41 tensor \"model.norm.weight\": hash mismatch");
}

TEST(Reader, WeightsAreCheckedAgainstTheModelId) {
  Sample sample;  // no tensor hashes
  sample.text.back() = '\x3F';
  sample.text[sample.text.size() - 2] = '\x00';
  EXPECT_EQ(sample.error(), "");
  EXPECT_EQ(sample.error({.verify_weights = true}).substr(0, 3), "F40");
}

TEST(Reader, VerifyIsCancelled) {
  const Sample sample;
  const auto model = Model::parse(sample.bytes());
  std::stop_source source;
  source.request_stop();
  const auto result = (*model)->verify(source.get_token());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
}

TEST(Reader, MissingFileIsIo) {
  const auto model = Model::open(kGolden + "nothing.model");
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().kind(), ErrorKind::kIo);
}

/// Refused, quickly and without memory out of proportion.
void expect_cheap_refusal(const Sample& sample, std::string_view code) {
  const std::int64_t before = test::reset_peak();
  ASSERT_GT(before, 0);
  const auto model = Model::parse(sample.bytes());
  const auto vocab = model ? (*model)->vocab() : Result<const VocabData*>(nullptr);
  const std::int64_t grown = test::peak_kib() - before;
  ASSERT_TRUE(!model || !vocab) << "accepted";
  EXPECT_EQ((model ? vocab.error() : model.error()).code(), code);
  EXPECT_LT(grown, test::kRefusalPeakKib);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(ReaderHostile, SmallMemoryForARefusedFile) {
  const auto with = [](std::string_view from, const std::string& to) {
    Sample sample;
    sample.replace(from, to);
    return sample;
  };
  expect_cheap_refusal(with("license = \"CC0-1.0\"", "x = [" + repeated("1,", 4000000) + "]"),
                       "F02");
  expect_cheap_refusal(with("license = \"CC0-1.0\"", "x = " + repeated("[", 4000000)), "F02");
  expect_cheap_refusal(with("[sampling]", "[" + repeated("a.", 2000000) + "a]"), "F02");
  expect_cheap_refusal(with("[sampling]", repeated("a={b=", 1000000)), "F02");
  expect_cheap_refusal(with("shape = [32]", "shape = [" + repeated("1,", 4000000) + "]"), "F20");
  expect_cheap_refusal(with("shape = [32]", "x = " + repeated("[", 4000000)), "F02");
  expect_cheap_refusal(with("ids = [0, 1]", "ids = [" + repeated("0,", 100000) + "9999999]"),
                       "F02");
  expect_cheap_refusal(with("5 = ", "4194303 = "), "F34");
  expect_cheap_refusal(with("[[files]]", repeated("[[files]]\n", 50000) + "[[files]]"), "F31");
}

TEST(Vocab, ArbitraryOrderQuotesAndEscapes) {
  const auto vocab = read_vocab(
      "# comment\n[special]\nids = [ 2,\n  0, # x\n]\n[tokens]\n\"2\" = 'lit\\eral'\n0 = "
      "\"\\t\\\"\\u00e9\\U0001f600\"\n"
      "1 = \"\\u0000\\n\" # tail\n[scores]\n2 = -1\n0 = 1.5\n1 = +2e3\n[types]\n1 = 3\n[future]\nx "
      "= {a = [1, {b = \"]\"}]}\n",
      3);
  ASSERT_TRUE(vocab.has_value()) << vocab.error().text();
  EXPECT_EQ(vocab->tokens[0], "\t\"\u00e9\U0001f600");
  EXPECT_EQ(vocab->tokens[1], std::string_view("\0\n", 2));
  EXPECT_EQ(vocab->tokens[2], "lit\\eral");
  EXPECT_EQ(vocab->scores, (std::vector<float>{1.5F, 2000.0F, -1.0F}));
  EXPECT_EQ(vocab->types[0], TokenType::kNormal);
  EXPECT_EQ(vocab->types[1], TokenType::kControl);
  EXPECT_EQ(vocab->special, (std::vector<std::int32_t>{2, 0}));
}

TEST(Vocab, NormalTypesAreNotWrittenButKept) {
  VocabData in;
  in.tokens.push_back("a");
  in.tokens.push_back("b");
  in.types = {TokenType::kNormal, TokenType::kNormal};
  EXPECT_EQ(write_vocab(in).value(), "[tokens]\n0 = \"a\"\n1 = \"b\"\n\n[types]\n");
  EXPECT_EQ(read_vocab(write_vocab(in).value(), 2)->types, in.types);
  in.types[1] = TokenType::kByte;
  EXPECT_EQ(write_vocab(in).value(), "[tokens]\n0 = \"a\"\n1 = \"b\"\n\n[types]\n1 = 6\n");
  EXPECT_EQ(read_vocab(write_vocab(in).value(), 2)->types, in.types);
  in.types.clear();
  EXPECT_TRUE(read_vocab(write_vocab(in).value(), 2)->types.empty());
}

TEST(Vocab, WritesAndReadsBackAnything) {
  VocabData in;
  for (std::uint32_t c = 1; c < 0x3000; c += 7) {
    std::string text = "x";
    text += static_cast<char>(c % 127);
    if (c >= 0x80) {
      const char bytes[] = {static_cast<char>(0xE0 | (c >> 12)),
                            static_cast<char>(0x80 | ((c >> 6) & 63)),
                            static_cast<char>(0x80 | (c & 63))};
      if (c >= 0x800) text.append(bytes, 3);
    }
    in.tokens.push_back(text);
    in.scores.push_back(-0.1F * static_cast<float>(c));
    in.types.push_back(static_cast<TokenType>(1 + c % 6));
  }
  const auto text = write_vocab(in);
  ASSERT_TRUE(text.has_value()) << text.error().text();
  EXPECT_TRUE(
      std::ranges::all_of(*text, [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); }));
  const auto out = read_vocab(*text, in.tokens.size());
  ASSERT_TRUE(out.has_value()) << out.error().text();
  for (std::size_t i = 0; i < in.tokens.size(); ++i) EXPECT_EQ(out->tokens[i], in.tokens[i]);
  EXPECT_EQ(out->scores, in.scores);
  EXPECT_EQ(out->types, in.types);
}

}  // namespace
}  // namespace cyb
