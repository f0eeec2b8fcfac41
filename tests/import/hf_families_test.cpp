// Hugging Face checkpoints of the LlamaStyle members: keys of single classes, keys that must be
// refused, rows and axes that move.
#include <gtest/gtest.h>

#include <cstring>

#include "import/import_support.hpp"

namespace cyb::test {
namespace {

// Keys of classes with names of their own.
TEST(HfImport, ClassesWithOtherNames) {
  struct Row {
    const char *model, *type, *key;
    double value;
  };
  for (const Row& row :
       {Row{"gpt2", "gpt2", "max_position_embeddings", 128},
        Row{"gpt2", "gpt2", "num_key_value_heads", 4},
        Row{"starcoder1", "gpt_bigcode", "num_key_value_heads", 1},
        Row{"starcoder1_mha", "gpt_bigcode", "num_key_value_heads", 4},
        Row{"starcoder2", "starcoder2", "layer_norm_eps", 1e-5},
        Row{"phi2", "phi", "partial_rotary_factor", 0.5},
        Row{"phi2_gqa", "phi", "partial_rotary_factor", 0.4},
        Row{"phi4_mini", "phi3", "partial_rotary_factor", 0.75},
        Row{"granite", "granite", "residual_multiplier", 0.22},
        Row{"granite", "granite", "attention_scale", 0.125},
        Row{"internlm2", "internlm2", "rope_theta", 1e6},
        Row{"mimo", "mimo", "rope_theta", 640000.0},
        Row{"gemma2", "gemma2", "attn_logit_softcapping", 50.0},
        Row{"llama_dynamic", "llama", "max_position_embeddings", 256},
        Row{"llama_dynamic", "llama", "rope_scaling.original_max_position_embeddings", 32}}) {
    Checkpoint checkpoint(row.model);
    const auto draft = checkpoint.import();
    ASSERT_TRUE(draft) << row.model << ": " << draft.error().text();
    EXPECT_EQ(text_at(*draft, "model_type"), row.type);
    EXPECT_EQ(number_at(*draft, std::string("architecture.") + row.key), row.value) << row.model;
  }
  Checkpoint mimo("mimo");
  ASSERT_TRUE(mimo.import());
  EXPECT_TRUE(mentions(mimo.report.skipped, "model.mtp_layers.0"));
  mimo.edit_config([](nlohmann::json& c) { c.erase("num_nextn_predict_layers"); });
  EXPECT_NE(mimo.error().find("model.mtp_layers.0"), std::string::npos);
}

// Values that move: GPT-2's transposed matrices, InternLM2's interleaved rows.
TEST(HfImport, RowsAndAxesMove) {
  const auto floats = [](std::span<const std::byte> bytes) {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  };
  Checkpoint gpt2("gpt2");
  const auto draft = gpt2.import();
  ASSERT_TRUE(draft) << draft.error().text();
  const DraftTensor* moved = find_tensor(*draft, "h.1.mlp.c_fc.weight");
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(moved->shape, (Shape{128, 64}));
  const auto got = floats(produced(*moved));
  const auto stored = recipe_weights("transformer.h.1.mlp.c_fc.weight", {64, 128});
  for (std::size_t o = 0; o < 128; ++o) {
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(got[o * 64 + i], stored[i * 128 + o]);
  }
  Checkpoint internlm2("internlm2");
  const auto other = internlm2.import();
  ASSERT_TRUE(other) << other.error().text();
  const auto k = floats(produced(*find_tensor(*other, "model.layers.0.self_attn.k_proj.weight")));
  const auto wqkv = recipe_weights("model.layers.0.attention.wqkv.weight", {128, 64});
  for (std::size_t row = 0; row < 32; ++row) {  // 2 groups of 2 q, k and v of 16 rows
    const std::size_t from = row / 16 * 64 + 32 + row % 16;
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(k[row * 64 + i], wqkv[from * 64 + i]);
  }
}

/// {key, value, part of the error}; the key is set at the top level of config.json.
struct BadKey {
  const char* model;
  const char* key;
  nlohmann::json value;
  const char* part;
};

TEST(HfImport, KeysThatChangeTheMathematicsAreRefusedByName) {
  using nlohmann::json;
  const BadKey rows[] = {
      {"llama2", "rope_scaling", {{"rope_type", "spiral"}, {"factor", 4.0}}, "spiral"},
      {"llama2",
       "rope_scaling",
       {{"rope_type", "yarn"}, {"factor", 4.0}, {"beta_mid", 3}},
       "beta_mid"},
      {"llama2", "rope_scaling", {{"rope_type", "yarn"}, {"factor", -1.0}}, "factor"},
      {"llama2", "rope_scaling", {{"type", "dynamic"}}, "factor"},
      {"llama2", "rope_scaling", {{"type", "dynamic"}, {"factor", 0.5}}, "factor"},
      {"llama2", "rope_scaling", {{"type", "longrope"}, {"factor", 4.0}}, "short_factor"},
      {"phi3",
       "rope_scaling",
       {{"type", "su"}, {"short_factor", {1.0}}, {"long_factor", {2.0}}},
       "short_factor"},
      {"phi3", "rope_scaling", {{"type", "su"}, {"short_factor", {0.0}}}, "short_factor"},
      {"phi3", "lm_head_bias", true, "lm_head_bias"},
      {"phi3", "full_attn_mod", 2, "full_attn_mod"},
      {"phi2", "qk_layernorm", true, "qk_layernorm"},
      {"phi2", "layer_norm_eps", 2.0, "layer_norm_eps"},
      {"gemma1", "use_bidirectional_attention", true, "use_bidirectional_attention"},
      {"gemma2", "final_logit_softcapping", -1.0, "final_logit_softcapping"},
      {"gemma2", "query_pre_attn_scalar", 0, "query_pre_attn_scalar"},
      {"smollm3", "no_rope_layers", {1, 0}, "no_rope_layers"},
      {"smollm3", "attention_bias", true, "q_proj.bias"},
      {"starcoder2", "mlp_type", "gated", "mlp_type"},
      {"starcoder2", "use_bias", false, "q_proj.bias"},
      {"starcoder1", "multi_query", false, "multi_query"},
      {"starcoder1", "scale_attn_by_inverse_layer_idx", true, "scale_attn_by_inverse_layer_idx"},
      {"gpt2", "add_cross_attention", true, "add_cross_attention"},
      {"gpt2", "n_head", 3, "n_head"},
      {"gpt2", "n_positions", 64, "wpe"},
      {"gpt2", "activation_function", "mish", "activation_function"},
      {"llama2", "rope_scaling", {{"type", "linear"}}, "factor"},
      {"llama2",
       "rope_scaling",
       {{"type", "linear"}, {"factor", 2.0}, {"mrope_section", {1, 2}}},
       "mrope_section"},
      {"llama3", "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, "low_freq_factor"},
      {"llama2", "partial_rotary_factor", 0.5, "partial_rotary_factor"},
      {"llama2", "quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}, "gptq"},
      {"llama2", "attn_logit_softcapping", 50.0, "attn_logit_softcapping"},
      {"llama2", "num_experts", 8, "num_experts"},
      {"llama2", "embedding_multiplier", 12.0, "embedding_multiplier"},
      {"llama2", "hidden_act", "mish", "hidden_act"},
      {"llama2", "attention_bias", true, "q_proj.bias"},
      {"llama2", "mlp_bias", true, "gate_proj.bias"},
      {"llama2", "model_type", "quasar", "quasar"},
      {"llama2", "model_type", nullptr, "model_type"},
      {"llama2", "hidden_size", "64", "hidden_size"},
      {"llama2", "num_hidden_layers", 0, "num_hidden_layers"},
      {"llama2", "num_hidden_layers", 3, "model.layers.2."},
      {"llama2", "num_hidden_layers", 1, "model.layers.1."},
      {"llama2", "num_key_value_heads", 3, "num_key_value_heads"},
      {"llama2", "vocab_size", 255, "embed_tokens"},
      {"llama2", "rms_norm_eps", 0.0, "rms_norm_eps"},
      {"llama2", "layer_types", {"full_attention", "sliding_attention"}, "layer_types"},
      {"llama2", "is_encoder_decoder", true, "is_encoder_decoder"},
      {"llama2",
       "architectures",
       {"LlamaForSequenceClassification"},
       "LlamaForSequenceClassification"},
      {"qwen2", "layer_types", {"full_attention", "linear_attention"}, "linear_attention"},
      {"qwen2", "layer_types", {"full_attention"}, "layer_types"},
      {"gemma3", "use_bidirectional_attention", true, "use_bidirectional_attention"},
      {"gemma3", "rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "default"}}, "rope_"},
      {"gemma3",
       "rope_parameters",
       {{"sliding_attention", {{"rope_type", "linear"}, {"factor", 2.0}}}},
       "sliding"},
  };
  for (const BadKey& row : rows) {
    Checkpoint checkpoint(row.model);
    checkpoint.edit_config([&row](json& c) { c[row.key] = row.value; });
    const std::string error = checkpoint.error();
    EXPECT_NE(error.find(row.part), std::string::npos)
        << row.model << " " << row.key << " = " << row.value << ": " << error;
  }
}

}  // namespace
}  // namespace cyb::test
