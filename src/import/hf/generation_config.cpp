// Generation settings; a greedy model keeps its repetition penalty, as transformers applies it
// without sampling too.
#include "import/hf/generation_config.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "import/hf/config_reader.hpp"

namespace cyb::hf {
namespace {

/// Keys that change no token.
constexpr std::array kHarmless = {"transformers_version",    "use_cache",     "output_attentions",
                                  "output_hidden_states",    "output_scores", "output_logits",
                                  "return_dict_in_generate", "max_length",    "max_new_tokens",
                                  "cache_implementation",    "chat_format",   "trust_remote_code"};

bool is_neutral(const nlohmann::json& value) {
  return value.is_number() && value.get<double>() == 1.0;
}

struct NumberRange {
  double min, max;
};

Result<double> number_in(ConfigReader& reader, std::string_view key, double fallback,
                         NumberRange range) {
  CYB_ASSIGN(const std::optional<double> value, reader.number(key));
  const double out = value.value_or(fallback);
  if (out >= range.min && out <= range.max) return out;
  return reader.refuse(key, fmt::format("{} is out of range: {}..{}", out, range.min, range.max));
}

Result<void> read_sampling(ConfigReader& reader, ConfigTable& out) {
  CYB_ASSIGN(const std::optional<bool> sample, reader.boolean("do_sample"));
  CYB_ASSIGN(const double temperature, number_in(reader, "temperature", 1.0, {0.0, 1e6}));
  CYB_ASSIGN(const std::optional<std::int64_t> top_k, reader.integer("top_k", 0, INT32_MAX));
  CYB_ASSIGN(const double top_p, number_in(reader, "top_p", 1.0, {0.0, 1.0}));
  CYB_ASSIGN(const double min_p, number_in(reader, "min_p", 0.0, {0.0, 1.0}));
  CYB_ASSIGN(const double typical_p, number_in(reader, "typical_p", 1.0, {1e-9, 1.0}));
  CYB_ASSIGN(const double penalty, number_in(reader, "repetition_penalty", 1.0, {1e-6, 1e6}));
  const bool chain = sample.value_or(false) && temperature > 0;
  out.set("method", chain ? "chain" : "greedy");
  if (chain) {
    out.set("temperature", temperature);
    out.set("top_k", top_k.value_or(50));
    out.set("top_p", top_p);
    out.set("min_p", min_p);
    if (typical_p != 1.0) out.set("typical_p", typical_p);
  }
  if (chain || penalty != 1.0) out.set("repetition_penalty", penalty);
  return {};
}

}  // namespace

Result<GenerationConfig> read_generation_config(const nlohmann::json* config,
                                                ImportReport& report) {
  GenerationConfig out;
  if (config == nullptr) {
    out.sampling.set("method", "greedy");
    return out;
  }
  if (!config->is_object())
    return fail(invalid_config("generation_config.json", "is not an object"));
  ConfigReader reader(*config, "generation_config.json: ");
  CYB_TRY(read_sampling(reader, out.sampling));
  CYB_ASSIGN(out.eos_ids, reader.ids("eos_token_id"));
  CYB_ASSIGN(out.bos_id, reader.integer("bos_token_id", 0, INT32_MAX));
  CYB_ASSIGN(out.pad_id, reader.integer("pad_token_id", -1, INT32_MAX));
  if (out.pad_id && *out.pad_id < 0) out.pad_id.reset();
  for (const char* key : kHarmless) reader.ignore(key);
  for (const std::string& key : reader.unread()) {
    if (key.starts_with("_") || is_neutral((*config)[key])) continue;
    report.warnings.push_back(fmt::format("generation_config.json: {} = {} is not applied", key,
                                          json_excerpt((*config)[key])));
  }
  return out;
}

}  // namespace cyb::hf
