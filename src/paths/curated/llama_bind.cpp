// LlamaStyle at bind time: which tensors the body reads, and whether the model has them in the
// shapes that its config implies.
#include <algorithm>

#include "paths/curated/llama.hpp"

namespace cyb {

LlamaModel::LlamaModel(LlamaConfig config, const TensorSource& tensors)
    : config_(std::move(config)), names_(llama_names(tensors)) {
  const auto has = [&](const std::string& part) {
    return tensors.find(layer_name(0, part) + ".weight").has_value();
  };
  post_norms_ = has("post_feedforward_layernorm");
  pre_norms_ = !post_norms_ || has("pre_feedforward_layernorm");
  fused_qkv_ = has(names_.qkv);
  fused_gate_up_ = has(names_.gate_up);
}

std::string LlamaModel::layer_name(std::uint32_t layer, const std::string& part) const {
  return names_.layer + std::to_string(layer) + "." + part;
}

void LlamaModel::expect_projection(std::vector<Expected>& out, const std::string& name,
                                   std::int64_t rows, std::int64_t columns) const {
  out.push_back({name + ".weight", {rows, columns}, true});
  out.push_back({name + ".bias", {rows}, false});
}

void LlamaModel::expect_norm(std::vector<Expected>& out, const std::string& name) const {
  out.push_back({name + ".weight", {config_.hidden}, true});
  if (config_.layer_norm) out.push_back({name + ".bias", {config_.hidden}, false});
}

void LlamaModel::expect_layer(std::vector<Expected>& out, std::uint32_t layer) const {
  const LlamaConfig& c = config_;
  const std::int64_t e = c.hidden, q = std::int64_t{c.n_heads} * c.head_dim;
  const std::int64_t kv = std::int64_t{c.n_kv_heads} * c.head_dim, f = c.ffn, d = c.head_dim;
  const auto name = [&](const std::string& part) { return layer_name(layer, part); };
  if (fused_qkv_) {
    expect_projection(out, name(names_.qkv), q + 2 * kv, e);
  } else {
    expect_projection(out, name(names_.q), q, e);
    expect_projection(out, name(names_.k), kv, e);
    expect_projection(out, name(names_.v), kv, e);
  }
  expect_projection(out, name(names_.o), e, q);
  // OLMo 2 normalises the whole projection, the others each head.
  out.push_back({name(names_.q_norm) + ".weight", {pre_norms_ ? d : q}, !pre_norms_});
  out.push_back({name(names_.k_norm) + ".weight", {pre_norms_ ? d : kv}, !pre_norms_});
  if (pre_norms_) expect_norm(out, name(names_.input_norm));
  if (post_norms_) {
    expect_norm(out, name("post_attention_layernorm"));
    expect_norm(out, name("post_feedforward_layernorm"));
    if (pre_norms_) expect_norm(out, name("pre_feedforward_layernorm"));
  } else if (!c.parallel) {
    expect_norm(out, name(names_.mlp_norm));
  }
  if (fused_gate_up_ && c.gated) {
    expect_projection(out, name(names_.gate_up), 2 * f, e);
  } else {
    if (c.gated) expect_projection(out, name(names_.gate), f, e);
    expect_projection(out, name(names_.up), f, e);
  }
  expect_projection(out, name(names_.down), e, f);
}

std::vector<LlamaModel::Expected> LlamaModel::expected_tensors() const {
  const LlamaConfig& c = config_;
  std::vector<Expected> out = {{names_.embed + ".weight", {c.vocab, c.hidden}, true}};
  if (!names_.positions.empty()) {
    out.push_back({names_.positions + ".weight", {c.max_positions, c.hidden}, true});
  }
  expect_norm(out, names_.final_norm);
  if (!c.tied) {
    out.push_back({names_.head + ".weight", {c.vocab, c.hidden}, true});
    out.push_back({names_.head + ".bias", {c.vocab}, false});
  }
  for (std::uint32_t i = 0; i < c.n_layers; ++i) expect_layer(out, i);
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
  if (config_.rope_full.from_table && tensors.find("cyb.pos.rope_factors")) {
    present_.push_back("cyb.pos.rope_factors");
  }
  std::sort(present_.begin(), present_.end());
  return {};
}

bool LlamaModel::uses_tensor(std::string_view name) const {
  return std::binary_search(present_.begin(), present_.end(), name);
}

std::vector<KvLayerShape> LlamaModel::kv_layers() const {
  std::vector<KvLayerShape> out;
  for (std::uint32_t i = 0; i < config_.n_layers; ++i) {
    const std::uint32_t window = config_.sliding[i] ? config_.window : 0;
    out.push_back({config_.n_kv_heads, config_.head_dim, window});
  }
  return out;
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
