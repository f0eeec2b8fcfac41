// Names as they are, wrapper prefixes removed; InternLM2 by a table of its own.
#include "import/hf/source_names.hpp"

#include <array>

#include "import/names.hpp"

namespace cyb::hf {
namespace {

struct Rename {
  std::string_view source, canonical;
};

constexpr std::array kInternLM2 = {
    Rename{"model.tok_embeddings.", "model.embed_tokens."},
    Rename{"output.", "lm_head."},
    Rename{"model.layers.{i}.attention_norm.", "model.layers.{i}.input_layernorm."},
    Rename{"model.layers.{i}.ffn_norm.", "model.layers.{i}.post_attention_layernorm."},
    Rename{"model.layers.{i}.attention.wo.", "model.layers.{i}.self_attn.o_proj."},
    Rename{"model.layers.{i}.feed_forward.w1.", "model.layers.{i}.mlp.gate_proj."},
    Rename{"model.layers.{i}.feed_forward.w3.", "model.layers.{i}.mlp.up_proj."},
    Rename{"model.layers.{i}.feed_forward.w2.", "model.layers.{i}.mlp.down_proj."}};

/// Canonical name of a checkpoint's tensor: without the wrapper of multi-modal checkpoints.
std::string unwrapped(std::string_view name) {
  for (const std::string_view wrapper : {"language_model.", "model.language_model."}) {
    if (!name.starts_with(wrapper)) continue;
    const std::string_view rest = name.substr(wrapper.size());
    const bool has_root = rest.starts_with("model.") || rest.starts_with("lm_head.");
    return has_root ? std::string(rest) : "model." + std::string(rest);
  }
  if (name == "model.lm_head.weight") return "lm_head.weight";
  return std::string(name);
}

std::vector<TensorUse> internlm2_uses(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{std::string(name)}};
  const std::string_view stem = name.substr(0, dot + 1), kind = name.substr(dot + 1);
  if (const auto layer = match_name("model.layers.{i}.attention.wqkv.", stem)) {
    const std::string to = fill_name("model.layers.{i}.self_attn.", *layer);
    const std::string tail = "_proj." + std::string(kind);
    return {{to + "q" + tail, Arrangement::kGroupQ},
            {to + "k" + tail, Arrangement::kGroupK},
            {to + "v" + tail, Arrangement::kGroupV}};
  }
  for (const Rename& row : kInternLM2) {
    if (const auto layer = match_name(row.source, stem))
      return {{fill_name(row.canonical, *layer) + std::string(kind)}};
  }
  return {{std::string(name)}};
}

std::vector<TensorUse> gpt2_uses(std::string_view name, const LlamaStyleConfig& config) {
  constexpr std::string_view kWrapper = "transformer.";
  if (name.starts_with(kWrapper)) name.remove_prefix(kWrapper.size());
  TensorUse use{std::string(name)};
  const bool fused = name.find(".attn.c_attn.") != std::string_view::npos;
  const bool matrix = fused || name.ends_with(".attn.c_proj.weight") ||
                      name.ends_with(".mlp.c_fc.weight") || name.ends_with(".mlp.c_proj.weight");
  if (config.model_type == "gpt2") {
    if (matrix && name.ends_with(".weight")) use.how = Arrangement::kTransposed;
  } else if (fused && config.n_kv_heads == config.n_heads && config.n_heads > 1) {
    use.how = Arrangement::kHeadsToFused;
  }
  return {use};
}

}  // namespace

std::vector<TensorUse> tensor_uses(std::string_view source_name, const HfConfig& config) {
  const std::string& type = config.architecture.model_type;
  if (type == "internlm2") return internlm2_uses(source_name);
  if (type == "gpt2" || type == "gpt_bigcode") return gpt2_uses(source_name, config.architecture);
  return {{unwrapped(source_name)}};
}

bool is_left_out(std::string_view source_name, const HfConfig& config) {
  return config.mtp_layers > 0 && source_name.starts_with("model.mtp_layers.");
}

std::int64_t grouped_rows(const LlamaStyleConfig& c) {
  return c.n_kv_heads * (c.n_heads / c.n_kv_heads + 2) * c.head_dim;
}

std::vector<RowRun> moved_rows(Arrangement how, const LlamaStyleConfig& c) {
  std::vector<RowRun> runs;
  if (how == Arrangement::kAsStored || how == Arrangement::kTransposed) return runs;
  const std::int64_t d = c.head_dim, q = c.n_heads / c.n_kv_heads, group = (q + 2) * d;
  const auto take = [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t g = 0; g < c.n_kv_heads; ++g)
      runs.push_back({g * group + first * d, count * d});
  };
  const bool all = how == Arrangement::kHeadsToFused;
  if (all || how == Arrangement::kGroupQ) take(0, q);
  if (all || how == Arrangement::kGroupK) take(q, 1);
  if (all || how == Arrangement::kGroupV) take(q + 1, 1);
  return runs;
}

Result<DraftTensor> arranged(SourceTensor tensor, Arrangement how, const LlamaStyleConfig& c) {
  if (how == Arrangement::kAsStored) return copied(std::move(tensor));
  if (how == Arrangement::kTransposed) return transposed(std::move(tensor));
  if (tensor.shape.rank() == 0 || tensor.shape[0] != grouped_rows(c)) {
    return fail(Error(ErrorKind::kFormat, "F33",
                      "tensor \"" + tensor.source_name + "\": shape " + tensor.shape.text() +
                          ", config implies " + std::to_string(grouped_rows(c)) + " rows"));
  }
  return gathered(std::move(tensor), moved_rows(how, c));
}

}  // namespace cyb::hf
