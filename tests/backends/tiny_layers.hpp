// A two-layer decoder with random weights, written once as blocks, for tests of backends: every
// block op, per-head norms, grouped heads, a window in one layer, softcaps.
#pragma once

#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "ops/blocks.hpp"
#include "support/plan_builder.hpp"

namespace cyb::test {

struct TinyLayers {
  static constexpr std::int64_t kV = 23, kE = 24, kH = 4, kG = 2, kD = 8, kF = 40;
  static constexpr std::uint32_t kLayers = 2;
  struct Layer {
    std::vector<float> norm, wq, wk, wv, bq, q_gain, k_gain, wo, post, mlp_norm, wg, wu, wd;
  };
  std::vector<float> embedding, final_norm;  // [V, E], [E]; the head is tied
  std::vector<Layer> layers;
  RopeRule rule = RopeRule::kFixed;
  std::uint32_t original = 0;  // tokens, of a rule
  float factor = 1.0F;
  std::vector<float> freqs, long_freqs;  // [D/2] of kLonger

  explicit TinyLayers(unsigned seed = 7, RopeRule rope_rule = RopeRule::kFixed) : rule(rope_rule) {
    if (rule != RopeRule::kFixed) {
      original = 6;
      factor = rule == RopeRule::kDynamic ? 4.0F : 1.0F;
    }
    if (rule == RopeRule::kLonger) {
      freqs = {1.0F, 0.3F, 0.05F, 0.004F};
      long_freqs = {0.7F, 0.11F, 0.02F, 0.001F};
    }

    std::mt19937 random(seed);
    const auto make = [&](std::int64_t n, float scale, float offset = 0.0F) {
      std::uniform_real_distribution<float> uniform(-scale, scale);
      std::vector<float> out(static_cast<std::size_t>(n));
      for (float& v : out) v = uniform(random) + offset;
      return out;
    };
    embedding = make(kV * kE, 1.0F);
    final_norm = make(kE, 0.2F, 1.0F);
    for (std::uint32_t i = 0; i < kLayers; ++i) {
      layers.push_back({make(kE, 0.2F, 1.0F), make(kH * kD * kE, 0.3F), make(kG * kD * kE, 0.3F),
                        make(kG * kD * kE, 0.3F), make(kH * kD, 0.1F), make(kD, 0.2F, 1.0F),
                        make(kD, 0.2F, 1.0F), make(kE * kH * kD, 0.3F), make(kE, 0.2F, 1.0F),
                        make(kE, 0.2F, 1.0F), make(kF * kE, 0.3F), make(kF * kE, 0.3F),
                        make(kE * kF, 0.3F)});
    }
  }

  static KvLayout kv_layout(DType dtype = DType::kF32, std::uint32_t page_tokens = 4) {
    return {std::vector<KvLayerShape>(kLayers, {kG, kD}), dtype, page_tokens};
  }

  BlockAttentionAttrs attention(std::uint32_t layer) const {
    return {.layer = layer,
            .n_heads = kH,
            .n_kv_heads = kG,
            .head_dim = kD,
            .scale = 0.35F,
            .softcap = layer == 1 ? 5.0F : 0.0F,
            .window = layer == 1 ? 3u : 0u,
            .rope_dim = kD,
            .rope_base = 10000.0F,
            .rope_style = 0,
            .norm_eps = 1e-6F,
            .rope_rule = rule,
            .rope_original = original,
            .rope_factor = factor};
  }

  Result<ValueId> layer(PlanBuilder& b, std::uint32_t i, ValueId x) const {
    const Layer& w = layers[i];
    const auto vec = [&](const char* name, const std::vector<float>& v) {
      return b.weight(name, Shape{static_cast<std::int64_t>(v.size())}, v, WeightUse::kVector);
    };
    const auto mat = [&](const char* name, const std::vector<float>& v, std::int64_t rows) {
      const auto n = static_cast<std::int64_t>(v.size());
      return b.weight(name, Shape{rows, n / rows}, v, WeightUse::kMatmul);
    };
    CYB_ASSIGN(const ValueId g, vec("norm", w.norm));
    CYB_ASSIGN(const ValueId wq, mat("wq", w.wq, kH * kD));
    CYB_ASSIGN(const ValueId wk, mat("wk", w.wk, kG * kD));
    CYB_ASSIGN(const ValueId wv, mat("wv", w.wv, kG * kD));
    CYB_ASSIGN(const ValueId bq, vec("bq", w.bq));
    const Op project{OpTag::kBlockNormLinear, BlockNormLinearAttrs{1e-5F, 3}.to_attrs()};
    CYB_ASSIGN(const auto qkv, b.emit(project, std::vector{x, g, wq, wk, wv, bq}));
    CYB_ASSIGN(const ValueId q_gain, vec("q_gain", w.q_gain));
    CYB_ASSIGN(const ValueId k_gain, vec("k_gain", w.k_gain));
    const Op attend{OpTag::kBlockAttention, attention(i).to_attrs()};
    std::vector inputs{qkv[0], qkv[1], qkv[2], q_gain, k_gain};
    if (rule == RopeRule::kLonger) {
      CYB_ASSIGN(const ValueId table, vec("freqs", freqs));
      CYB_ASSIGN(const ValueId long_table, vec("long_freqs", long_freqs));
      inputs.insert(inputs.end(), {table, b.length(), long_table});
    } else if (rule == RopeRule::kDynamic) {
      inputs.insert(inputs.end(), {kNoValue, b.length()});
    }
    CYB_ASSIGN(const auto a, b.emit(attend, inputs));
    CYB_ASSIGN(const ValueId wo, mat("wo", w.wo, kE));
    CYB_ASSIGN(const auto h, b.emit({OpTag::kBlockLinearAdd, {}}, std::vector{a[0], x, wo}));
    CYB_ASSIGN(const ValueId mg, vec("mlp_norm", w.mlp_norm));
    CYB_ASSIGN(const ValueId wg, mat("wg", w.wg, kF));
    CYB_ASSIGN(const ValueId wu, mat("wu", w.wu, kF));
    const auto activation = i == 0 ? Activation::kSilu : Activation::kGeluTanh;
    const Op mlp{OpTag::kBlockGatedMlp, BlockGatedMlpAttrs{1e-5F, activation}.to_attrs()};
    CYB_ASSIGN(const auto m, b.emit(mlp, std::vector{h[0], mg, wg, wu}));
    CYB_ASSIGN(const ValueId wd, mat("wd", w.wd, kE));
    CYB_ASSIGN(const auto y, b.emit({OpTag::kBlockLinearAdd, {}}, std::vector{m[0], h[0], wd}));
    CYB_ASSIGN(const ValueId post, vec("post", w.post));
    const Op norm_add{OpTag::kBlockNormAdd, BlockNormAddAttrs{1e-5F}.to_attrs()};
    CYB_ASSIGN(const auto out, b.emit(norm_add, std::vector{y[0], y[0], post}));
    return out[0];
  }

  /// Logits of all rows (kPlain) or of the wanted ones (kBlocks).
  Result<Plan> plan(PlanBuilder& b, PlanBuilder::Form form) const {
    CYB_ASSIGN(const ValueId table,
               b.weight("embedding", Shape{kV, kE}, embedding, WeightUse::kMatmulAndGather));
    CYB_ASSIGN(const auto x0, b.emit({OpTag::kTokenEmbed, {}}, std::vector{b.ids(), table}));
    ValueId x = x0[0];
    for (std::uint32_t i = 0; i < kLayers; ++i) {
      CYB_ASSIGN(x, layer(b, i, x));
    }
    if (form == PlanBuilder::Form::kBlocks) {
      const Op gather{OpTag::kGather, Attrs{{std::int64_t{0}}}};
      CYB_ASSIGN(const auto rows, b.emit(gather, std::vector{x, b.output_rows()}));
      x = rows[0];
    }
    CYB_ASSIGN(const ValueId g, b.weight("final", Shape{kE}, final_norm, WeightUse::kVector));
    const Op head{OpTag::kBlockNormLinear, BlockNormLinearAttrs{1e-5F, 1}.to_attrs()};
    CYB_ASSIGN(const auto logits, b.emit(head, std::vector{x, g, table}));
    const Op cap{OpTag::kBlockSoftcap, BlockSoftcapAttrs{9.0F}.to_attrs()};
    CYB_ASSIGN(const auto y, b.emit(cap, logits));
    return b.finish(y);
  }
};

/// The value, or an exception with the error's text, which fails the test.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Compiled TinyLayers with a KV store: one sequence per list of page ids.
class TinyRunner {
 public:
  static constexpr std::uint32_t kMaxTokens = 16, kPagesEach = 8, kSequences = 4;

  TinyRunner(std::shared_ptr<Backend> backend, const TinyLayers& model, DType kv = DType::kF32,
             std::uint32_t page_tokens = 4)
      : backend_(std::move(backend)), model_(model) {
    kv_ = must(backend_->alloc_kv(TinyLayers::kv_layout(kv, page_tokens), kPagesEach * kSequences));
    PlanBuilder builder(*backend_, PlanBuilder::Form::kBlocks, kMaxTokens);
    Plan plan = must(model_.plan(builder, PlanBuilder::Form::kBlocks));
    weights_ = builder.take_weights();
    executable_ = must(backend_->compile(std::move(plan)));
    for (std::uint32_t s = 0; s < kSequences; ++s) {
      for (std::uint32_t p = 0; p < kPagesEach; ++p) pages_[s].push_back(p * kSequences + s);
    }
  }

  struct Part {
    std::uint32_t sequence, past;
    std::vector<std::int32_t> ids;
  };
  /// Logits of every row, [N, V].
  std::vector<float> run(const std::vector<Part>& parts) {
    std::vector<std::int32_t> ids, positions, rows;
    std::vector<SequenceSpan> spans;
    for (const Part& part : parts) {
      const auto n = static_cast<std::uint32_t>(part.ids.size());
      spans.push_back(
          {static_cast<std::uint32_t>(ids.size()), n, part.past, pages_[part.sequence]});
      for (std::uint32_t i = 0; i < n; ++i) {
        rows.push_back(static_cast<std::int32_t>(ids.size()));
        ids.push_back(part.ids[i]);
        positions.push_back(static_cast<std::int32_t>(part.past + i));
      }
    }
    return finish({ids, positions, rows, spans, kv_.get()});
  }
  /// The same rows of one sequence through the plain ops of the decomposition.
  std::vector<float> run_plain(const Part& part) {
    const auto n = static_cast<std::uint32_t>(part.ids.size());
    PlanBuilder builder(*backend_, PlanBuilder::Form::kPlain, n, part.past);
    Plan plan = must(model_.plan(builder, PlanBuilder::Form::kPlain));
    const auto weights = builder.take_weights();
    const auto executable = must(backend_->compile(std::move(plan)));
    std::vector<std::int32_t> positions;
    for (std::uint32_t i = 0; i < n; ++i)
      positions.push_back(static_cast<std::int32_t>(part.past + i));
    const SequenceSpan span{0, n, part.past, pages_[part.sequence]};
    executable->submit({part.ids, positions, {}, std::span(&span, 1), kv_.get()}).value();
    must(executable->sync());
    const auto logits = must(executable->output(0));
    return {logits.begin(), logits.end()};
  }

  Backend& backend() { return *backend_; }
  Executable& executable() { return *executable_; }
  KvStore& kv() { return *kv_; }
  const std::vector<std::uint32_t>& pages(std::uint32_t sequence) const { return pages_[sequence]; }

 private:
  std::vector<float> finish(const StepParams& params) {
    must(executable_->submit(params));
    must(executable_->sync());
    const auto logits = must(executable_->output(0));
    return {logits.begin(), logits.end()};
  }

  std::shared_ptr<Backend> backend_;
  const TinyLayers& model_;
  std::unique_ptr<KvStore> kv_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::unique_ptr<Executable> executable_;
  std::vector<std::uint32_t> pages_[kSequences];
};

}  // namespace cyb::test
