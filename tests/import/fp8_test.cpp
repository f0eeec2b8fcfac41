// 8-bit float checkpoints: which quantisation methods are taken, and scales that do not fit.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "import/import_support.hpp"
#include "import/safetensors/fp8_scales.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

TEST(Fp8Config, MethodsThatAreWeightsTimesScales) {
  const auto weights = [](const char* strategy) {
    return json{{"quant_method", "compressed-tensors"},
                {"config_groups",
                 {{"group_0",
                   {{"weights",
                     {{"num_bits", 8},
                      {"type", "float"},
                      {"symmetric", true},
                      {"strategy", strategy}}}}}}}};
  };
  for (const json& good : {json{{"quant_method", "fp8"}},
                           json{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}},
                           json{{"quant_method", "fbgemm_fp8"}},
                           json{{"quant_method", "modelopt"}, {"quant_algo", "FP8"}},
                           weights("tensor"), weights("channel"), weights("block")}) {
    const auto problem = safetensors::fp8_config_problem(good);
    EXPECT_FALSE(problem) << good.dump() << ": " << *problem;
  }
  json int8 = weights("channel"), skewed = int8, odd = weights("block");
  int8["config_groups"]["group_0"]["weights"]["type"] = "int";
  skewed["config_groups"]["group_0"]["weights"]["symmetric"] = false;
  odd["config_groups"]["group_0"]["weights"]["block_structure"] = {64, 64};
  for (const json& bad :
       {json{{"quant_method", "gptq"}}, json{{"quant_method", "awq"}}, json::object(), json(3),
        json{{"quant_method", "fp8"}, {"weight_block_size", {64, 128}}},
        json{{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}},
        json{{"quant_method", "compressed-tensors"}}, weights("group"), int8, skewed, odd}) {
    EXPECT_TRUE(safetensors::fp8_config_problem(bad)) << bad.dump();
  }
}

/// llama2 with one matrix [64, 64] of 8-bit floats and what a test adds.
class Fp8Checkpoint : public ::testing::Test {
 protected:
  static constexpr const char* kBase = "model.layers.0.self_attn.q_proj.";

  std::string problem(const std::vector<StoredTensor>& more, bool stated = true) {
    auto tensors = tiny_tensors("llama2");
    for (StoredTensor& tensor : tensors) {
      if (tensor.name != std::string(kBase) + "weight") continue;
      tensor.dtype = "F8_E4M3";
      tensor.bytes.assign(64 * 64, std::byte{0x38});
    }
    tensors.insert(tensors.end(), more.begin(), more.end());
    write_weights(checkpoint_.path(), tensors);
    checkpoint_.edit_config([&](json& config) {
      config.erase("quantization_config");
      if (stated) config["quantization_config"] = {{"quant_method", "fp8"}};
    });
    draft_ = checkpoint_.import();
    return draft_ ? "" : draft_.error().text();
  }
  static StoredTensor scale(const std::string& end, const std::vector<std::int64_t>& shape) {
    return f32_tensor(kBase + end, shape);
  }

  Checkpoint checkpoint_{"llama2"};
  Result<ModelDraft> draft_ = fail(internal_error("not imported"));
};

TEST_F(Fp8Checkpoint, ScalesBecomeSiblings) {
  for (const auto& [shape, want] : {std::pair(std::vector<std::int64_t>{}, Shape{1}),
                                    {{1}, Shape{1}},
                                    {{1, 1}, Shape{1}},
                                    {{64}, Shape{64}},
                                    {{64, 1}, Shape{64}}}) {
    ASSERT_EQ(problem({scale("weight_scale", shape)}), "");
    const DraftTensor* sibling = find_tensor(*draft_, std::string(kBase) + "weight.scale");
    ASSERT_NE(sibling, nullptr);
    EXPECT_EQ(sibling->shape, want);
    EXPECT_EQ(sibling->dtype, DType::kF32);
    EXPECT_EQ(produced(*sibling).size(), 4 * static_cast<std::size_t>(want.count()));
    EXPECT_EQ(find_tensor(*draft_, std::string(kBase) + "weight")->dtype, DType::kFp8e4m3);
  }
  ASSERT_EQ(problem({scale("weight_scale_inv", {1, 1}), scale("input_scale", {})}), "");
  EXPECT_TRUE(mentions(checkpoint_.report.skipped, "input_scale"));
}

TEST_F(Fp8Checkpoint, WhatDoesNotFitIsRefusedByName) {
  EXPECT_NE(problem({}).find("has no scale"), std::string::npos);
  EXPECT_EQ(problem({}, false), "");
  EXPECT_NE(problem({scale("weight_scale", {32})}).find("q_proj.weight_scale"), std::string::npos);
  EXPECT_NE(problem({scale("weight_scale_inv", {2, 2})}).find("weight_scale_inv"),
            std::string::npos);
  EXPECT_NE(
      problem({scale("weight_scale", {1}), scale("weight_scale_inv", {1})}).find("another scale"),
      std::string::npos);
  const auto nothing = f32_tensor("model.layers.0.self_attn.x_proj.weight_scale", {1});
  EXPECT_NE(problem({scale("weight_scale", {1}), nothing}).find("scales nothing"),
            std::string::npos);
  const auto plain = f32_tensor("model.layers.0.self_attn.k_proj.weight_scale", {1});
  EXPECT_NE(problem({scale("weight_scale", {1}), plain}).find("scales f32"), std::string::npos);
}

}  // namespace
}  // namespace cyb::test
