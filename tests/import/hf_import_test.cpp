// Hugging Face folders: the tiny checkpoints, sharding, and every way a config can say something
// that must not be missed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "import/import_support.hpp"

namespace cyb::test {
namespace {

class TinyCheckpoint : public ::testing::TestWithParam<const char*> {};

TEST_P(TinyCheckpoint, ImportsWithItsOwnBytes) {
  Checkpoint checkpoint(GetParam());
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  const auto tensors = tiny_tensors(GetParam());
  EXPECT_EQ(draft->tensors.size(), tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const DraftTensor* found = find_tensor(*draft, tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(produced(*found), tensor.bytes) << tensor.name;
  }
  const auto config = nlohmann::json::parse(read_file(checkpoint.file("config.json")));
  EXPECT_EQ(text_at(*draft, "model_type"), config["model_type"].get<std::string>());
  for (const char* key :
       {"hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers",
        "intermediate_size", "vocab_size", "max_position_embeddings", "rms_norm_eps"}) {
    EXPECT_EQ(number_at(*draft, std::string("architecture.") + key), config[key].get<double>())
        << key;
  }
  EXPECT_EQ(text_at(*draft, "tokenizer.type"), "none");
  ASSERT_EQ(checkpoint.report.stops.size(), 1u);
  EXPECT_EQ(checkpoint.report.stops[0].id, 2);
  EXPECT_TRUE(draft->graph_hex.has_value());
}

INSTANTIATE_TEST_SUITE_P(All, TinyCheckpoint,
                         ::testing::Values("llama2", "llama3", "smollm2", "mistral", "qwen2",
                                           "qwen3", "gemma3", "llama_biases", "gemma1", "gemma2",
                                           "phi3", "smollm3", "deepseek_dense", "olmo2", "granite",
                                           "yi", "phi4", "phi3_longrope", "llama_yarn"));

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

TEST(HfImport, FamiliesKeepWhatTheyAre) {
  const auto draft = [](const char* name) {
    Checkpoint checkpoint(name);
    auto out = checkpoint.import();
    if (!out) throw std::runtime_error(out.error().text());
    return std::move(*out);
  };
  const ModelDraft llama3 = draft("llama3");
  EXPECT_EQ(text_at(llama3, "architecture.rope_scaling.type"), "llama3");
  EXPECT_EQ(number_at(llama3, "architecture.rope_scaling.factor"), 8);
  EXPECT_EQ(number_at(llama3, "architecture.rope_scaling.low_freq_factor"), 1);
  EXPECT_EQ(number_at(llama3, "architecture.rope_scaling.high_freq_factor"), 4);
  EXPECT_EQ(number_at(llama3, "architecture.rope_scaling.original_max_position_embeddings"), 32);
  EXPECT_EQ(number_at(llama3, "architecture.rope_theta"), 500000);
  const ModelDraft mistral = draft("mistral");
  EXPECT_EQ(number_at(mistral, "architecture.sliding_window"), 8);
  const ModelDraft qwen2 = draft("qwen2");
  EXPECT_EQ(qwen2.config.at("architecture.sliding_window"), nullptr);
  EXPECT_EQ(number_at(qwen2, "architecture.rope_theta"), 1e6);
  const ModelDraft qwen3 = draft("qwen3");
  EXPECT_EQ(number_at(qwen3, "architecture.head_dim"), 32);
  const ModelDraft gemma3 = draft("gemma3");
  EXPECT_TRUE(flag_at(gemma3, "architecture.norm_unit_offset"));
  EXPECT_EQ(number_at(gemma3, "architecture.embedding_scale"), 8.0);
  EXPECT_EQ(number_at(gemma3, "architecture.rope_theta_full"), 1e6);
  EXPECT_EQ(number_at(gemma3, "architecture.rope_theta_sliding"), 1e4);
  EXPECT_EQ(text_at(gemma3, "architecture.hidden_activation"), "gelu_pytorch_tanh");
  EXPECT_EQ(gemma3.config.at("architecture.layer_types")->array()->size(), 6u);
}

// Case N13: the scale follows query_pre_attn_scalar, not the head size.
TEST(HfImport, AttentionScaleOfGemma) {
  Checkpoint checkpoint("gemma3");
  checkpoint.edit_config([](nlohmann::json& c) { c["query_pre_attn_scalar"] = 24; });
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(number_at(*draft, "architecture.attention_scale"), 1.0 / std::sqrt(24.0));
}

TEST(HfImport, ShardsGiveTheSameModel) {
  const TemporaryFolder folder;
  ImportOptions options;
  options.name = "same";
  ImportReport report;
  Checkpoint one("llama3"), three("llama3", 3);
  const auto a = import_model(one.path(), folder.file("a.model"), options, report);
  const auto b = import_model(three.path(), folder.file("b.model"), options, report);
  ASSERT_TRUE(a) << a.error().text();
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_EQ(a->model_id, b->model_id);
  EXPECT_EQ(report.source_format, "safetensors, 3 shards");
  const auto c =
      import_model(one.file("model.safetensors"), folder.file("c.model"), options, report);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(a->model_id, c->model_id);
}

TEST(HfImport, WrongShardsAreNamed) {
  const std::string second = "model-00002-of-00003.safetensors";
  {
    Checkpoint checkpoint("llama3", 3);
    std::filesystem::remove(checkpoint.file(second));
    EXPECT_NE(checkpoint.error().find(second), std::string::npos);
  }
  {
    Checkpoint checkpoint("llama3", 3);
    std::filesystem::copy_file(checkpoint.file(second),
                               checkpoint.file("model-00004-of-00004.safetensors"));
    EXPECT_NE(checkpoint.error().find("model-00004-of-00004"), std::string::npos);
  }
  {
    Checkpoint checkpoint("llama3", 3);
    std::filesystem::copy_file(checkpoint.file("model-00001-of-00003.safetensors"),
                               checkpoint.file(second),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_NE(checkpoint.error().find(second), std::string::npos);
  }
  for (const char* name : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "", "..", "C:x"}) {
    Checkpoint checkpoint("llama3", 3);
    checkpoint.edit("model.safetensors.index.json",
                    [&](nlohmann::json& i) { i["weight_map"]["lm_head.weight"] = name; });
    EXPECT_NE(checkpoint.error().find("plain name"), std::string::npos) << name;
  }
  {
    Checkpoint checkpoint("llama3", 3);
    checkpoint.edit("model.safetensors.index.json",
                    [&](nlohmann::json& i) { i["weight_map"]["extra.weight"] = second; });
    EXPECT_NE(checkpoint.error().find("extra.weight"), std::string::npos);
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

TEST(HfImport, HarmlessKeysAndOldSpellingsAreTaken) {
  {
    Checkpoint checkpoint(
        "llama3");  // transformers 4: rope_theta outside, rope_scaling with `type`
    checkpoint.edit_config([](nlohmann::json& c) {
      c.erase("rope_parameters");
      c["rope_theta"] = 500000.0;
      c["rope_scaling"] = {{"type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 32}};
      c["torch_dtype"] = "bfloat16";
      c["_name_or_path"] = "x";
      c["future_flag"] = false;
      c["do_sample"] = true;
    });
    const auto draft = checkpoint.import();
    ASSERT_TRUE(draft) << draft.error().text();
    EXPECT_EQ(text_at(*draft, "architecture.rope_scaling.type"), "llama3");
    EXPECT_EQ(number_at(*draft, "architecture.rope_theta"), 500000.0);
    EXPECT_EQ(text_at(*draft, "sampling.method"), "greedy");
  }
  {
    Checkpoint checkpoint("gemma3");
    checkpoint.edit_config([](nlohmann::json& c) {
      c.erase("rope_parameters");
      c.erase("layer_types");
      c["rope_theta"] = 1e6;
      c["rope_local_base_freq"] = 1e4;
      c["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
      c["sliding_window_pattern"] = 3;
    });
    const auto draft = checkpoint.import();
    ASSERT_TRUE(draft) << draft.error().text();
    EXPECT_EQ(number_at(*draft, "architecture.rope_scaling.factor"), 8.0);
    EXPECT_EQ(number_at(*draft, "architecture.rope_theta_sliding"), 1e4);
    const ConfigArray* types = draft->config.at("architecture.layer_types")->array();
    EXPECT_EQ(*(*types)[2].string(), "full");
    EXPECT_EQ(*(*types)[3].string(), "sliding");
  }
}

TEST(HfImport, OmittedKeysHaveTheClassesDefaults) {
  Checkpoint checkpoint("mistral");
  checkpoint.edit_config([](nlohmann::json& c) {
    c.erase("sliding_window");
    c.erase("rope_parameters");
    c.erase("head_dim");
    c.erase("max_position_embeddings");
    c.erase("hidden_act");
  });
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(number_at(*draft, "architecture.sliding_window"), 4096);
  EXPECT_EQ(number_at(*draft, "architecture.rope_theta"), 10000);
  EXPECT_EQ(number_at(*draft, "architecture.head_dim"), 16);
  EXPECT_EQ(number_at(*draft, "architecture.max_position_embeddings"), 131072);
  EXPECT_TRUE(mentions(checkpoint.report.assumptions, "max_position_embeddings is 131072"));
  Checkpoint none("mistral");
  none.edit_config([](nlohmann::json& c) { c["sliding_window"] = nullptr; });
  const auto without = none.import();
  ASSERT_TRUE(without) << without.error().text();
  EXPECT_EQ(without->config.at("architecture.sliding_window"), nullptr);
}

TEST(HfImport, SlidingWindowOfQwenNeedsItsSwitch) {
  Checkpoint checkpoint("qwen2");
  checkpoint.edit_config([](nlohmann::json& c) {
    c["sliding_window"] = 8;
    c["use_sliding_window"] = true;
    c["max_window_layers"] = 1;
    c.erase("layer_types");
  });
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(number_at(*draft, "architecture.sliding_window"), 8);
  const ConfigArray* types = draft->config.at("architecture.layer_types")->array();
  EXPECT_EQ(*(*types)[0].string(), "full");
  EXPECT_EQ(*(*types)[1].string(), "sliding");
  checkpoint.edit_config([](nlohmann::json& c) { c["use_sliding_window"] = false; });
  const auto off = checkpoint.import();
  ASSERT_TRUE(off) << off.error().text();
  EXPECT_EQ(off->config.at("architecture.sliding_window"), nullptr);
}

// Case N09 and the tied head that is stored too.
TEST(HfImport, HeadsTiedAndUntied) {
  {
    Checkpoint checkpoint("smollm2");
    checkpoint.edit_config([](nlohmann::json& c) { c["tie_word_embeddings"] = false; });
    EXPECT_NE(checkpoint.error().find("lm_head.weight"), std::string::npos);
  }
  auto tensors = tiny_tensors("smollm2");
  StoredTensor head = tensors[0];
  ASSERT_EQ(head.name, "model.embed_tokens.weight");
  head.name = "lm_head.weight";
  tensors.push_back(head);
  {
    Checkpoint checkpoint("smollm2");
    write_weights(checkpoint.path(), tensors);
    const auto draft = checkpoint.import();
    ASSERT_TRUE(draft) << draft.error().text();
    EXPECT_EQ(find_tensor(*draft, "lm_head.weight"), nullptr);
    EXPECT_TRUE(mentions(checkpoint.report.skipped, "lm_head.weight"));
    EXPECT_TRUE(flag_at(*draft, "architecture.tie_word_embeddings"));
  }
  tensors.back().bytes[0] ^= std::byte{1};
  {
    Checkpoint checkpoint("smollm2");
    write_weights(checkpoint.path(), tensors);
    const auto draft = checkpoint.import();
    ASSERT_TRUE(draft) << draft.error().text();
    EXPECT_NE(find_tensor(*draft, "lm_head.weight"), nullptr);
    EXPECT_FALSE(flag_at(*draft, "architecture.tie_word_embeddings"));
    EXPECT_TRUE(mentions(checkpoint.report.warnings, "lm_head.weight"));
  }
}

TEST(HfImport, TensorsAreUsedSkippedByNameOrRefused) {
  const auto with = [](StoredTensor extra) {
    auto tensors = tiny_tensors("llama2");
    tensors.push_back(std::move(extra));
    return tensors;
  };
  Checkpoint checkpoint("llama2");
  write_weights(checkpoint.path(),
                with(f32_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", {8})));
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_TRUE(mentions(checkpoint.report.skipped, "inv_freq"));
  for (const char* name :
       {"model.layers.0.surprise.weight", "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.mlp.up_proj.bias", "vision_tower.x.weight",
        "model.layers.7.input_layernorm.weight"}) {
    write_weights(checkpoint.path(), with(f32_tensor(name, {8})));
    EXPECT_NE(checkpoint.error().find(name), std::string::npos)
        << name << ": " << checkpoint.error();
  }
  auto tensors = tiny_tensors("llama2");
  tensors[0].dtype = "F8_E5M2FNUZ";
  tensors[0].bytes.resize(tensors[0].bytes.size() / 4);
  write_weights(checkpoint.path(), tensors);
  EXPECT_NE(checkpoint.error().find("F8_E5M2FNUZ"), std::string::npos) << checkpoint.error();
}

TEST(HfImport, TextModelInsideAGemma3Checkpoint) {
  Checkpoint checkpoint("gemma3");
  checkpoint.edit_config([](nlohmann::json& c) {
    const nlohmann::json text = c;
    c = {{"model_type", "gemma3"},
         {"architectures", {"Gemma3ForConditionalGeneration"}},
         {"text_config", text},
         {"image_token_index", 9}};
  });
  auto tensors = tiny_tensors("gemma3");
  for (StoredTensor& tensor : tensors) tensor.name = "language_model." + tensor.name;
  write_weights(checkpoint.path(), tensors);
  const auto draft = checkpoint.import();
  ASSERT_TRUE(draft) << draft.error().text();
  EXPECT_EQ(text_at(*draft, "model_type"), "gemma3_text");
  EXPECT_NE(find_tensor(*draft, "model.embed_tokens.weight"), nullptr);
  tensors.push_back(
      f32_tensor("vision_tower.vision_model.embeddings.patch_embedding.weight", {4, 4}));
  write_weights(checkpoint.path(), tensors);
  EXPECT_NE(checkpoint.error().find("vision_tower"), std::string::npos);
}

}  // namespace
}  // namespace cyb::test
