// Verification covers the file: every byte of a model, flipped, is found, or lies in a part that
// the format leaves out of a model's identity.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "model/temporary_folder.hpp"
#include "support/example_model.hpp"

namespace cyb {
namespace {

/// The example with every part that the writer can write.
std::vector<std::byte> example_bytes(bool tensor_hashes) {
  const test::TemporaryFolder folder;
  ModelDraft draft = test::example_draft();
  draft.tensor_hashes = tensor_hashes;
  draft.lineage.set("source", "example");
  draft.program = "// nothing\n";
  ConfigTable chat;
  chat.set("format", "chatml");
  draft.chat = std::move(chat);
  draft.eval = "[scores.own]\nscore = 724\n";
  const std::string path = folder / "m.model";
  EXPECT_TRUE(write_model(path, draft));
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string read = text.str();
  const auto raw = std::as_bytes(std::span(read.data(), read.size()));
  return {raw.begin(), raw.end()};
}

bool passes(std::span<const std::byte> bytes) {
  const auto model = Model::parse(bytes);
  return model && (*model)->verify();
}

/// "frontmatter", "weights", the part of each text byte, or "~~~" for delimiter lines.
std::vector<std::string> regions(std::string_view text, std::size_t weights_at) {
  std::vector<std::string> out(text.size(), "weights");
  std::string part = "frontmatter";
  for (std::size_t at = 0; at < weights_at;) {
    const std::size_t end = text.find('\n', at) + 1;
    const bool mark = text.substr(at).starts_with("~~~");
    if (mark) part = text.substr(at + 3, end - at - 4);
    for (std::size_t i = at; i < end; ++i) out[i] = mark ? "~~~" : part;
    at = end;
  }
  return out;
}

class Flips : public testing::TestWithParam<bool> {};

TEST_P(Flips, EveryByteIsCheckedOrOutsideTheIdentity) {
  std::vector<std::byte> bytes = example_bytes(GetParam());
  ASSERT_TRUE(passes(bytes));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view kWeights = "\n~~~weights\n";
  const std::size_t weights_at = text.find(kWeights) + kWeights.size();
  const std::vector<std::string> region = regions(text, weights_at);
  std::set<std::string> missed;
  for (std::size_t at = 0; at < bytes.size(); at += at < weights_at ? 1 : 5) {
    const unsigned last = at < weights_at ? 8 : 1;
    for (unsigned bit = 0; bit < last; ++bit) {
      const std::byte mask{static_cast<unsigned char>(1u << (at < weights_at ? bit : at % 8))};
      bytes[at] ^= mask;
      if (passes(bytes)) missed.insert(region[at]);
      bytes[at] ^= mask;
    }
  }
  const auto model = Model::parse(bytes);
  ASSERT_TRUE(model);
  const std::vector<std::string> outside = (*model)->outside_model_id();
  EXPECT_EQ(outside, (std::vector<std::string>{"frontmatter", "card", "eval", "pad"}));
  // The pad has one legal form, so that it is checked although it is no part of the identity.
  EXPECT_EQ(missed, (std::set<std::string>{"frontmatter", "card", "eval"}));
}

INSTANTIATE_TEST_SUITE_P(Verify, Flips, testing::Bool(), [](const auto& named) {
  return std::string(named.param ? "TensorHashes" : "ModelIdAlone");
});

TEST(Verify, SaysWhatIsWrongWithPadAndAlignment) {
  const std::vector<std::byte> good = example_bytes(true);
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string text(reinterpret_cast<const char*>(good.data()), good.size());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, to.size(), to);
    const auto model = Model::parse(std::as_bytes(std::span(text.data(), text.size())));
    if (!model) return model.error().text();
    const auto verified = (*model)->verify();
    return verified ? std::string() : verified.error().text();
  };
  EXPECT_EQ(error("~~~pad\n  ", "~~~pad\n x"),
            "pad: byte 1 is neither a space nor the final line feed");
  EXPECT_EQ(error("align = 4096", "align = 4095").substr(0, 45),
            "frontmatter: files: align: out of range: the ");
  EXPECT_EQ(error("align = 4096", "align = 2048"), "");
}

}  // namespace
}  // namespace cyb
