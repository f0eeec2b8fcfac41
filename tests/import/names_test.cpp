// Name patterns and tables.
#include "import/names.hpp"

#include <gtest/gtest.h>

namespace cyb {
namespace {

TEST(Names, PatternsMatchWholeNamesOnly) {
  EXPECT_EQ(match_name("blk.{i}.attn_q.weight", "blk.12.attn_q.weight"), 12u);
  EXPECT_EQ(match_name("output.weight", "output.weight"), 0u);
  EXPECT_FALSE(match_name("blk.{i}.attn_q.weight", "blk.012.attn_q.weight"));
  EXPECT_FALSE(match_name("blk.{i}.attn_q.weight", "blk..attn_q.weight"));
  EXPECT_FALSE(match_name("blk.{i}.attn_q.weight", "blk.-1.attn_q.weight"));
  EXPECT_FALSE(match_name("blk.{i}.attn_q.weight", "blk.+1.attn_q.weight"));
  EXPECT_FALSE(match_name("blk.{i}.attn_q.weight", "blk.1.attn_q.weight "));
  EXPECT_FALSE(match_name("blk.{i}.attn_q.weight", "blk.99999999999.attn_q.weight"));
}

TEST(Names, TablesTranslateBothWays) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const auto table = gguf_names(architecture);
    ASSERT_FALSE(table.empty());
    for (const NameRow& row : table) {
      const std::string theirs = fill_name(row.gguf, 7), ours = fill_name(row.canonical, 7);
      EXPECT_EQ(canonical_name(table, theirs), ours);
      EXPECT_EQ(gguf_name(table, ours), theirs);
    }
  }
  EXPECT_TRUE(gguf_names("quasar").empty());
}

TEST(Names, OptionalLayerTensorsAreEverywhereOrNowhere) {
  constexpr NameRow rows[] = {{"a.{i}", "x.{i}", NameNeed::kRequired},
                              {"b.{i}", "y.{i}", NameNeed::kOptional}};
  EXPECT_TRUE(check_presence(rows, 2, {"x.0", "x.1"}, "t", true));
  EXPECT_TRUE(check_presence(rows, 2, {"x.0", "x.1", "y.0", "y.1"}, "t", true));
  const auto part = check_presence(rows, 2, {"x.0", "x.1", "y.1"}, "t", true);
  ASSERT_FALSE(part);
  EXPECT_NE(part.error().text().find("\"b.0\""), std::string::npos);
  const auto missing = check_presence(rows, 2, {"x.0"}, "t", false);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), "F32");
  EXPECT_NE(missing.error().text().find("\"x.1\""), std::string::npos);
}

TEST(Names, FileOrderFollowsTheForwardPass) {
  const char* const order[] = {"model.embed_tokens.weight",
                               "cyb.pos.rope_factors",
                               "model.layers.0.input_layernorm.weight",
                               "model.layers.0.self_attn.q_proj.weight",
                               "model.layers.0.self_attn.q_proj.bias",
                               "model.layers.0.mlp.down_proj.weight",
                               "model.layers.2.input_layernorm.weight",
                               "model.layers.10.input_layernorm.weight",
                               "model.norm.weight",
                               "lm_head.weight"};
  for (std::size_t i = 1; i < std::size(order); ++i)
    EXPECT_LT(file_order(order[i - 1]), file_order(order[i])) << order[i];
}

TEST(Names, RulesOfNames) {
  EXPECT_FALSE(name_problem("model.norm.weight"));
  EXPECT_FALSE(name_problem(std::string(65535, 'a')));
  EXPECT_TRUE(name_problem(""));
  EXPECT_TRUE(name_problem(std::string_view("a\0b", 3)));
  EXPECT_TRUE(name_problem("a\nb"));
  EXPECT_TRUE(name_problem("a\xff"));
  EXPECT_TRUE(name_problem("../a"));
  EXPECT_TRUE(name_problem("/a"));
}

}  // namespace
}  // namespace cyb
