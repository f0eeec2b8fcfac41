// Halves to pairs. Counts come from shapes that the readers checked against the bytes.
#include "import/lora/lora_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.hpp"
#include "paths/tensor_source.hpp"

namespace cyb::lora {
namespace {

constexpr std::int64_t kMaxRank = 65536;

Error rank_error(const std::string& module, const Halves& h) {
  return lora_error("L09", fmt::format("{}: A {} and B {} have no common rank", json_quote(module),
                                       h.a.shape.text(), h.b.shape.text()));
}

}  // namespace

Result<void> add_half(Modules& modules, const std::string& module, bool is_b, bool embedding,
                      Half half) {
  Halves& halves = modules[module];
  bool& has = is_b ? halves.has_b : halves.has_a;
  const bool other_kind = (halves.has_a || halves.has_b) && halves.embedding != embedding;
  if (has || other_kind) {
    return fail(lora_error(
        "L08", fmt::format("{}: the module has another {} beside it", json_quote(half.name),
                           other_kind ? "kind of pair"
                           : is_b     ? "B"
                                      : "A")));
  }
  has = true;
  halves.embedding = embedding;
  (is_b ? halves.b : halves.a) = std::move(half);
  return {};
}

Result<std::vector<float>> values_of(const Half& half) {
  const FormatInfo& format = format_info(half.dtype);
  const bool number = format.cls != DTypeClass::kInt && format.cls != DTypeClass::kBool;
  if (format.decode == nullptr || !number)
    return fail(source_encoding(half.name, dtype_name(half.dtype)));
  std::vector<float> out(static_cast<std::size_t>(half.shape.count()));
  format.decode(half.bytes.data(), out.data(), out.size());
  const auto bad = std::ranges::find_if(out, [](float v) { return !std::isfinite(v); });
  if (bad == out.end()) return out;
  return fail(lora_error(
      "L10", fmt::format("{}: value {} is not finite", json_quote(half.name), bad - out.begin())));
}

Result<Facts> facts_of(const Model& model) {
  Facts facts;
  LlamaStyleConfig& c = facts.config.architecture;
  const ConfigTable& config = model.config();
  c.model_type = model.model_type();
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const auto count = [&](const char* key) -> Result<std::int64_t> {
    CYB_ASSIGN(const std::int64_t n, config.integer_or(std::string("architecture.") + key, 1));
    return n >= 1 && n <= kMost ? n : std::int64_t{1};
  };
  CYB_ASSIGN(c.n_heads, count("num_attention_heads"));
  CYB_ASSIGN(c.n_kv_heads, count("num_key_value_heads"));
  CYB_ASSIGN(c.head_dim, count("head_dim"));
  CYB_ASSIGN(facts.tied, config.boolean_or("architecture.tie_word_embeddings", false));
  for (const char* name : {"model.embed_tokens.weight", "wte.weight"}) {
    if (facts.embedding.empty() && model.find_tensor(name) != nullptr) facts.embedding = name;
  }
  return facts;
}

Result<std::string> weight_of(const Model& model, const Facts& facts, std::string_view canonical,
                              std::string_view source) {
  if (model.find_tensor(canonical) != nullptr) return std::string(canonical);
  if (canonical == "lm_head.weight" && facts.tied && !facts.embedding.empty())
    return facts.embedding;
  return fail(
      lora_error("L07", fmt::format("{}: the model ({}) has no weight {}", json_quote(source),
                                    model.model_type(), json_quote(canonical))));
}

std::vector<float> rows_of(const std::vector<float>& values, std::int64_t columns,
                           std::span<const RowRun> runs) {
  std::vector<float> out;
  out.reserve(values.size());
  for (const RowRun& run : runs) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(run.first * columns);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(run.count * columns));
  }
  return out;
}

std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows,
                              std::int64_t columns) {
  const auto n = static_cast<std::size_t>(rows), m = static_cast<std::size_t>(columns);
  std::vector<float> out(values.size());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) out[j * n + i] = values[i * m + j];
  }
  return out;
}

Result<LoraPair> read_pair(const std::string& module, const Halves& h) {
  if (!h.has_a || !h.has_b) {
    return fail(lora_error(
        "L08", fmt::format("{} has no {} beside it", json_quote(h.has_a ? h.a.name : h.b.name),
                           h.has_a ? "B" : "A")));
  }
  if (h.a.shape.rank() != 2 || h.b.shape.rank() != 2 || h.a.shape[0] != h.b.shape[1])
    return fail(rank_error(module, h));
  LoraPair pair;
  pair.place = h.embedding ? LoraPlace::kEmbedding : LoraPlace::kProduct;
  pair.rank = h.a.shape[0];
  pair.n_in = h.a.shape[1];
  pair.n_out = h.b.shape[0];
  pair.source = module;
  if (pair.rank < 1 || pair.rank > kMaxRank || pair.n_in < 1 || pair.n_out < 1)
    return fail(rank_error(module, h));
  CYB_ASSIGN(pair.a, values_of(h.a));
  CYB_ASSIGN(pair.b, values_of(h.b));
  return pair;
}

Result<void> place_pair(LoraPair pair, const Model& model, LoraAdapter& adapter) {
  const auto spec = ModelTensors(model).find(pair.tensor);
  if (!spec) return fail(missing_tensor(pair.tensor, "the adapter"));
  CYB_TRY(check_lora_pair(pair, *spec));
  for (const LoraPair& other : adapter.pairs) {
    if (other.tensor != pair.tensor || other.place != pair.place) continue;
    return fail(lora_error(
        "L08", fmt::format("{} and {} are for the same weight {}", json_quote(other.source),
                           json_quote(pair.source), json_quote(pair.tensor))));
  }
  adapter.pairs.push_back(std::move(pair));
  return {};
}

}  // namespace cyb::lora
