// GGUF files that llama.cpp's converter made, against what transformers computes for the
// checkpoints they come from (tests/golden/make/gguf_tiny.py).
#include <gtest/gtest.h>

#include <tuple>

#include "import/import.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/golden_file.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

std::string gguf_path(const std::string& name, const char* ending) {
  return std::string(CYB_TESTS_DIR) + "/golden/gguf_tiny/" + name + ending;
}

std::shared_ptr<const Model> imported(const std::string& name) {
  static const TemporaryFolder folder;
  static std::map<std::string, std::shared_ptr<const Model>> made;
  std::shared_ptr<const Model>& model = made[name];
  if (model != nullptr) return model;
  const std::string path = folder.file(name + ".model");
  ImportReport report;
  value(import_model(gguf_path(name, ".gguf"), path, {}, report));
  model = value(Model::open(path));
  return model;
}

using Place = std::tuple<std::string, std::string, std::string>;  // model, backend, path
class GgufGolden : public ::testing::TestWithParam<Place> {};

TEST_P(GgufGolden, LogitsAreTransformers) {
  const auto& [name, backend, path] = GetParam();
  const GoldenFile golden(gguf_path(name, ".safetensors"));
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.isa = backend == "cpu" ? regime_isa() : "";
  options.n_threads = regime_threads();
  options.exact = true;
  options.max_outputs = 16;
  options.pack_cache = false;
  const auto engine = value(Engine::load(imported(name), options));
  std::vector<float> got;
  CYB_ASSERT_OK(all_logits(*engine, golden.ids<std::int64_t>("in.input_ids"),
                           [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
                             got.insert(got.end(), rows.begin(), rows.end());
                             return {};
                           }));
  EXPECT_LT(error_of(got, golden.values<float>("out.logits")), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, GgufGolden,
    ::testing::Combine(::testing::Values("llama", "llama3", "qwen2_yarn", "gemma", "gemma2", "phi2",
                                         "phi3", "phi3_longrope", "phi4_mini", "starcoder",
                                         "starcoder2", "gpt2", "olmo2", "granite", "smollm3",
                                         "internlm2"),
                       ::testing::Values("reference", "cpu"),
                       ::testing::Values("curated", "graph")),
    [](const auto& named) {
      return std::get<0>(named.param) + "_" + std::get<1>(named.param) + "_" +
             std::get<2>(named.param);
    });

}  // namespace
}  // namespace cyb::test
