// What a model's config means for its results: windows, heads, and the length that ropes depend on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "import/import.hpp"
#include "paths/length_rule.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/process.hpp"
#include "support/tiny_checkpoint.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

/// A tiny checkpoint with another config and other weights.
class Edited {
 public:
  explicit Edited(const std::string& name) : tensors(tiny_tensors(name)) {
    write_tiny_checkpoint(name, folder_.path());
    config = json::parse(read_file(folder_.file("config.json")));
  }
  StoredTensor& tensor(const std::string& name) {
    return *std::ranges::find(tensors, name, &StoredTensor::name);
  }
  Result<std::shared_ptr<const Model>> import() const {
    write_file(folder_.file("config.json"), config.dump());
    write_weights(folder_.path(), tensors);
    const std::string path = out_.file("edited.model");
    ImportReport report;
    CYB_TRY(import_model(folder_.path(), path, {}, report));
    return Model::open(path);
  }

  json config;
  std::vector<StoredTensor> tensors;

 private:
  TemporaryFolder folder_, out_;
};

std::shared_ptr<Engine> engine_of(const std::shared_ptr<const Model>& model,
                                  const std::string& path, std::uint32_t chunk = 512) {
  EngineOptions options;
  options.backend = "reference";
  options.path = path;
  options.pack_cache = false;
  options.chunk_tokens = chunk;
  options.max_outputs = 16;
  return value(Engine::load(model, options));
}

std::vector<std::vector<float>> rows_of(Engine& engine, std::span<const std::int32_t> ids) {
  std::vector<std::vector<float>> rows;
  const std::size_t vocab = engine.vocab_size();
  const auto done =
      all_logits(engine, ids, [&](std::uint32_t, std::span<const float> all) -> Result<void> {
        for (std::size_t i = 0; i < all.size() / vocab; ++i) {
          const auto row = all.subspan(i * vocab, vocab);
          rows.emplace_back(row.begin(), row.end());
        }
        return {};
      });
  if (!done) throw std::runtime_error(done.error().text());
  return rows;
}

// Two layers with a window of 3: row i sees the tokens that are at most 2 steps of 2 back, itself
// included. A window of 3 keys beside the query would reach 6 back.
TEST(Window, CountsTheQueryItself) {
  for (const char* name : {"mistral", "phi3", "starcoder2"}) {
    Edited checkpoint(name);
    checkpoint.config["sliding_window"] = 3;
    const auto model = value(checkpoint.import());
    for (const char* path : {"curated", "graph"}) {
      const auto engine = engine_of(model, path);
      const std::vector<std::int32_t> ids = some_ids(9);
      const auto before = rows_of(*engine, ids);
      std::vector<std::size_t> n_seen(ids.size(), 0);
      for (std::size_t j = 0; j < ids.size(); ++j) {
        auto changed = ids;
        changed[j] ^= 1;
        const auto after = rows_of(*engine, changed);
        for (std::size_t i = 0; i < ids.size(); ++i) n_seen[i] += after[i] != before[i] ? 1 : 0;
      }
      EXPECT_EQ(n_seen, (std::vector<std::size_t>{1, 2, 3, 4, 5, 5, 5, 5, 5}))
          << name << " " << path;
      EXPECT_EQ(rows_of(*engine_of(model, path, 1), ids), before) << "token by token";
    }
  }
}

/// One layer of `name`, with a window where its class has one.
void keep_one_layer(Edited& checkpoint) {
  checkpoint.config["num_hidden_layers"] = 1;
  if (checkpoint.config.contains("layer_types"))
    checkpoint.config["layer_types"] = json::array({"sliding_attention"});
  std::erase_if(checkpoint.tensors, [](const StoredTensor& t) {
    return t.name.starts_with("model.layers.") && !t.name.starts_with("model.layers.0.");
  });
}

TEST(Window, OneLayerSeesExactlyThreeKeys) {
  for (const char* name : {"mistral", "gemma2", "gemma3"}) {
    SCOPED_TRACE(name);
    Edited checkpoint(name);
    keep_one_layer(checkpoint);
    checkpoint.config["sliding_window"] = 3;
    const auto model = value(checkpoint.import());
    const std::vector<std::int32_t> ids = some_ids(6);
    for (const char* path : {"curated", "graph"}) {
      const auto before = rows_of(*engine_of(model, path), ids);
      std::vector<std::size_t> n_seen(ids.size(), 0);
      for (std::size_t j = 0; j < ids.size(); ++j) {
        auto changed = ids;
        changed[j] ^= 1;
        const auto after = rows_of(*engine_of(model, path), changed);
        for (std::size_t i = 0; i < ids.size(); ++i) n_seen[i] += after[i] != before[i] ? 1 : 0;
      }
      EXPECT_EQ(n_seen, (std::vector<std::size_t>{1, 2, 3, 3, 3, 3})) << path;
      // Chunks that end before, at and past the window.
      for (const std::uint32_t chunk : {1u, 2u, 4u, 5u})
        EXPECT_EQ(rows_of(*engine_of(model, path, chunk), ids), before) << path << " " << chunk;
    }
  }
}

/// The largest q·k / sqrt(D) of a token with itself, where rope changes nothing, over tokens and
/// heads: x = embedding / rms · gain; q = Wq x; k = Wk x (f64).
double largest_score(const Edited& checkpoint, std::span<const std::int32_t> ids) {
  const auto tensor = [&](const char* name) {
    const auto at = std::ranges::find(checkpoint.tensors, name, &StoredTensor::name);
    std::vector<float> out(at->bytes.size() / sizeof(float));
    std::memcpy(out.data(), at->bytes.data(), at->bytes.size());
    return out;
  };
  const auto embedding = tensor("model.embed_tokens.weight"),
             gain = tensor("model.layers.0.input_layernorm.weight"),
             wq = tensor("model.layers.0.self_attn.q_proj.weight"),
             wk = tensor("model.layers.0.self_attn.k_proj.weight");
  const std::size_t e = gain.size(), n_heads = checkpoint.config["num_attention_heads"],
                    n_kv = checkpoint.config["num_key_value_heads"], d = wq.size() / e / n_heads;
  double largest = 0;
  for (const std::int32_t id : ids) {
    const float* x = embedding.data() + static_cast<std::size_t>(id) * e;
    double squares = 0;
    for (std::size_t i = 0; i < e; ++i) squares += static_cast<double>(x[i]) * x[i];
    const double rms = std::sqrt(squares / static_cast<double>(e) + 1e-6);
    const auto row = [&](const std::vector<float>& w, std::size_t r) {
      double sum = 0;
      for (std::size_t i = 0; i < e; ++i)
        sum += static_cast<double>(w[r * e + i]) * x[i] / rms * gain[i];
      return sum;
    };
    for (std::size_t h = 0; h < n_heads; ++h) {
      double score = 0;
      for (std::size_t i = 0; i < d; ++i)
        score += row(wq, h * d + i) * row(wk, h / (n_heads / n_kv) * d + i);
      largest = std::max(largest, std::abs(score) / std::sqrt(static_cast<double>(d)));
    }
  }
  return largest;
}

/// Scores past the largest f16 (65504), with K and V in f16.
TEST(HugeScores, AreFiniteAndEqualTheReferencesSoftmax) {
  Edited checkpoint("llama3");
  keep_one_layer(checkpoint);
  const std::vector<std::int32_t> ids = some_ids(12);
  const double factor = std::sqrt(1.5e5 / largest_score(checkpoint, ids));
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"}) {
    StoredTensor& tensor = checkpoint.tensor(name);
    for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
      float v = 0;
      std::memcpy(&v, tensor.bytes.data() + i, sizeof v);
      v *= static_cast<float>(factor);
      std::memcpy(tensor.bytes.data() + i, &v, sizeof v);
    }
  }
  ASSERT_GT(largest_score(checkpoint, ids), 1e5);
  const auto model = value(checkpoint.import());
  const auto rows = [&](const char* backend, const char* path, DType kv) {
    EngineOptions options;
    options.backend = backend;
    options.path = path;
    options.pack_cache = false;
    options.max_outputs = 16;
    options.kv_dtype = kv;
    return rows_of(*value(Engine::load(model, options)), ids);
  };
  for (const DType kv : {DType::kF16, DType::kF32}) {
    const auto want = rows("reference", "curated", kv);
    for (const char* path : {"curated", "graph"}) {
      const auto got = rows("cpu", path, kv);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(std::ranges::all_of(got[i], [](float v) { return std::isfinite(v); }));
        EXPECT_LE(error_of(got[i], want[i]), 1e-3) << path << " row " << i;
      }
    }
  }
}

TEST(Head, NegatedHeadFlipsTheArgmax) {
  const std::vector<std::int32_t> ids = some_ids(8);
  Edited tied("mistral"), negated("mistral");
  const StoredTensor embedding = tied.tensor("model.embed_tokens.weight");
  std::erase_if(tied.tensors, [](const StoredTensor& t) { return t.name == "lm_head.weight"; });
  tied.config["tie_word_embeddings"] = true;
  StoredTensor& head = negated.tensor("lm_head.weight");
  head.bytes = embedding.bytes;
  for (std::size_t i = 3; i < head.bytes.size(); i += 4) head.bytes[i] ^= std::byte{0x80};
  const auto plus = rows_of(*engine_of(value(tied.import()), "curated"), ids);
  const auto minus = rows_of(*engine_of(value(negated.import()), "curated"), ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(std::ranges::max_element(minus[i]) - minus[i].begin(),
              std::ranges::min_element(plus[i]) - plus[i].begin());
  }
  Edited missing("mistral");
  std::erase_if(missing.tensors, [](const StoredTensor& t) { return t.name == "lm_head.weight"; });
  const auto refused = missing.import();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("lm_head.weight"), std::string::npos);
}

TEST(LengthRule, SetsByLength) {
  ConfigTable config;
  EXPECT_EQ(value(read_length_rule(config)).set_of(1000), 0u);
  ConfigTable& scaling = config.table("architecture").table("rope_scaling");
  scaling.set("type", "longrope");
  EXPECT_FALSE(read_length_rule(config)) << "the original length is needed";
  scaling.set("original_max_position_embeddings", 32);
  const LengthRule longrope = value(read_length_rule(config));
  EXPECT_EQ(longrope.set_of(32), 0u);
  EXPECT_EQ(longrope.set_of(33), longrope.set_of(128));
  EXPECT_NE(longrope.set_of(33), 0u);
  scaling.set("type", "dynamic");
  const LengthRule dynamic = value(read_length_rule(config));
  EXPECT_EQ(dynamic.set_of(5), dynamic.set_of(32));
  EXPECT_NE(dynamic.set_of(33), dynamic.set_of(34));
  scaling.set("type", "yarn");
  EXPECT_EQ(value(read_length_rule(config)).kind, LengthRule::Kind::kNone);
}

// Adjacent pairs (gptj) with rows 2j, 2j + 1 are halves (neox) with rows j, j + D/2, also where a
// part of the head rotates.
TEST(RopeStyle, AdjacentPairsAreMovedHalves) {
  constexpr std::int64_t kHead = 16;
  const auto ids = some_ids(20);
  for (const double partial : {1.0, 0.5}) {
    const auto build = [&](const char* style, bool move) {
      TemporaryFolder folder;
      write_tiny_checkpoint("qwen2", folder.path());
      ImportReport report;
      ModelDraft draft = value(read_source(folder.path(), report));
      ConfigTable& a = draft.config.table("architecture");
      a.set("rope_style", style);
      a.set("partial_rotary_factor", partial);
      draft.name = std::string("style-") + style;
      draft.graph_hex.reset();
      const auto half = static_cast<std::int64_t>(kHead * partial / 2);
      for (DraftTensor& tensor : draft.tensors) {
        const bool qk = tensor.name.find("q_proj") != std::string::npos ||
                        tensor.name.find("k_proj") != std::string::npos;
        std::vector<std::byte> bytes;
        CYB_EXPECT_OK(tensor.produce([&](std::span<const std::byte> part) -> Result<void> {
          bytes.insert(bytes.end(), part.begin(), part.end());
          return {};
        }));
        const auto row = bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
        auto moved = bytes;
        for (std::int64_t r = 0; qk && move && r < tensor.shape[0]; ++r) {
          const std::int64_t i = r % kHead;
          const std::int64_t from = i >= 2 * half ? i : i / 2 + i % 2 * half;
          std::memcpy(moved.data() + static_cast<std::size_t>(r) * row,
                      bytes.data() + static_cast<std::size_t>(r - i + from) * row, row);
        }
        tensor.produce = [moved](const ByteSink& sink) { return sink(moved); };
      }
      return write_and_open(draft);
    };
    const auto halves = build("neox", false), pairs = build("gptj", true);
    for (const char* path : {"curated", "graph"}) {
      const auto got = rows_of(*engine_of(pairs, path), ids);
      const auto want = rows_of(*engine_of(halves, path), ids);
      for (std::size_t i = 0; i < ids.size(); ++i)  // sums over a head run in another order
        EXPECT_LT(error_of(got[i], want[i]), 2e-6) << path << " " << partial;
    }
  }
}

// What a session reuses, and that the step which crosses the original length starts again.
TEST(LengthRule, SessionsReuseOnlyTheSameSet) {
  EngineOptions options;
  options.backend = "reference";
  options.max_sequences = 2;
  const auto ids = some_ids(64);
  const auto prompt = [&](std::size_t n) { return std::span(ids).first(n); };
  {
    Session session(tiny_engine("phi3_longrope", options));
    value(session.prefill(prompt(20)));
    EXPECT_EQ(value(session.prefill(prompt(30))).n_reused, 20u);
    EXPECT_EQ(value(session.prefill(prompt(40))).n_reused, 0u) << "long factors from 33 on";
    EXPECT_EQ(value(session.prefill(prompt(50))).n_reused, 40u);
    EXPECT_EQ(value(session.prefill(prompt(30))).n_reused, 0u);
    CYB_ASSERT_OK(session.append(std::span(ids).subspan(30, 4)));
    const auto got = value(session.logits());
    Session cold(session.shared_engine());
    value(cold.prefill(prompt(34)));
    EXPECT_EQ(got, value(cold.logits()));
    EXPECT_EQ(value(session.tokens()), std::vector(ids.begin(), ids.begin() + 34));
  }
  Session session(tiny_engine("llama_dynamic", options));
  value(session.prefill(prompt(20)));
  EXPECT_EQ(value(session.prefill(prompt(32))).n_reused, 20u);
  EXPECT_EQ(value(session.prefill(prompt(40))).n_reused, 0u);
  EXPECT_EQ(value(session.prefill(prompt(41))).n_reused, 0u) << "each length has its own set";
}

// More tokens than the step has room for must not be promised, fewer not either.
TEST(LengthRule, AStepCannotEndPastItsLength) {
  EngineOptions options;
  options.backend = "reference";
  const auto engine = tiny_engine("llama_dynamic", options);
  Sequence sequence = engine->new_sequence();
  const auto ids = some_ids(8);
  const SequenceStep step{&sequence, ids, LogitRows::kLast, 7};
  EXPECT_FALSE(engine->step({&step, 1}, {}));
  EXPECT_EQ(sequence.position(), 0u);
  // Nor go on with keys of the other set.
  const auto longrope = tiny_engine("phi3_longrope", options);
  Sequence crossing = longrope->new_sequence();
  const auto prompt = some_ids(32);
  const SequenceStep first{&crossing, prompt, LogitRows::kNone};
  CYB_ASSERT_OK(longrope->step({&first, 1}, {}));
  const SequenceStep next{&crossing, std::span(ids).first(1), LogitRows::kLast};
  const auto refused = longrope->step({&next, 1}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("start the sequence again"), std::string::npos);
  EXPECT_EQ(crossing.position(), 32u);
}

}  // namespace
}  // namespace cyb::test
