// LlamaStyle body:
//   x = E[ids] * embedding_scale
//   per layer: x = x + post_a(attn(n1(x)));  x = x + post_f(mlp(n2(x)))
//   logits = softcap(head(n(x)))
#include "paths/curated/llama.hpp"

#include <algorithm>

namespace cyb {
namespace {

std::string layer_prefix(std::uint32_t layer) {
  return "model.layers." + std::to_string(layer) + ".";
}

}  // namespace

LlamaModel::LlamaModel(LlamaConfig config, const TensorSource& tensors)
    : config_(std::move(config)) {
  post_norms_ = tensors.find(layer_prefix(0) + "post_feedforward_layernorm.weight").has_value();
}

std::vector<LlamaModel::Expected> LlamaModel::expected_tensors() const {
  const LlamaConfig& c = config_;
  const std::int64_t e = c.hidden, q = std::int64_t{c.n_heads} * c.head_dim;
  const std::int64_t kv = std::int64_t{c.n_kv_heads} * c.head_dim, f = c.ffn, v = c.vocab,
                     d = c.head_dim;
  std::vector<Expected> out = {{"model.embed_tokens.weight", {v, e}, true},
                               {"model.norm.weight", {e}, true}};
  if (!c.tied) out.push_back({"lm_head.weight", {v, e}, true});
  for (std::uint32_t i = 0; i < c.n_layers; ++i) {
    const std::string p = layer_prefix(i);
    const std::vector<Expected> layer = {
        {p + "input_layernorm.weight", {e}, true},
        {p + "self_attn.q_proj.weight", {q, e}, true},
        {p + "self_attn.k_proj.weight", {kv, e}, true},
        {p + "self_attn.v_proj.weight", {kv, e}, true},
        {p + "self_attn.o_proj.weight", {e, q}, true},
        {p + "self_attn.q_proj.bias", {q}, false},
        {p + "self_attn.k_proj.bias", {kv}, false},
        {p + "self_attn.v_proj.bias", {kv}, false},
        {p + "self_attn.o_proj.bias", {e}, false},
        {p + "self_attn.q_norm.weight", {d}, false},
        {p + "self_attn.k_norm.weight", {d}, false},
        {p + "post_attention_layernorm.weight", {e}, true},
        {p + "pre_feedforward_layernorm.weight", {e}, post_norms_},
        {p + "post_feedforward_layernorm.weight", {e}, post_norms_},
        {p + "mlp.gate_proj.weight", {f, e}, true},
        {p + "mlp.up_proj.weight", {f, e}, true},
        {p + "mlp.down_proj.weight", {e, f}, true},
        {p + "mlp.gate_proj.bias", {f}, false},
        {p + "mlp.up_proj.bias", {f}, false},
        {p + "mlp.down_proj.bias", {e}, false},
    };
    out.insert(out.end(), layer.begin(), layer.end());
  }
  return out;
}

Result<void> LlamaModel::check_tensors(const TensorSource& tensors, std::string_view model_type) {
  for (const Expected& want : expected_tensors()) {
    const auto spec = tensors.find(want.name);
    if (!spec) {
      if (!want.required) continue;
      return fail(Error(
          ErrorKind::kFormat, "F32",
          "model_type " + std::string(model_type) + ": missing tensor \"" + want.name + "\""));
    }
    const Shape implied{std::span(want.shape)};
    const auto shape = spec->bind({});
    if (!shape || !(*shape == implied)) {
      return fail(Error(ErrorKind::kFormat, "F33",
                        "tensor \"" + want.name + "\": shape " +
                            (shape ? shape->text() : spec->text()) + ", config implies " +
                            implied.text()));
    }
    present_.push_back(want.name);
  }
  if (!config_.freqs_full.empty() && tensors.find("cyb.pos.rope_factors")) {
    present_.push_back("cyb.pos.rope_factors");
  }
  std::sort(present_.begin(), present_.end());
  return {};
}

bool LlamaModel::uses_tensor(std::string_view name) const {
  return std::binary_search(present_.begin(), present_.end(), name);
}

std::vector<KvLayerShape> LlamaModel::kv_layers() const {
  return std::vector<KvLayerShape>(config_.n_layers, {config_.n_kv_heads, config_.head_dim});
}

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

// x [rows, E] -> heads' outputs [rows, H*D].
Result<ValueId> LlamaModel::attention(Emit& emit, std::uint32_t layer, ValueId x) const {
  const LlamaConfig& c = config_;
  const std::string p = layer_prefix(layer) + "self_attn.";
  std::vector<ValueId> in = {x};
  CYB_ASSIGN(const ValueId n1, gain(emit, layer_prefix(layer) + "input_layernorm.weight"));
  in.push_back(n1);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    CYB_ASSIGN(const ValueId w, emit.weight(p + name + ".weight", WeightUse::kMatmul));
    in.push_back(w);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    CYB_ASSIGN(const ValueId b, optional_weight(emit, p + name + ".bias"));
    in.push_back(b);
  }
  const BlockNormLinearAttrs qkv{.eps = c.norm_eps, .n_weights = 3};
  CYB_ASSIGN(const std::vector<ValueId> projected,
             emit.emit(Op{OpTag::kBlockNormLinear, qkv.to_attrs()}, in));

  CYB_ASSIGN(const ValueId q_gain, gain(emit, p + "q_norm.weight"));
  CYB_ASSIGN(const ValueId k_gain, gain(emit, p + "k_norm.weight"));
  const bool sliding = c.sliding[layer], rope = c.rope_layer[layer];
  const std::vector<float>& freqs = sliding ? c.freqs_sliding : c.freqs_full;
  ValueId table = kNoValue;
  if (rope && !freqs.empty()) {
    CYB_ASSIGN(table, emit.constant(freqs, Shape{static_cast<std::int64_t>(freqs.size())}));
  }
  const BlockAttentionAttrs attrs{
      .layer = layer,
      .n_heads = c.n_heads,
      .n_kv_heads = c.n_kv_heads,
      .head_dim = c.head_dim,
      .scale = c.attention_scale,
      .softcap = c.attention_softcap,
      .window = sliding ? c.window : 0,
      .rope_dim = rope ? c.rope_dim : 0,
      .rope_base = static_cast<float>(sliding ? c.theta_sliding : c.theta_full),
      .rope_style = c.rope_style,
      .norm_eps = c.norm_eps,
  };
  return emit.one(Op{OpTag::kBlockAttention, attrs.to_attrs()},
                  {projected[0], projected[1], projected[2], q_gain, k_gain, table});
}

// x + post(z W^T): `prefix` names the projection, its post norm is looked up by the caller's
// naming.
Result<ValueId> LlamaModel::project_out(Emit& emit, const std::string& prefix, ValueId z,
                                        ValueId x) const {
  const bool attention_side = prefix.ends_with("o_proj");
  const std::string layer =
      prefix.substr(0, prefix.find('.', std::string_view("model.layers.").size()) + 1);
  CYB_ASSIGN(const ValueId w, emit.weight(prefix + ".weight", WeightUse::kMatmul));
  CYB_ASSIGN(const ValueId b, optional_weight(emit, prefix + ".bias"));
  if (!post_norms_) return emit.one(Op{OpTag::kBlockLinearAdd, {}}, {z, x, w, b});
  CYB_ASSIGN(const ValueId y, emit.one(Op{OpTag::kMatmul, {}}, {z, w, b}));
  const char* name =
      attention_side ? "post_attention_layernorm.weight" : "post_feedforward_layernorm.weight";
  CYB_ASSIGN(const ValueId g, gain(emit, layer + name));
  return emit.one(Op{OpTag::kBlockNormAdd, BlockNormAddAttrs{config_.norm_eps}.to_attrs()},
                  {x, y, g});
}

// act(n(x) Wg^T + bg)·(n(x) Wu^T + bu): the gated block where there are no biases, its parts where
// there are.
Result<ValueId> LlamaModel::gated(Emit& emit, const std::string& prefix, ValueId x,
                                  ValueId gain_of_x) const {
  CYB_ASSIGN(const ValueId gate, emit.weight(prefix + "gate_proj.weight", WeightUse::kMatmul));
  CYB_ASSIGN(const ValueId up, emit.weight(prefix + "up_proj.weight", WeightUse::kMatmul));
  CYB_ASSIGN(const ValueId gate_bias, optional_weight(emit, prefix + "gate_proj.bias"));
  CYB_ASSIGN(const ValueId up_bias, optional_weight(emit, prefix + "up_proj.bias"));
  if (gate_bias == kNoValue && up_bias == kNoValue) {
    const BlockGatedMlpAttrs mlp{.eps = config_.norm_eps, .activation = config_.activation};
    return emit.one(Op{OpTag::kBlockGatedMlp, mlp.to_attrs()}, {x, gain_of_x, gate, up});
  }
  const BlockNormLinearAttrs both{.eps = config_.norm_eps, .n_weights = 2};
  CYB_ASSIGN(const std::vector<ValueId> h,
             emit.emit(Op{OpTag::kBlockNormLinear, both.to_attrs()},
                       std::vector<ValueId>{x, gain_of_x, gate, up, gate_bias, up_bias}));
  CYB_ASSIGN(const ValueId act, emit.one(activation_op(config_.activation), {h[0]}));
  return emit.one(Op{OpTag::kMul, {}}, {act, h[1]});
}

Result<ValueId> LlamaModel::layer(Emit& emit, std::uint32_t layer, ValueId x) const {
  const std::string p = layer_prefix(layer);
  emit.label("layer " + std::to_string(layer) + " attention");
  CYB_ASSIGN(const ValueId heads, attention(emit, layer, x));
  CYB_ASSIGN(const ValueId x1, project_out(emit, p + "self_attn.o_proj", heads, x));

  emit.label("layer " + std::to_string(layer) + " mlp");
  CYB_ASSIGN(const ValueId n2, gain(emit, p + (post_norms_ ? "pre_feedforward_layernorm.weight"
                                                           : "post_attention_layernorm.weight")));
  CYB_ASSIGN(const ValueId h, gated(emit, p + "mlp.", x1, n2));
  return project_out(emit, p + "mlp.down_proj", h, x1);
}

Result<void> LlamaModel::body(Emit& emit) const {
  const LlamaConfig& c = config_;
  emit.label("embedding");
  CYB_ASSIGN(const ValueId ids, emit.ids());
  CYB_ASSIGN(const ValueId table, emit.weight("model.embed_tokens.weight", WeightUse::kGather));
  CYB_ASSIGN(ValueId x, emit.one(Op{OpTag::kTokenEmbed, {}}, {ids, table}));
  if (c.embedding_scale != 1.0f) {
    CYB_ASSIGN(const ValueId scale, emit.constant(std::span(&c.embedding_scale, 1), Shape{1}));
    CYB_ASSIGN(x, emit.one(Op{OpTag::kMul, {}}, {x, scale}));
  }
  for (std::uint32_t i = 0; i < c.n_layers; ++i) {
    CYB_ASSIGN(x, layer(emit, i, x));
  }
  emit.label("head");
  CYB_ASSIGN(const ValueId rows, emit.output_rows(x));
  CYB_ASSIGN(const ValueId g, gain(emit, "model.norm.weight"));
  CYB_ASSIGN(
      const ValueId head,
      emit.weight(c.tied ? "model.embed_tokens.weight" : "lm_head.weight", WeightUse::kMatmul));
  const BlockNormLinearAttrs norm_head{.eps = c.norm_eps, .n_weights = 1};
  CYB_ASSIGN(ValueId logits, emit.one(Op{OpTag::kBlockNormLinear, norm_head.to_attrs()},
                                      {rows, g, head, kNoValue}));
  if (c.final_softcap > 0) {
    CYB_ASSIGN(logits,
               emit.one(Op{OpTag::kBlockSoftcap, BlockSoftcapAttrs{c.final_softcap}.to_attrs()},
                        {logits}));
  }
  return emit.output("logits", logits);
}

Result<std::unique_ptr<FamilyModel>> bind_llama(const ConfigTable& config,
                                                const TensorSource& tensors) {
  CYB_ASSIGN(const std::string model_type, config.string("model_type"));
  CYB_ASSIGN(LlamaConfig read, read_llama_config(config, tensors));
  auto model = std::make_unique<LlamaModel>(std::move(read), tensors);
  CYB_TRY(model->check_tensors(tensors, model_type));
  return std::unique_ptr<FamilyModel>(std::move(model));
}

}  // namespace cyb
