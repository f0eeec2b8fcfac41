// The real models against transformers, teacher-forced on the golden's own tokens: the choice at
// each step where it is clear, and the log-probabilities of the prompt. Suites named Slow* belong
// to the slow run.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "import/import.hpp"
#include "runtime/chat.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/models.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

std::shared_ptr<const Model> imported(const std::string& file) {
  static const TemporaryFolder folder;
  static std::map<std::string, std::shared_ptr<const Model>> made;
  std::shared_ptr<const Model>& model = made[file];
  if (model == nullptr) {
    ImportReport report;
    const std::string path = folder.file(file + ".model");
    value(import_model(model_file(file), path, {}, report));
    model = value(Model::open(path));
  }
  return model;
}

json golden(const std::string& file) {
  const std::string name = file.substr(0, file.size() - std::string(".gguf").size());
  std::ifstream in(std::string(CYB_TESTS_DIR) + "/golden/text/" + name + ".json");
  return json::parse(in);
}

struct Demand {
  double margin;           // the argmax must be equal where the golden's margin is above this
  double logprob = 1e300;  // largest difference of a prompt token's log-probability
};
constexpr Demand kExact{0.05, 2e-3};
constexpr Demand kDefault{0.5};

void check_prompt(Engine& engine, const json& prompt, const Demand& demand) {
  const json& want = prompt.at("transformers");
  auto ids = prompt.at("prompt_ids").get<std::vector<std::int32_t>>();
  const auto greedy = want.at("greedy_ids").get<std::vector<std::int32_t>>();
  const auto margins = want.at("top1_minus_top2").get<std::vector<double>>();
  const auto logprobs = want.at("prompt_logprobs").get<std::vector<double>>();
  const std::size_t n_prompt = ids.size(), vocab = engine.vocab_size();
  ids.insert(ids.end(), greedy.begin(), greedy.end() - 1);
  std::size_t n_clear = 0;
  const auto check_row = [&](std::size_t i, std::span<const float> row) {
    if (i + 1 < n_prompt) {
      EXPECT_NEAR(log_probability(row, ids[i + 1]), logprobs[i], demand.logprob)
          << "prompt token " << i + 1;
      return;
    }
    const std::size_t step = i + 1 - n_prompt;
    if (margins[step] <= demand.margin) return;
    ++n_clear;
    EXPECT_EQ(std::ranges::max_element(row) - row.begin(), greedy[step])
        << "step " << step << ", margin " << margins[step];
  };
  CYB_ASSERT_OK(all_logits(engine, ids,
                           [&](std::uint32_t first, std::span<const float> rows) -> Result<void> {
                             for (std::size_t r = 0; r < rows.size() / vocab; ++r)
                               check_row(first + r, rows.subspan(r * vocab, vocab));
                             return {};
                           }));
  EXPECT_GT(n_clear, greedy.size() / 4);
}

void check_model(const std::string& file, const std::string& backend, const std::string& path,
                 bool exact, const Demand& demand) {
  ASSERT_TRUE(model_present(file)) << model_hint(file);
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.exact = exact;
  options.isa = backend == "cpu" ? regime_isa() : "";
  options.n_threads = regime_threads();
  options.ctx_tokens = 1024;
  options.max_outputs = 32;
  options.pack_cache = false;
  const auto engine = value(Engine::load(imported(file), options));
  const json expected = golden(file);
  ASSERT_GE(expected.at("prompts").size(), 3u);
  for (const json& prompt : expected.at("prompts")) {
    const auto text = prompt.at("prompt").get<std::string>();
    SCOPED_TRACE(file + " on " + engine->backend().description() + ": " + text.substr(0, 40));
    EXPECT_EQ(value(encode_raw(*engine->tokenizer(), text)),
              prompt.at("prompt_ids").get<std::vector<std::int32_t>>());
    check_prompt(*engine, prompt, demand);
  }
}

TEST(RealModels, SmolLm2CpuExact) {
  check_model(kSmolLm2, "cpu", "curated", true, kExact);
}
TEST(RealModels, SmolLm2Cpu) {
  check_model(kSmolLm2, "cpu", "curated", false, kDefault);
}
TEST(SlowRealModels, SmolLm2Graph) {
  check_model(kSmolLm2, "cpu", "graph", true, kExact);
}
TEST(SlowRealModels, SmolLm2Reference) {
  check_model(kSmolLm2, "reference", "curated", false, kExact);
}
TEST(SlowRealModels, Gemma3) {
  check_model(kGemma3, "cpu", "curated", true, kExact);
  check_model(kGemma3, "cpu", "curated", false, kDefault);
  check_model(kGemma3, "reference", "curated", false, kExact);
}
TEST(SlowRealModels, Qwen25Coder) {
  check_model(kQwen25Coder, "cpu", "curated", true, kExact);
  check_model(kQwen25Coder, "cpu", "curated", false, kDefault);
  check_model(kQwen25Coder, "reference", "curated", false, kExact);
}

// Equal bits on real block weights and panels: chunks, threads, rows asked for, packed weights of
// its own or mapped.
TEST(RealModels, SmolLm2IsDeterministic) {
  ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2);
  const TemporaryFolder cache;
  ::setenv("CYB_CACHE", cache.path().c_str(), 1);
  const json expected_of = golden(kSmolLm2);
  const json& prompt = expected_of.at("prompts").at(0);
  auto ids = prompt.at("prompt_ids").get<std::vector<std::int32_t>>();
  const auto greedy = prompt.at("transformers").at("greedy_ids").get<std::vector<std::int32_t>>();
  ids.insert(ids.end(), greedy.begin(), greedy.end());
  ids.resize(37);
  std::vector<float> expected;
  struct Case {
    unsigned threads;
    std::uint32_t chunk;
    bool pack_cache;
  };
  for (const Case& c :
       {Case{1, 1, false}, Case{2, 512, false}, Case{1, 512, true}, Case{3, 512, true},
        Case{2, 3, true}, Case{2, 16, false}, Case{2, 17, false}}) {
    EngineOptions options;
    options.backend = "cpu";
    options.isa = regime_isa();
    options.n_threads = c.threads;
    options.chunk_tokens = c.chunk;
    options.ctx_tokens = 128;
    options.pack_cache = c.pack_cache;
    Session session(value(Engine::load(imported(kSmolLm2), options)));
    value(session.prefill(ids));
    const std::vector<float> got = value(session.logits());
    if (expected.empty()) expected = got;
    EXPECT_EQ(got, expected) << c.threads << " threads, chunks of " << c.chunk
                             << (c.pack_cache ? ", mapped" : "");
  }
  ::unsetenv("CYB_CACHE");
}

}  // namespace
}  // namespace cyb::test
