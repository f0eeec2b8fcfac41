// LlamaStyle: what binds, what is refused and with which words, and the graph that its body
// records.
#include "paths/curated/llama.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "paths/curated/rope_scaling.hpp"
#include "paths/graph/record.hpp"
#include "support/fake_tensors.hpp"

namespace cyb {
namespace {

using test::FakeModel;

std::string bind_error(const FakeModel& m) {
  const auto bound = bind_llama(m.config, m.tensors);
  return bound ? "bound" : bound.error().code() + " " + bound.error().text();
}

TEST(LlamaBind, PlainModel) {
  const FakeModel m;
  const auto bound = bind_llama(m.config, m.tensors);
  ASSERT_TRUE(bound) << bound.error().text();
  EXPECT_EQ((*bound)->vocab_size(), 256u);
  EXPECT_EQ((*bound)->kv_layers().size(), 2u);
  EXPECT_TRUE((*bound)->uses_tensor("model.layers.1.mlp.up_proj.weight"));
  EXPECT_FALSE((*bound)->uses_tensor("model.layers.2.mlp.up_proj.weight"));
}

TEST(LlamaBind, MissingTensorIsF32) {
  FakeModel m;
  m.tensors.shapes.erase("lm_head.weight");
  EXPECT_EQ(bind_error(m), "F32 model_type llama: missing tensor \"lm_head.weight\"");
  m.architecture().set("tie_word_embeddings", true);
  EXPECT_EQ(bind_error(m), "bound");
}

TEST(LlamaBind, WrongShapeIsF33) {
  FakeModel m;
  m.tensors.shapes["model.layers.1.self_attn.k_proj.weight"] = Shape{64, 64};
  EXPECT_EQ(bind_error(m),
            "F33 tensor \"model.layers.1.self_attn.k_proj.weight\": shape [64, 64], config implies "
            "[32, 64]");
}

TEST(LlamaBind, ConfigValuesOutOfRangeAreNamed) {
  const auto with = [](const char* key, ConfigValue value) {
    FakeModel m;
    m.architecture().set(key, std::move(value));
    return bind_error(m);
  };
  EXPECT_NE(with("num_key_value_heads", 3).find("num_key_value_heads"), std::string::npos);
  EXPECT_NE(with("head_dim", 15).find("head_dim"), std::string::npos);
  EXPECT_NE(with("hidden_size", 0).find("hidden_size"), std::string::npos);
  EXPECT_NE(with("hidden_activation", "swish7").find("swish7"), std::string::npos);
  EXPECT_NE(with("mlp_type", "none").find("mlp_type"), std::string::npos);
  EXPECT_NE(with("parallel_block", 1).find("parallel_block"), std::string::npos);
  EXPECT_NE(with("norm_type", "batch").find("norm_type"), std::string::npos);
  EXPECT_NE(with("logits_scaling", 0.0).find("logits_scaling"), std::string::npos);
  EXPECT_NE(with("partial_rotary_factor", 0.01).find("partial_rotary_factor"), std::string::npos);
  EXPECT_NE(with("num_experts", 8).find("num_experts"), std::string::npos);
  EXPECT_NE(with("sliding_window", -1).find("sliding_window"), std::string::npos);
  EXPECT_NE(with("rms_norm_eps", 2.0).find("rms_norm_eps"), std::string::npos);
}

TEST(RopeScaling, UnknownTypeIsNamed) {
  FakeModel m;
  m.architecture().table("rope_scaling").set("type", "spiral");
  EXPECT_EQ(bind_error(m),
            "InvalidConfig config: rope_scaling.type: \"spiral\" is not known (linear, dynamic, "
            "yarn, longrope, llama3, table are)");
}

TEST(RopeScaling, KeyThatTheTypeNeedsIsDemanded) {
  FakeModel m;
  m.architecture().table("rope_scaling").set("type", "linear");
  EXPECT_NE(bind_error(m).find("architecture.rope_scaling.factor"), std::string::npos);
}

// Published values for Llama 3.2 (head 64, factor 32) and Llama 3.1 (head 128, factor 8), theta
// 5e5, original 8192.
TEST(RopeScaling, Llama3BandsAsPublished) {
  FakeModel m;
  ConfigTable& s = m.architecture().table("rope_scaling");
  s.set("type", "llama3");
  s.set("factor", 32.0);
  s.set("low_freq_factor", 1.0);
  s.set("high_freq_factor", 4.0);
  s.set("original_max_position_embeddings", 8192);
  const auto scaling = read_rope_scaling(m.config, m.tensors, 5e5, 64);
  ASSERT_TRUE(scaling) << scaling.error().text();
  const std::vector<float>& f = scaling->frequencies;
  ASSERT_EQ(f.size(), 32u);
  // The results are f32: half a unit in the last place is 6e-8 of the value.
  const auto expect_f32 = [](float got, double want) { EXPECT_NEAR(got, want, 6e-8 * want); };
  expect_f32(f[14], 3.211445995e-3);
  expect_f32(f[15], 1.290547928e-3);
  expect_f32(f[31], 9.418306725e-8);
  const auto bands = [](const std::vector<float>& scaled, double factor, int dim) {
    std::array<int, 3> count{};
    for (std::size_t j = 0; j < scaled.size(); ++j) {
      const double plain = std::pow(5e5, -2.0 * static_cast<double>(j) / dim);
      const double ratio = static_cast<double>(scaled[j]) / plain;
      ++count[std::abs(ratio - 1) < 1e-6 ? 0 : std::abs(ratio * factor - 1) < 1e-6 ? 2 : 1];
    }
    return count;
  };
  EXPECT_EQ(bands(f, 32, 64), (std::array{15, 3, 14}));
  s.set("factor", 8.0);
  const auto g = read_rope_scaling(m.config, m.tensors, 5e5, 128);
  ASSERT_TRUE(g);
  EXPECT_EQ(bands(g->frequencies, 8, 128), (std::array{29, 6, 29}));
}

TEST(RopeScaling, TableDividesByStoredFactors) {
  FakeModel m;
  m.architecture().table("rope_scaling").set("type", "table");
  EXPECT_NE(bind_error(m).find("cyb.pos.rope_factors"), std::string::npos)
      << "the tensor is needed";
  m.tensors.shapes["cyb.pos.rope_factors"] = Shape{8};
  const auto f = read_rope_scaling(m.config, m.tensors, 1e4, 16);
  ASSERT_TRUE(f);
  EXPECT_FLOAT_EQ(f->frequencies[0], 0.5f);
  const auto bound = bind_llama(m.config, m.tensors);
  ASSERT_TRUE(bound);
  EXPECT_TRUE((*bound)->uses_tensor("cyb.pos.rope_factors"));
}

std::vector<OpTag> layer_ops(const Graph& graph, const std::string& layer) {
  std::vector<OpTag> tags;
  bool inside = false;
  for (const GraphNode& node : graph.nodes) {
    const auto reads = [&](const std::string& name) {
      return std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end();
    };
    if (reads(layer + "input_layernorm.weight")) inside = true;
    if (inside) tags.push_back(node.op.tag);
    if (reads(layer + "mlp.down_proj.weight")) inside = false;
  }
  return tags;
}

TEST(Record, LayerIsMadeOfThePlainOpsOfTheSpec) {
  const FakeModel m;
  const auto graph = record_graph(m.config, m.tensors);
  ASSERT_TRUE(graph) << graph.error().text();
  EXPECT_EQ(graph->outputs, std::vector<std::string>{"logits"});
  ASSERT_EQ(graph->inputs.size(), 2u);
  EXPECT_EQ(graph->inputs[0].name, "ids");
  EXPECT_EQ(graph->inputs[1].name, "pos");
  const auto tags = layer_ops(*graph, "model.layers.1.");
  const auto count = [&](OpTag tag) { return std::count(tags.begin(), tags.end(), tag); };
  EXPECT_EQ(count(OpTag::kRmsNorm), 2);
  EXPECT_EQ(count(OpTag::kMatmul), 7);
  EXPECT_EQ(count(OpTag::kRope), 2);
  EXPECT_EQ(count(OpTag::kKvCache), 1);
  EXPECT_EQ(count(OpTag::kSdpa), 1);
  EXPECT_EQ(count(OpTag::kSilu), 1);
  EXPECT_EQ(count(OpTag::kMul), 1);
  for (const GraphNode& node : graph->nodes) {
    EXPECT_FALSE(op_info(node.op.tag).fused) << op_info(node.op.tag).name;
  }
  const WeightLookup weights = [&](std::string_view name) { return m.tensors.find(name); };
  const auto types = validate_graph(*graph, weights);
  ASSERT_TRUE(types) << types.error().text();
  EXPECT_TRUE(types->dead_nodes.empty());
}

TEST(Record, SameModelSameBytes) {
  const FakeModel m;
  const auto a = record_graph(m.config, m.tensors), b = record_graph(m.config, m.tensors);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(encode_graph(*a), encode_graph(*b));
}

TEST(Record, UnknownTypeIsD2) {
  FakeModel m;
  m.config.set("model_type", "mamba");
  const auto graph = record_graph(m.config, m.tensors);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code(), "D2");
  EXPECT_EQ(graph.error().text(), "model_type mamba has no curated codepath");
}

}  // namespace
}  // namespace cyb
