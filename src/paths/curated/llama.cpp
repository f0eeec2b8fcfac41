// LlamaStyle body:
//   x = E[ids] * embedding_scale (+ P[positions])
//   per layer: x = x + post_a(attn(n1(x)));  x = x + post_f(mlp(n2(x)))
//   logits = softcap(head(n(x)) / logits_scaling)
#include "paths/curated/llama.hpp"

#include "ops/layout/split.hpp"
#include "ops/norm/layer_norm.hpp"
#include "ops/norm/rms_norm.hpp"

namespace cyb {
namespace {

/// x * factor, or x where the factor is 1.
Result<ValueId> scaled(Emit& emit, ValueId x, float factor) {
  if (factor == 1.0f) return x;
  CYB_ASSIGN(const ValueId value, emit.constant(std::span(&factor, 1), Shape{1}));
  return emit.one(Op{OpTag::kMul, {}}, {x, value});
}

Result<std::vector<ValueId>> split_last(Emit& emit, ValueId x, std::vector<std::int64_t> sizes) {
  const auto axis = static_cast<std::int32_t>(emit.spec(x).rank()) - 1;
  return emit.emit(Op{OpTag::kSplit, SplitAttrs{axis, std::move(sizes)}.to_attrs()},
                   std::span(&x, 1));
}

}  // namespace

Result<ValueId> LlamaModel::optional_weight(Emit& emit, const std::string& name) const {
  if (!uses_tensor(name)) return kNoValue;
  return emit.weight(name, WeightUse::kVector);
}

Result<ValueId> LlamaModel::gain(Emit& emit, const std::string& name) const {
  if (!uses_tensor(name)) return kNoValue;
  CYB_ASSIGN(const ValueId g, emit.weight(name, WeightUse::kVector));
  if (!config_.norm_unit_offset) return g;
  const float one = 1.0f;
  CYB_ASSIGN(const ValueId unit, emit.constant(std::span(&one, 1), Shape{1}));
  return emit.one(Op{OpTag::kAdd, {}}, {g, unit});
}

// An RmsNorm is left to the block that reads it; a LayerNorm is done here.
Result<LlamaModel::Normed> LlamaModel::norm(Emit& emit, const std::string& name, ValueId x) const {
  CYB_ASSIGN(const ValueId g, gain(emit, name + ".weight"));
  if (!config_.layer_norm) return Normed{x, g};
  CYB_ASSIGN(const ValueId b, optional_weight(emit, name + ".bias"));
  const Op op{OpTag::kLayerNorm, LayerNormAttrs{config_.norm_eps}.to_attrs()};
  CYB_ASSIGN(const ValueId y, emit.one(op, {x, g, b}));
  return Normed{y, kNoValue};
}

// n(x) W_i^T + b_i for each name.
Result<std::vector<ValueId>> LlamaModel::linear(Emit& emit, Normed in,
                                                const std::vector<std::string>& names) const {
  std::vector<ValueId> inputs = {in.x, in.gain};
  for (const std::string& name : names) {
    CYB_ASSIGN(const ValueId w, emit.weight(name + ".weight", WeightUse::kMatmul));
    inputs.push_back(w);
  }
  for (const std::string& name : names) {
    CYB_ASSIGN(const ValueId b, optional_weight(emit, name + ".bias"));
    inputs.push_back(b);
  }
  const auto n = static_cast<std::uint32_t>(names.size());
  if (in.gain != kNoValue) {
    const BlockNormLinearAttrs attrs{.eps = config_.norm_eps, .n_weights = n};
    return emit.emit(Op{OpTag::kBlockNormLinear, attrs.to_attrs()}, inputs);
  }
  std::vector<ValueId> out;
  for (std::uint32_t i = 0; i < n; ++i) {
    CYB_ASSIGN(const ValueId y,
               emit.one(Op{OpTag::kMatmul, {}}, {in.x, inputs[2 + i], inputs[2 + n + i]}));
    out.push_back(y);
  }
  return out;
}

Result<LlamaModel::Heads> LlamaModel::project_heads(Emit& emit, std::uint32_t layer,
                                                    Normed in) const {
  const LlamaConfig& c = config_;
  Heads out;
  if (fused_qkv_) {
    CYB_ASSIGN(const std::vector<ValueId> all, linear(emit, in, {layer_name(layer, names_.qkv)}));
    const std::int64_t q = std::int64_t{c.n_heads} * c.head_dim,
                       kv = std::int64_t{c.n_kv_heads} * c.head_dim;
    CYB_ASSIGN(const std::vector<ValueId> parts, split_last(emit, all[0], {q, kv, kv}));
    out = {parts[0], parts[1], parts[2]};
  } else {
    CYB_ASSIGN(const std::vector<ValueId> all,
               linear(emit, in,
                      {layer_name(layer, names_.q), layer_name(layer, names_.k),
                       layer_name(layer, names_.v)}));
    out = {all[0], all[1], all[2]};
  }
  if (pre_norms_) return out;
  const Op norm{OpTag::kRmsNorm, RmsNormAttrs{c.norm_eps}.to_attrs()};
  CYB_ASSIGN(const ValueId q_gain, gain(emit, layer_name(layer, names_.q_norm) + ".weight"));
  CYB_ASSIGN(const ValueId k_gain, gain(emit, layer_name(layer, names_.k_norm) + ".weight"));
  CYB_ASSIGN(out.q, emit.one(norm, {out.q, q_gain}));
  CYB_ASSIGN(out.k, emit.one(norm, {out.k, k_gain}));
  return out;
}

// cos and sin times m, for q and k: the rotated part of q·k times m². Where all of a head is
// rotated attention() puts m² into the scale, else it goes to the rotated part of q.
Result<ValueId> LlamaModel::scaled_queries(Emit& emit, const RopeScaling& rope, ValueId q) const {
  const LlamaConfig& c = config_;
  if (rope.attention_factor == 1.0 || c.rope_dim == c.head_dim) return q;
  std::vector<float> factors(std::size_t{c.n_heads} * c.head_dim, 1.0f);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (i % c.head_dim < c.rope_dim)
      factors[i] = static_cast<float>(rope.attention_factor * rope.attention_factor);
  }
  CYB_ASSIGN(const ValueId value,
             emit.constant(factors, Shape{static_cast<std::int64_t>(factors.size())}));
  return emit.one(Op{OpTag::kMul, {}}, {q, value});
}

// n(x) [rows, E] -> heads' outputs [rows, H*D].
Result<ValueId> LlamaModel::attention(Emit& emit, std::uint32_t layer, Normed in) const {
  const LlamaConfig& c = config_;
  CYB_ASSIGN(Heads heads, project_heads(emit, layer, in));
  const bool sliding = c.sliding[layer], rope = c.rope_layer[layer];
  const RopeScaling& scaling = sliding ? c.rope_sliding : c.rope_full;
  ValueId q_gain = kNoValue, k_gain = kNoValue, table = kNoValue;
  if (pre_norms_) {
    CYB_ASSIGN(q_gain, gain(emit, layer_name(layer, names_.q_norm) + ".weight"));
    CYB_ASSIGN(k_gain, gain(emit, layer_name(layer, names_.k_norm) + ".weight"));
  }
  double scale = double{c.attention_scale};
  if (rope && !scaling.frequencies.empty()) {
    CYB_ASSIGN(table, emit.constant(scaling.frequencies,
                                    Shape{static_cast<std::int64_t>(scaling.frequencies.size())}));
  }
  ValueId length = kNoValue, long_table = kNoValue;
  if (rope && scaling.depends_on_length()) {
    CYB_ASSIGN(length, emit.length());
  }
  if (rope && !scaling.long_frequencies.empty()) {
    CYB_ASSIGN(long_table,
               emit.constant(scaling.long_frequencies,
                             Shape{static_cast<std::int64_t>(scaling.long_frequencies.size())}));
  }
  if (rope) {
    CYB_ASSIGN(heads.q, scaled_queries(emit, scaling, heads.q));
    if (c.rope_dim == c.head_dim) scale *= scaling.attention_factor * scaling.attention_factor;
  }
  const BlockAttentionAttrs attrs{
      .layer = layer,
      .n_heads = c.n_heads,
      .n_kv_heads = c.n_kv_heads,
      .head_dim = c.head_dim,
      .scale = static_cast<float>(scale),
      .softcap = c.attention_softcap,
      .window = sliding ? c.window : 0,
      .rope_dim = rope ? c.rope_dim : 0,
      .rope_base = static_cast<float>(sliding ? c.theta_sliding : c.theta_full),
      .rope_style = c.rope_style,
      .norm_eps = c.norm_eps,
      .rope_rule = length == kNoValue ? RopeRule::kFixed
                   : scaling.dynamic  ? RopeRule::kDynamic
                                      : RopeRule::kLonger,
      .rope_original = length == kNoValue ? 0 : scaling.original_tokens,
      .rope_factor = static_cast<float>(scaling.dynamic_factor),
  };
  return emit.one(Op{OpTag::kBlockAttention, attrs.to_attrs()},
                  {heads.q, heads.k, heads.v, q_gain, k_gain, table, length, long_table});
}

// x + residual_multiplier * post(z W^T + b).
Result<ValueId> LlamaModel::add_projected(Emit& emit, const std::string& name, ValueId z, ValueId x,
                                          const std::string& post_norm) const {
  CYB_ASSIGN(const ValueId w, emit.weight(name + ".weight", WeightUse::kMatmul));
  CYB_ASSIGN(const ValueId b, optional_weight(emit, name + ".bias"));
  if (!post_norms_ && config_.residual_multiplier == 1.0f)
    return emit.one(Op{OpTag::kBlockLinearAdd, {}}, {z, x, w, b});
  CYB_ASSIGN(ValueId y, emit.one(Op{OpTag::kMatmul, {}}, {z, w, b}));
  if (post_norms_) {
    CYB_ASSIGN(const ValueId g, gain(emit, post_norm + ".weight"));
    return emit.one(Op{OpTag::kBlockNormAdd, BlockNormAddAttrs{config_.norm_eps}.to_attrs()},
                    {x, y, g});
  }
  CYB_ASSIGN(y, scaled(emit, y, config_.residual_multiplier));
  return emit.one(Op{OpTag::kAdd, {}}, {x, y});
}

// act(n(x) Wg^T + bg)·(n(x) Wu^T + bu), or act(n(x) Wu^T + bu): the gated block where it fits, its
// parts where it does not.
Result<ValueId> LlamaModel::mlp(Emit& emit, std::uint32_t layer, Normed in) const {
  const LlamaConfig& c = config_;
  const std::string gate = layer_name(layer, names_.gate), up = layer_name(layer, names_.up);
  if (!c.gated) {
    CYB_ASSIGN(const std::vector<ValueId> h, linear(emit, in, {up}));
    return emit.one(activation_op(c.activation), {h[0]});
  }
  std::vector<ValueId> h;
  if (fused_gate_up_) {
    CYB_ASSIGN(const std::vector<ValueId> both,
               linear(emit, in, {layer_name(layer, names_.gate_up)}));
    CYB_ASSIGN(h, split_last(emit, both[0], {std::int64_t{c.ffn}, std::int64_t{c.ffn}}));
  } else if (in.gain != kNoValue && !uses_tensor(gate + ".bias") && !uses_tensor(up + ".bias")) {
    CYB_ASSIGN(const ValueId w_gate, emit.weight(gate + ".weight", WeightUse::kMatmul));
    CYB_ASSIGN(const ValueId w_up, emit.weight(up + ".weight", WeightUse::kMatmul));
    const BlockGatedMlpAttrs attrs{.eps = c.norm_eps, .activation = c.activation};
    return emit.one(Op{OpTag::kBlockGatedMlp, attrs.to_attrs()}, {in.x, in.gain, w_gate, w_up});
  } else {
    CYB_ASSIGN(h, linear(emit, in, {gate, up}));
  }
  CYB_ASSIGN(const ValueId act, emit.one(activation_op(c.activation), {h[0]}));
  return emit.one(Op{OpTag::kMul, {}}, {act, h[1]});
}

Result<ValueId> LlamaModel::layer(Emit& emit, std::uint32_t layer, ValueId x) const {
  emit.label("layer " + std::to_string(layer) + " attention");
  Normed in{x, kNoValue};
  if (pre_norms_) {
    CYB_ASSIGN(in, norm(emit, layer_name(layer, names_.input_norm), x));
  }
  CYB_ASSIGN(const ValueId heads, attention(emit, layer, in));
  CYB_ASSIGN(const ValueId x1, add_projected(emit, layer_name(layer, names_.o), heads, x,
                                             layer_name(layer, "post_attention_layernorm")));

  emit.label("layer " + std::to_string(layer) + " mlp");
  if (!config_.parallel) in = {x1, kNoValue};
  if (pre_norms_ && !config_.parallel) {
    const std::string name = post_norms_ ? "pre_feedforward_layernorm" : names_.mlp_norm;
    CYB_ASSIGN(in, norm(emit, layer_name(layer, name), x1));
  }
  CYB_ASSIGN(const ValueId h, mlp(emit, layer, in));
  return add_projected(emit, layer_name(layer, names_.down), h, x1,
                       layer_name(layer, "post_feedforward_layernorm"));
}

Result<ValueId> LlamaModel::embedding(Emit& emit) const {
  CYB_ASSIGN(const ValueId ids, emit.ids());
  CYB_ASSIGN(const ValueId table, emit.weight(names_.embed + ".weight", WeightUse::kGather));
  CYB_ASSIGN(ValueId x, emit.one(Op{OpTag::kTokenEmbed, {}}, {ids, table}));
  CYB_ASSIGN(x, scaled(emit, x, config_.embedding_scale));
  if (names_.positions.empty()) return x;
  CYB_ASSIGN(const ValueId positions, emit.positions());
  CYB_ASSIGN(const ValueId learned, emit.weight(names_.positions + ".weight", WeightUse::kGather));
  CYB_ASSIGN(const ValueId p, emit.one(Op{OpTag::kTokenEmbed, {}}, {positions, learned}));
  return emit.one(Op{OpTag::kAdd, {}}, {x, p});
}

Result<ValueId> LlamaModel::head(Emit& emit, ValueId x) const {
  const LlamaConfig& c = config_;
  CYB_ASSIGN(const ValueId rows, emit.output_rows(x));
  CYB_ASSIGN(const Normed in, norm(emit, names_.final_norm, rows));
  CYB_ASSIGN(const std::vector<ValueId> all,
             linear(emit, in, {c.tied ? names_.embed : names_.head}));
  ValueId logits = all[0];
  if (c.logits_scaling != 1.0f) {
    CYB_ASSIGN(const ValueId by, emit.constant(std::span(&c.logits_scaling, 1), Shape{1}));
    CYB_ASSIGN(logits, emit.one(Op{OpTag::kDiv, {}}, {logits, by}));
  }
  if (c.final_softcap == 0) return logits;
  return emit.one(Op{OpTag::kBlockSoftcap, BlockSoftcapAttrs{c.final_softcap}.to_attrs()},
                  {logits});
}

Result<void> LlamaModel::body(Emit& emit) const {
  emit.label("embedding");
  CYB_ASSIGN(ValueId x, embedding(emit));
  for (std::uint32_t i = 0; i < config_.n_layers; ++i) {
    CYB_ASSIGN(x, layer(emit, i, x));
  }
  emit.label("head");
  CYB_ASSIGN(const ValueId logits, head(emit, x));
  return emit.output("logits", logits);
}

}  // namespace cyb
