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
