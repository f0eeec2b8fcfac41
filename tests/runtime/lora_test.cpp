// LoRA adapters: what PEFT computes (tests/golden/make/lora.py), what the merged checkpoint
// computes, and that nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <tuple>

#include "import/import.hpp"
#include "import/lora/lora_import.hpp"
#include "import/quantize/quantize.hpp"
#include "paths/tensor_source.hpp"
#include "runtime/generation.hpp"
#include "runtime/logits.hpp"
#include "runtime/session_file.hpp"
#include "support/engine_support.hpp"
#include "support/golden_file.hpp"
#include "support/lora_files.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

std::string golden_folder(const std::string& name) {
  return std::string(CYB_TESTS_DIR) + "/golden/lora/" + name;
}

std::vector<std::int32_t> golden_ids(const std::string& name) {
  return GoldenFile(golden_folder(name) + "/golden.safetensors").ids<std::int64_t>("in.input_ids");
}

std::vector<float> golden_logits(const std::string& name, const char* key) {
  return GoldenFile(golden_folder(name) + "/golden.safetensors").values<float>(key);
}

std::vector<float> logits_of(Engine& engine, std::span<const std::int32_t> ids) {
  std::vector<float> out;
  const auto done =
      all_logits(engine, ids, [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
        out.insert(out.end(), rows.begin(), rows.end());
        return {};
      });
  if (!done) throw std::runtime_error(done.error().text());
  return out;
}

EngineOptions exact_options(const std::string& backend, const std::string& path) {
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.isa = backend == "cpu" ? regime_isa() : "";
  options.n_threads = regime_threads();
  options.exact = true;
  options.max_outputs = 16;
  options.pack_cache = false;
  return options;
}

std::shared_ptr<const LoraAdapter> adapter(const std::string& folder, const Model& model) {
  return value(read_adapter(folder, model));
}

std::shared_ptr<Engine> load(std::shared_ptr<const Model> model, EngineOptions options,
                             std::vector<LoraUse> adapters = {}) {
  options.adapters = std::move(adapters);
  return value(Engine::load(std::move(model), options));
}

/// The checkpoint of a folder, imported.
std::shared_ptr<const Model> imported(const std::string& source) {
  static const TemporaryFolder models;
  static int n = 0;
  const std::string path = models.file(std::to_string(n++) + ".model");
  ImportReport report;
  value(import_model(source, path, {}, report));
  return value(Model::open(path));
}

std::shared_ptr<const Model> base_of(const std::string& name) {
  if (name.starts_with("gguf_")) {
    return imported(std::string(CYB_TESTS_DIR) + "/golden/gguf_tiny/" + name.substr(5) + ".gguf");
  }
  return tiny_model(name == "llama3_b" ? "llama3" : name);
}

using Place = std::tuple<std::string, std::string, std::string>;  // adapter, backend, path

std::string place_name(const ::testing::TestParamInfo<Place>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param) + "_" + std::get<2>(info.param);
}

class LoraGolden : public ::testing::TestWithParam<Place> {};

TEST_P(LoraGolden, LogitsArePefts) {
  const auto& [name, backend, path] = GetParam();
  const auto model = base_of(name);
  const auto engine =
      load(model, exact_options(backend, path), {{adapter(golden_folder(name), *model), 1.0}});
  const auto got = logits_of(*engine, golden_ids(name));
  EXPECT_LT(error_of(got, golden_logits(name, "out.logits")), 1e-5);
  EXPECT_GT(error_of(golden_logits(name, "out.plain"), golden_logits(name, "out.logits")), 0.1);
  const auto plain = load(model, exact_options(backend, path));
  EXPECT_LT(error_of(logits_of(*plain, golden_ids(name)), golden_logits(name, "out.plain")), 1e-5);
  EXPECT_EQ(engine->n_fallback_steps(), plain->n_fallback_steps());
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, LoraGolden,
    ::testing::Combine(::testing::Values("llama3", "llama3_b", "qwen2", "gemma2", "phi3", "gpt2",
                                         "gguf_llama", "gguf_gpt2", "gguf_phi3"),
                       ::testing::Values("reference", "cpu"),
                       ::testing::Values("curated", "graph")),
    place_name);

class LoraGguf : public ::testing::TestWithParam<Place> {};

TEST_P(LoraGguf, IsThePeftOne) {
  const auto& [name, backend, path] = GetParam();
  const auto model = base_of(name);
  const auto peft = adapter(golden_folder(name), *model);
  const auto gguf = adapter(golden_folder(name) + "/adapter.gguf", *model);
  ASSERT_EQ(gguf->pairs.size(), peft->pairs.size());
  for (const LoraPair& pair : peft->pairs) {
    const auto same = std::ranges::find_if(gguf->pairs, [&](const LoraPair& p) {
      return p.tensor == pair.tensor && p.place == pair.place;
    });
    ASSERT_NE(same, gguf->pairs.end()) << pair.tensor;
    EXPECT_EQ(same->a, pair.a) << pair.tensor;
    EXPECT_EQ(same->b, pair.b) << pair.tensor;
    EXPECT_EQ(same->scale, pair.scale) << pair.tensor;
  }
  const auto engine = load(model, exact_options(backend, path), {{gguf, 1.0}});
  EXPECT_LT(error_of(logits_of(*engine, golden_ids(name)), golden_logits(name, "out.logits")),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(Tiny, LoraGguf,
                         ::testing::Combine(::testing::Values("gguf_llama", "gguf_phi3"),
                                            ::testing::Values("reference", "cpu"),
                                            ::testing::Values("curated", "graph")),
                         place_name);

// Every family, with an adapter on every matrix of its checkpoint, against the checkpoint whose
// matrices hold W + s B A.
class LoraMerge : public ::testing::TestWithParam<std::string> {};

TEST_P(LoraMerge, IsTheMergedCheckpoint) {
  const std::string& name = GetParam();
  const TemporaryFolder folder;
  const std::vector<LoraModule> modules = tiny_lora_modules(name, 3);
  ASSERT_GE(modules.size(), 8u);
  write_lora(folder.file("adapter"), lora_config(3, 1.5), lora_tensors(modules));
  std::filesystem::create_directories(folder.file("merged"));
  write_tiny_checkpoint(name, folder.file("merged"));
  std::vector<StoredTensor> tensors = tiny_tensors(name);
  merge_lora(tensors, modules, 0.8 * 0.5, name == "gpt2");
  write_weights(folder.file("merged"), tensors);
  const auto merged = imported(folder.file("merged"));
  const auto ids = some_ids(12);
  const auto want = logits_of(*load(merged, exact_options("reference", "curated")), ids);
  const auto base = tiny_model(name);
  const std::vector<LoraUse> uses = {{adapter(folder.file("adapter"), *base), 0.8}};
  for (const auto& [backend, path] : {std::pair("cpu", "curated"), std::pair("cpu", "graph"),
                                      std::pair("reference", "curated")}) {
    const auto engine = load(base, exact_options(backend, path), uses);
    EXPECT_LT(error_of(logits_of(*engine, ids), want), 1e-5) << backend << " " << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, LoraMerge, ::testing::ValuesIn(tiny_names()),
                         [](const auto& model) { return model.param; });

TEST(Lora, MergedByPeft) {
  for (const char* name : {"llama3", "llama3_b", "qwen2", "phi3"}) {
    const auto base = base_of(name);
    const auto engine =
        load(base, exact_options("cpu", "curated"), {{adapter(golden_folder(name), *base), 1.0}});
    EXPECT_LT(error_of(logits_of(*engine, golden_ids(name)), golden_logits(name, "out.merged")),
              1e-5)
        << name;
  }
}

TEST(Lora, SeveralAdaptersAddUp) {
  const auto model = tiny_model("llama3");
  const auto one = adapter(golden_folder("llama3"), *model),
             two = adapter(golden_folder("llama3_b"), *model);
  const auto ids = golden_ids("llama3_sum");
  const auto want = golden_logits("llama3_sum", "out.logits");
  for (const char* path : {"curated", "graph"}) {
    for (const char* backend : {"reference", "cpu"}) {
      const auto engine = load(model, exact_options(backend, path), {{one, 0.7}, {two, -0.3}});
      EXPECT_LT(error_of(logits_of(*engine, ids), want), 1e-5) << backend << " " << path;
    }
  }
  // The other order is the same sum; an adapter and its opposite are nothing.
  const auto turned = load(model, exact_options("cpu", "curated"), {{two, -0.3}, {one, 0.7}});
  EXPECT_LT(error_of(logits_of(*turned, ids), want), 1e-5);
  const auto nothing = load(model, exact_options("cpu", "curated"), {{one, 1.0}, {one, -1.0}});
  const auto plain = load(model, exact_options("cpu", "curated"));
  EXPECT_LT(error_of(logits_of(*nothing, ids), logits_of(*plain, ids)), 1e-5);
}

TEST(Lora, WeightZeroIsNoAdapterBitForBit) {
  const auto model = tiny_model("llama3");
  const auto one = adapter(golden_folder("llama3"), *model);
  const auto ids = some_ids(20);
  for (const char* path : {"curated", "graph"}) {
    for (const char* backend : {"reference", "cpu"}) {
      EngineOptions options = exact_options(backend, path);
      options.exact = false;
      const auto plain = load(model, options), zero = load(model, options, {{one, 0.0}});
      EXPECT_EQ(logits_of(*zero, ids), logits_of(*plain, ids)) << backend << " " << path;
      EXPECT_EQ(zero->numerics(), plain->numerics());
      EXPECT_EQ(zero->report().own_weight_bytes, plain->report().own_weight_bytes);
    }
  }
}

TEST(Lora, ThreadsChunksAndOrderOfTensorsChangeNoBit) {
  const auto model = tiny_model("gemma2");
  const TemporaryFolder folder;
  const std::vector<LoraModule> modules = tiny_lora_modules("gemma2", 5);
  std::vector<StoredTensor> tensors = lora_tensors(modules);
  write_lora(folder.file("a"), lora_config(5, 5), tensors);
  std::ranges::reverse(tensors);
  write_lora(folder.file("b"), lora_config(5, 5), tensors);
  const auto ids = some_ids(61);
  std::vector<float> want;
  for (const char* which : {"a", "b"}) {
    for (const auto& [threads, chunk] :
         {std::pair(1u, 512u), std::pair(2u, 7u), std::pair(3u, 1u)}) {
      EngineOptions options = exact_options("cpu", "curated");
      options.exact = false;
      options.n_threads = threads;
      options.chunk_tokens = chunk;
      const auto engine = load(model, options, {{adapter(folder.file(which), *model), 1.0}});
      const auto got = logits_of(*engine, ids);
      if (want.empty()) want = got;
      EXPECT_EQ(got, want) << which << " " << threads << " threads, chunks of " << chunk;
    }
  }
}

struct LoraBase {
  std::string config;  // of the checkpoint
  std::vector<StoredTensor> tensors;
  std::vector<LoraModule> modules;
};

LoraBase tiny_base() {
  return {read_file(std::string(CYB_TESTS_DIR) + "/golden/tiny/llama3/config.json"),
          tiny_tensors("llama3"), tiny_lora_modules("llama3", 4)};
}

/// The same model four times as wide, so that rows are whole blocks of 256.
LoraBase wide_base() {
  LoraBase out = tiny_base();
  auto config = nlohmann::ordered_json::parse(out.config);
  for (const char* key : {"hidden_size", "intermediate_size", "head_dim"})
    config[key] = 4 * config[key].get<int>();
  out.config = config.dump();
  for (StoredTensor& tensor : out.tensors) {
    for (std::int64_t& size : tensor.shape) size *= size == 256 ? 1 : 4;  // 256: ids
    tensor = f32_tensor(tensor.name, tensor.shape);
  }
  for (LoraModule& m : out.modules)
    m = lora_module(m.name, m.out == 256 ? 256 : 4 * m.out, 4 * m.in, m.rank);
  return out;
}

void expect_decoded_plus_product(const LoraBase& base, std::initializer_list<DType> encodings) {
  const TemporaryFolder folder;
  const std::vector<LoraModule>& modules = base.modules;
  write_lora(folder.file("adapter"), lora_config(4, 2), lora_tensors(modules));
  const auto checkpoint = [&](const char* name, const std::vector<StoredTensor>& tensors) {
    std::filesystem::create_directories(folder.file(name));
    write_file(folder.file(name) + "/config.json", base.config);
    write_weights(folder.file(name), tensors);
    return imported(folder.file(name));
  };
  const auto plain = checkpoint("plain", base.tensors);
  for (const DType to : encodings) {
    ModelDraft draft = value(draft_of_model(plain));
    QuantizeReport report;
    CYB_ASSERT_OK(quantize_draft(draft, {.to = to, .n_threads = 1}, report));
    const auto blocks = write_and_open(draft);
    const auto* encoded = blocks->find_tensor("model.layers.0.mlp.down_proj.weight");
    ASSERT_TRUE(encoded != nullptr && encoded->dtype == to);
    std::vector<StoredTensor> tensors = base.tensors;
    for (StoredTensor& tensor : tensors) {  // names are canonical in this family
      const auto values = value(ModelTensors(*blocks).read_f32(tensor.name));
      ASSERT_EQ(values.size() * 4, tensor.bytes.size());
      std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    }
    merge_lora(tensors, modules, 0.5, false);
    const auto ids = some_ids(12);
    const auto want =
        logits_of(*load(checkpoint("merged", tensors), exact_options("reference", "curated")), ids);
    const std::vector<LoraUse> uses = {{adapter(folder.file("adapter"), *blocks), 1.0}};
    for (const char* path : {"curated", "graph"}) {
      for (const char* backend : {"reference", "cpu"}) {
        const auto engine = load(blocks, exact_options(backend, path), uses);
        EXPECT_LT(error_of(logits_of(*engine, ids), want), 1e-5) << backend << " " << path;
      }
      EngineOptions fast = exact_options("cpu", path);
      fast.exact = false;
      EXPECT_LT(error_of(logits_of(*load(blocks, fast, uses), ids), want), kBackendBlocks);
    }
  }
}

TEST(Lora, OnBlocksItIsTheDecodedWeightsPlusTheProduct) {
  expect_decoded_plus_product(tiny_base(), {DType::kQ8, DType::kQ4, DType::kQ4_1, DType::kQ5_0});
}

TEST(Lora, OnBlocksOf256Too) {
  expect_decoded_plus_product(wide_base(), {DType::kQ3k, DType::kQ4k, DType::kQ5k, DType::kQ6k});
}

TEST(Lora, PlainStepsGiveTheSame) {
  const auto model = tiny_model("llama3");
  EngineOptions options = exact_options("cpu", "curated");
  options.fuse = false;
  const auto engine = load(model, options, {{adapter(golden_folder("llama3"), *model), 1.0}});
  EXPECT_LT(
      error_of(logits_of(*engine, golden_ids("llama3")), golden_logits("llama3", "out.logits")),
      1e-5);
}

TEST(Lora, ItsMemoryIsCounted) {
  const auto model = tiny_model("llama3");
  const auto one = adapter(golden_folder("llama3"), *model);
  std::uint64_t values = 0;
  for (const LoraPair& pair : one->pairs) values += pair.a.size() + pair.b.size();
  for (const char* backend : {"reference", "cpu"}) {
    const auto options = exact_options(backend, "curated");
    const std::uint64_t plain = load(model, options)->report().own_weight_bytes,
                        with = load(model, options, {{one, 1.0}})->report().own_weight_bytes;
    EXPECT_GE(with, plain + values * sizeof(float)) << backend;
    EXPECT_LE(with, plain + 6 * values * sizeof(float)) << backend;
  }
}

TEST(Lora, DecodingGoesOnAsAWholePromptDoes) {
  const auto model = tiny_model("qwen2");
  const auto engine = load(model, exact_options("cpu", "curated"),
                           {{adapter(golden_folder("qwen2"), *model), 1.0}});
  Session session(engine);
  const auto prompt = some_ids(9);
  const auto answer = value(generate(session, prompt, {.max_tokens = 12, .ignore_stop_ids = true}));
  std::vector<std::int32_t> all = prompt;
  const std::size_t vocab = engine->vocab_size();
  for (const std::int32_t token : answer.tokens) {
    const auto logits = logits_of(*engine, all);
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(vocab);
    EXPECT_EQ(std::max_element(last, logits.end()) - last, token);
    all.push_back(token);
  }
}

TEST(Lora, ASavedSessionOfOtherAdaptersIsRefused) {
  const auto model = tiny_model("llama3");
  const TemporaryFolder folder;
  const auto one = adapter(golden_folder("llama3"), *model),
             two = adapter(golden_folder("llama3_b"), *model);
  const auto options = exact_options("cpu", "curated");
  Session session(load(model, options, {{one, 1.0}}));
  CYB_ASSERT_OK(session.prefill(some_ids(40)));
  const std::string path = folder.file("a.session");
  CYB_ASSERT_OK(save_session(session, path, {"raw"}));
  const std::vector<std::vector<LoraUse>> others = {
      {}, {{two, 1.0}}, {{one, 0.5}}, {{one, 1.0}, {two, 1.0}}};
  for (const std::vector<LoraUse>& uses : others) {
    Session other(load(model, options, uses));
    const auto restored = restore_session(other, path, "raw");
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code(), "K03");
  }
  Session same(load(model, options, {{one, 1.0}}));
  CYB_EXPECT_OK(restore_session(same, path, "raw"));
}

TEST(Lora, AReadingThatNoStepHasIsRefused) {
  const TemporaryFolder folder;  // a table of positions is no matrix of a product
  write_lora(folder.file("a"), lora_config(2, 4),
             lora_tensors({lora_module("transformer.wpe", 128, 64, 2)}));
  for (const char* path : {"curated", "graph"}) {
    EngineOptions options = exact_options("cpu", path);
    options.adapters = {{adapter(folder.file("a"), *tiny_model("gpt2")), 1.0}};
    const auto loaded = Engine::load(tiny_model("gpt2"), options);
    ASSERT_FALSE(loaded) << path;
    EXPECT_EQ(loaded.error().code(), "L11") << loaded.error().text();
    options.adapters[0].weight = 0;
    CYB_EXPECT_OK(Engine::load(tiny_model("gpt2"), options));
  }
}

TEST(Lora, AnAdapterOfAnotherModelIsRefusedByTheEngineToo) {
  const auto one = adapter(golden_folder("llama3"), *tiny_model("llama3"));
  EngineOptions options = exact_options("cpu", "curated");
  options.adapters = {{one, 1.0}};
  const auto loaded = Engine::load(tiny_model("llama2"), options);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), "L09");
  const auto gpt2 = Engine::load(tiny_model("gpt2"), options);
  ASSERT_FALSE(gpt2);
  EXPECT_EQ(gpt2.error().code(), "L07");
  options.adapters = {{one, std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(Engine::load(tiny_model("llama3"), options).error().code(), "InvalidInput");
  options.adapters = {{one, 1e300}};
  EXPECT_EQ(Engine::load(tiny_model("llama3"), options).error().code(), "L10");
}

}  // namespace
}  // namespace cyb::test
