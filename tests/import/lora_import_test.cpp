// What an adapter may not hold, each with its code; and damaged files.
#include "import/lora/lora_import.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

#include "import/import.hpp"
#include "support/lora_files.hpp"
#include "support/process.hpp"
#include "support/tiny_models.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

const std::string kQ = "model.layers.0.self_attn.q_proj";

std::vector<LoraModule> modules() {
  return {lora_module(kQ, 64, 64, 2), lora_module("model.layers.1.mlp.down_proj", 64, 128, 2)};
}

/// Code and text of reading an adapter for llama3; "" where it is taken.
std::string code_of(const json& config, const std::vector<StoredTensor>& tensors,
                    const std::string& model = "llama3") {
  const TemporaryFolder folder;
  write_lora(folder.file("a"), config, tensors);
  const auto read = read_adapter(folder.file("a"), *tiny_model(model));
  if (read) return "";
  EXPECT_NE(read.error().text().find(folder.file("a")), std::string::npos) << read.error().text();
  return read.error().code();
}

std::string code_of(const json& config) {
  return code_of(config, lora_tensors(modules()));
}

std::string code_of_tensors(const std::function<void(std::vector<StoredTensor>&)>& change) {
  std::vector<StoredTensor> tensors = lora_tensors(modules());
  change(tensors);
  return code_of(lora_config(2, 4), tensors);
}

json with(const char* key, json value) {
  json config = lora_config(2, 4);
  config[key] = std::move(value);
  return config;
}

TEST(LoraImport, WhatPeftWritesIsTaken) {
  EXPECT_EQ(code_of(lora_config(2, 4)), "");
  EXPECT_EQ(code_of(with("use_rslora", true)), "");
  EXPECT_EQ(code_of(with("lora_alpha", 3.5)), "");
  EXPECT_EQ(code_of(with("lora_dropout", 0.1)), "");
  EXPECT_EQ(code_of(with("init_lora_weights", "gaussian")), "");
  EXPECT_EQ(code_of(with("fan_in_fan_out", true)), "");
  EXPECT_EQ(code_of(with("something_new", nullptr)), "");
  EXPECT_EQ(code_of(with("something_new", json::object())), "");
  EXPECT_EQ(code_of(with("target_modules", {"q_proj", "down_proj", "k_proj"})), "");
}

TEST(LoraImport, ModulesThatTheConfigDoesNotNameAreRefused) {
  const auto targets = [](json value, const char* more = "exclude_modules", json extra = nullptr) {
    json config = lora_config(2, 4);
    config["target_modules"] = std::move(value);
    config[more] = std::move(extra);
    return code_of(config);
  };
  const json both = {"q_proj", "down_proj"};
  EXPECT_EQ(targets({"q_proj"}), "L02");
  EXPECT_EQ(targets({"q_proj", "own_proj"}), "L02") << "an end of a name is one after a dot";
  EXPECT_EQ(targets({"self_attn.q_proj", "model.layers.1.mlp.down_proj"}), "");
  EXPECT_EQ(targets("all-linear"), "");
  EXPECT_EQ(targets(R"(.*\.(q_proj|down_proj))"), "");
  EXPECT_EQ(targets(R"(.*\.(q_proj|down))"), "L02") << "an expression fits the whole name";
  EXPECT_EQ(targets("("), "L02");
  EXPECT_EQ(targets(7), "L02");
  EXPECT_EQ(targets({"q_proj", 7}), "L02");
  EXPECT_EQ(targets(json::array()), "L02") << "it names none";
  EXPECT_EQ(targets(nullptr), "") << "the kind of the model decides";
  EXPECT_EQ(targets(both, "exclude_modules", {"down_proj"}), "L02");
  EXPECT_EQ(targets(both, "exclude_modules", R"(.*\.1\..*)"), "L02");
  EXPECT_EQ(targets(both, "exclude_modules", json::array()), "");
  EXPECT_EQ(targets(both, "exclude_modules", ""), "");
  EXPECT_EQ(targets(both, "layers_to_transform", 0), "L02");
  EXPECT_EQ(targets(both, "layers_to_transform", {0, 1}), "");
  EXPECT_EQ(targets(both, "layers_to_transform", {0, 2}), "L02");
  EXPECT_EQ(targets({"q_proj", "model.layers.1.mlp.down_proj"}, "layers_to_transform", 0), "");
  EXPECT_EQ(targets(both, "layers_to_transform", "0"), "L02");
  json layers = lora_config(2, 4);
  layers.update({{"target_modules", both}, {"layers_to_transform", {0, 1}}});
  layers["layers_pattern"] = "layers";
  EXPECT_EQ(code_of(layers), "");
  layers["layers_pattern"] = {"blocks", "h"};
  EXPECT_EQ(code_of(layers), "L02");
}

TEST(LoraImport, OtherKindsAreRefusedByName) {
  EXPECT_EQ(code_of(with("peft_type", "IA3")), "L04");
  EXPECT_EQ(code_of(with("peft_type", "LOHA")), "L04");
  EXPECT_EQ(code_of(with("peft_type", "VERA")), "L04");
  EXPECT_EQ(code_of(with("use_dora", true)), "L05");
  EXPECT_EQ(code_of(with("alora_invocation_tokens", {1, 2})), "L05");
  EXPECT_EQ(code_of(with("layer_replication", {{0, 1}})), "L05");
  EXPECT_EQ(code_of(with("lora_bias", true)), "L05");
  EXPECT_EQ(code_of(with("use_qalora", true)), "L05");
  EXPECT_EQ(code_of(with("target_parameters", {"experts.w"})), "L05");
  EXPECT_EQ(code_of(with("arrow_config", {{"k", 1}})), "L05");
  EXPECT_EQ(code_of(with("ensure_weight_tying", true)), "L05");
  EXPECT_EQ(code_of(with("something_new", 3)), "L05");
  EXPECT_EQ(code_of(with("init_lora_weights", "pissa")), "L05");
  EXPECT_EQ(code_of(with("init_lora_weights", "loftq")), "L05");
  EXPECT_EQ(code_of(with("modules_to_save", {"lm_head"})), "L06");
  EXPECT_EQ(code_of(with("trainable_token_indices", {7})), "L06");
  EXPECT_EQ(code_of(with("bias", "all")), "L06");
  EXPECT_EQ(code_of(with("bias", "lora_only")), "L06");
}

TEST(LoraImport, WrongConfigsAreRefused) {
  EXPECT_EQ(code_of(json::array()), "L02");
  for (const char* key : {"peft_type", "r", "lora_alpha"}) {
    json config = lora_config(2, 4);
    config.erase(key);
    EXPECT_EQ(code_of(config), "L02") << key;
  }
  EXPECT_EQ(code_of(with("r", 0)), "L02");
  EXPECT_EQ(code_of(with("r", -1)), "L02");
  EXPECT_EQ(code_of(with("r", 2.5)), "L02");
  EXPECT_EQ(code_of(with("r", "2")), "L02");
  EXPECT_EQ(code_of(with("lora_alpha", "4")), "L02");
  EXPECT_EQ(code_of(with("use_rslora", 1)), "L02");
  EXPECT_EQ(code_of(with("rank_pattern", {1})), "L02");
  EXPECT_EQ(code_of(with("alpha_pattern", {{"q_proj", "x"}})), "L02");
  EXPECT_EQ(code_of(with("alpha_pattern", {{"(", 3}})), "L02");
  EXPECT_EQ(code_of(with("alpha_pattern", {{"q_proj", 1}, {"self_attn.q_proj", 2}})), "L02");
  EXPECT_EQ(code_of(with("alpha_pattern", {{"q_proj", 1}, {"self_attn.q_proj", 1}})), "");
  EXPECT_EQ(code_of(with("r", 3)), "L09");
  EXPECT_EQ(code_of(with("rank_pattern", {{"q_proj", 4}})), "L09");
  EXPECT_EQ(code_of(with("rank_pattern", {{"q", 4}})), "") << "a part of a name is none";
}

TEST(LoraImport, WrongTensorsAreRefused) {
  const auto renamed = [](std::size_t i, const char* name) {
    return code_of_tensors([&](auto& t) { t[i].name = std::string("base_model.model.") + name; });
  };
  EXPECT_EQ(renamed(0, "model.layers.0.self_attn.q_proj.lora_magnitude_vector"), "L05");
  EXPECT_EQ(renamed(0, "model.layers.0.self_attn.q_proj.lora_B.bias"), "L05");
  EXPECT_EQ(renamed(0, "model.layers.0.mlp.down_proj.ia3_l"), "L04");
  EXPECT_EQ(renamed(0, "lm_head.modules_to_save.weight"), "L06");
  EXPECT_EQ(renamed(0, "model.embed_tokens.weight"), "L06");
  EXPECT_EQ(renamed(0, "model.norm.bias"), "L06");
  EXPECT_EQ(renamed(0, "model.layers.0.self_attn.q_proj.lora_C"), "L07");
  EXPECT_EQ(renamed(0, "model.layers.0.self_attn.x_proj.lora_A.weight"), "L08");
  EXPECT_EQ(renamed(0, "model.layers.0.self_attn.q_proj.lora_embedding_A"), "L08");
  EXPECT_EQ(code_of_tensors([](auto& t) { t[0].name = t[0].name.substr(11); }), "L07");
  EXPECT_EQ(code_of_tensors([](auto& t) { t.erase(t.begin()); }), "L08");
  EXPECT_EQ(code_of_tensors([](auto& t) { t.erase(t.begin() + 1); }), "L08");
  EXPECT_EQ(code_of_tensors([](auto& t) { t[0].shape = {4, 32}; }), "L09");
  EXPECT_EQ(code_of_tensors([](auto& t) { t[0].shape = {128}; }), "L09");
  EXPECT_EQ(code_of_tensors([](auto& t) { t[0].shape = {64, 2}; }), "L09");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t i : {0u, 3u}) {
      EXPECT_EQ(code_of_tensors([&](auto& t) { std::memcpy(t[i].bytes.data() + 8, &bad, 4); }),
                "L10");
    }
  }
  EXPECT_EQ(code_of_tensors([](auto& t) { t[0].dtype = "I32"; }), "SourceEncoding");
}

TEST(LoraImport, TargetsAreThoseOfTheModel) {
  const auto code = [](const std::string& name, std::int64_t out, std::int64_t in,
                       const std::string& model = "llama3") {
    return code_of(lora_config(2, 4), lora_tensors({lora_module(name, out, in, 2)}), model);
  };
  EXPECT_EQ(code("model.layers.0.self_attn.k_proj", 32, 64), "");
  EXPECT_EQ(code("model.layers.0.self_attn.k_proj", 64, 64), "L09");
  EXPECT_EQ(code("model.layers.2.self_attn.k_proj", 32, 64), "L07");
  EXPECT_EQ(code("model.layers.0.self_attn.qkv_proj", 128, 64), "L07");
  EXPECT_EQ(code("model.norm", 64, 1), "L09");
  EXPECT_EQ(code("transformer.h.0.attn.c_attn", 192, 64), "L07");
  EXPECT_EQ(code("transformer.h.0.attn.c_attn", 192, 64, "gpt2"), "");
  EXPECT_EQ(code("h.0.attn.c_attn", 192, 64, "gpt2"), "");
  EXPECT_EQ(code("lm_head", 256, 64, "gpt2"), "") << "tied";
  EXPECT_EQ(code("model.layers.0.attention.wqkv", 128, 64, "internlm2"), "");
  EXPECT_EQ(code("model.layers.0.attention.wqkv", 96, 64, "internlm2"), "L09");
  // Two names of one weight.
  EXPECT_EQ(code_of(lora_config(2, 4),
                    lora_tensors({lora_module("h.0.attn.c_attn", 192, 64, 2),
                                  lora_module("transformer.h.0.attn.c_attn", 192, 64, 2)}),
                    "gpt2"),
            "L08");
}

TEST(LoraImport, FilesThatAreNoAdapters) {
  const TemporaryFolder folder;
  const Model& model = *tiny_model("llama3");
  const auto code = [&](const std::string& path) {
    const auto read = read_adapter(path, model);
    return read ? std::string() : read.error().code();
  };
  EXPECT_EQ(code(folder.file("nothing")), "Io");
  EXPECT_EQ(code(folder.path()), "L01");
  std::filesystem::create_directories(folder.file("model"));
  write_tiny_checkpoint("llama3", folder.file("model"));
  EXPECT_EQ(code(folder.file("model")), "L01");
  EXPECT_EQ(code(folder.file("model/model.safetensors")), "L01");
  EXPECT_EQ(code(folder.file("model/config.json")), "L01");
  EXPECT_EQ(code(std::string(CYB_TESTS_DIR) + "/golden/gguf_tiny/llama.gguf"), "L01");
  write_lora(folder.file("whole"), lora_config(2, 4), tiny_tensors("llama3"));
  EXPECT_EQ(code(folder.file("whole")), "L01");
  write_lora(folder.file("empty"), lora_config(2, 4), {});
  EXPECT_NE(code(folder.file("empty")), "");
  write_lora(folder.file("good"), lora_config(2, 4), lora_tensors(modules()));
  EXPECT_EQ(code(folder.file("good/adapter_model.safetensors")), "");
  std::filesystem::rename(folder.file("good/adapter_model.safetensors"),
                          folder.file("good/adapter_model.bin"));
  EXPECT_EQ(code(folder.file("good")), "L01");
}

TEST(LoraImport, DamagedFilesAreErrors) {
  const TemporaryFolder folder;
  const Model& model = *tiny_model("llama3");
  write_lora(folder.file("a"), lora_config(2, 4), lora_tensors(modules()));
  const std::string bytes = read_file(folder.file("a/adapter_model.safetensors"));
  const std::string config = read_file(folder.file("a/adapter_config.json"));
  const auto parse = [&](const std::string& c, const std::string& t) {
    return parse_peft_adapter(c, std::as_bytes(std::span(t)), model);
  };
  ASSERT_TRUE(parse(config, bytes));
  for (std::size_t n = 0; n < bytes.size(); n += 97)
    EXPECT_FALSE(parse(config, bytes.substr(0, n))) << n;
  for (std::size_t n = 0; n < config.size(); ++n)
    EXPECT_FALSE(parse(config.substr(0, n), bytes)) << n;
  EXPECT_EQ(parse(config.substr(1), bytes).error().code(), "JSON");
  EXPECT_EQ(parse(config, bytes + "x").error().code(), "SAFETENSORS");
}

// The committed adapter of llama.cpp's converter, changed in place.
class LoraGgufImport : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string golden = std::string(CYB_TESTS_DIR) + "/golden/";
    bytes = read_file(golden + "lora/gguf_llama/adapter.gguf");
    ImportReport report;
    ASSERT_TRUE(
        import_model(golden + "gguf_tiny/llama.gguf", folder.file("llama.model"), {}, report));
    model = *Model::open(folder.file("llama.model"));
  }
  std::string code(const std::string& changed) const {
    const auto read = parse_gguf_adapter(std::as_bytes(std::span(changed)), *model);
    return read ? std::string() : read.error().code();
  }
  /// With the first `from` after `key` in place of `to`, as long.
  std::string with(const std::string& key, const std::string& from, const std::string& to) const {
    std::string out = bytes;
    const std::size_t at = out.find(from, out.find(key));
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    return out.replace(at, from.size(), to);
  }

  TemporaryFolder folder;
  std::string bytes;
  std::shared_ptr<const Model> model;
};

TEST_F(LoraGgufImport, EveryRefusalHasItsCode) {
  EXPECT_EQ(code(bytes), "");
  EXPECT_EQ(code(with("general.type", "adapter", "adaptor")), "L01");
  EXPECT_EQ(code(with("general.architecture", "llama", "qwen2")), "L03");
  EXPECT_EQ(code(with("general.architecture", "llama", "nnnnn")), "L03");
  EXPECT_EQ(code(with("adapter.type", "lora", "loha")), "L04");
  EXPECT_EQ(code(with("adapter.lora.alpha", "adapter.lora.alpha", "adapter.lora.alphx")), "L05");
  EXPECT_EQ(code(with("", "blk.1.attn_q.weight.lora_b", "blk.1.attn_q.weight.lora_c")), "L06");
  EXPECT_EQ(code(with("", "blk.1.attn_q.weight.lora_b", "blk.7.attn_q.weight.lora_b")), "L08");
  std::string elsewhere = with("", "blk.1.attn_q.weight.lora_a", "blk.7.attn_q.weight.lora_a");
  const std::string b = "blk.1.attn_q.weight.lora_b";
  elsewhere.replace(elsewhere.find(b), b.size(), "blk.7.attn_q.weight.lora_b");
  EXPECT_EQ(code(elsewhere), "L07");
  std::string swapped = with("", "blk.1.ffn_up.weight.lora_a", "blk.1.ffn_xx.weight.lora_a");
  EXPECT_EQ(code(swapped), "L08");
  std::string nan = bytes;
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(nan.data() + nan.size() - 64, &bad, sizeof bad);
  EXPECT_EQ(code(nan), "L10");
  for (std::size_t n = 0; n < bytes.size(); n += 211) EXPECT_NE(code(bytes.substr(0, n)), "");
}

TEST_F(LoraGgufImport, AnotherModelIsRefused) {
  const auto read = parse_gguf_adapter(std::as_bytes(std::span(bytes)), *tiny_model("qwen2"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), "L03");
  const auto sizes = parse_gguf_adapter(std::as_bytes(std::span(bytes)), *tiny_model("mistral"));
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code(), "L09");
}

// llama.cpp's converter turns A and B of GPT-2. In the second file only the square matrices are
// left.
TEST(LoraImport, TurnedAdaptersOfGpt2AreRefused) {
  const std::string golden = std::string(CYB_TESTS_DIR) + "/golden/";
  const TemporaryFolder folder;
  ImportReport report;
  ASSERT_TRUE(import_model(golden + "gguf_tiny/gpt2.gguf", folder.file("m.model"), {}, report));
  const auto model = *Model::open(folder.file("m.model"));
  for (const char* file : {"adapter.gguf", "square.gguf"}) {
    const auto read = read_adapter(golden + "lora/gguf_gpt2/" + file, *model);
    ASSERT_FALSE(read.has_value()) << file;
    EXPECT_EQ(read.error().code(), "L09") << read.error().text();
  }
}

TEST(LoraImport, WhereAModelIsWantedItSaysSo) {
  const TemporaryFolder folder;
  write_lora(folder.file("a"), lora_config(2, 4), lora_tensors(modules()));
  ImportReport report;
  for (const std::string& path :
       {folder.file("a"), folder.file("a/adapter_model.safetensors"),
        std::string(CYB_TESTS_DIR) + "/golden/lora/gguf_llama/adapter.gguf"}) {
    const auto read = read_source(path, report);
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().code(), "L12") << read.error().text();
    EXPECT_NE(read.error().text().find("--lora"), std::string::npos);
  }
}

}  // namespace
}  // namespace cyb::test
