// Keys are used, harmless, or off. A key that is not known may be there if it is off (null, false,
// empty): so says PEFT about what it does not do.
#include "import/lora/peft_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "paths/lora.hpp"

namespace cyb::lora {
namespace {

using Json = nlohmann::json;

constexpr double kMaxRank = 65536;

Error bad_key(std::string_view key, std::string_view why) {
  return lora_error("L02", fmt::format("adapter_config.json: {} {}", json_quote(key), why));
}

/// Keys that change nothing at run time, whatever they say.
constexpr std::array kHarmless = {
    "task_type",      "auto_mapping", "peft_version",  "revision",   "base_model_name_or_path",
    "inference_mode", "lora_dropout", "megatron_core", "eva_config", "qalora_group_size",
    "fan_in_fan_out"};
constexpr std::array kUsed = {"peft_type",      "r",
                              "lora_alpha",     "use_rslora",
                              "bias",           "rank_pattern",
                              "alpha_pattern",  "init_lora_weights",
                              "target_modules", "exclude_modules",
                              "layers_pattern", "layers_to_transform"};

struct Refused {
  std::string_view key, what;
};
constexpr std::array kOtherMaths = {
    Refused{"use_dora", "DoRA"},
    Refused{"alora_invocation_tokens", "activated LoRA"},
    Refused{"layer_replication", "replicated layers"},
    Refused{"lora_bias", "a bias on B"},
    Refused{"use_qalora", "QALoRA"},
    Refused{"target_parameters", "adapters on parameters of a module"}};
constexpr std::array kOtherWeights = {Refused{"modules_to_save", "whole modules"},
                                      Refused{"trainable_token_indices", "rows of the embedding"}};

/// Null, false, 0, "" and what is empty: the key asks for nothing.
bool is_off(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.is_null() || (value.is_structured() && value.empty());
}

template <std::size_t N>
const Refused* find_refused(const std::array<Refused, N>& rows, std::string_view key) {
  const auto at = std::ranges::find(rows, key, &Refused::key);
  return at == rows.end() ? nullptr : &*at;
}

Result<void> check_key(std::string_view key, const Json& value) {
  if (std::ranges::count(kHarmless, key) != 0 || std::ranges::count(kUsed, key) != 0) return {};
  if (is_off(value)) return {};
  if (const Refused* row = find_refused(kOtherWeights, key)) {
    return fail(lora_error("L06", fmt::format("adapter_config.json: {}: an adapter with {} beside "
                                              "A and B is not supported",
                                              json_quote(key), row->what)));
  }
  const Refused* row = find_refused(kOtherMaths, key);
  return fail(lora_error(
      "L05", fmt::format("adapter_config.json: {}: {} not supported", json_quote(key),
                         row != nullptr ? std::string(row->what) + " is" : "what it asks for is")));
}

/// Some ways to begin a training change the weights of the model too.
Result<void> check_init(const Json& config) {
  const auto at = config.find("init_lora_weights");
  if (at == config.end() || at->is_boolean() || at->is_null()) return {};
  constexpr std::array kBeside = {"gaussian", "eva", "orthogonal", "lora_fa", "true", "false"};
  if (at->is_string() && std::ranges::count(kBeside, at->get_ref<const std::string&>()) != 0)
    return {};
  return fail(lora_error(
      "L05",
      fmt::format("adapter_config.json: \"init_lora_weights\": {} changes the weights of the "
                  "model as well; save the adapter converted to plain LoRA",
                  at->is_string() ? json_quote(at->get_ref<const std::string&>())
                                  : std::string("what it names"))));
}

Result<double> number(const Json& value, std::string_view key) {
  if (!value.is_number()) return fail(bad_key(key, "is no number"));
  const double out = value.get<double>();
  if (!std::isfinite(out)) return fail(bad_key(key, "is not finite"));
  return out;
}

Result<double> rank(const Json& value, std::string_view key) {
  CYB_ASSIGN(const double out, number(value, key));
  if (!value.is_number_integer() || out < 1 || out > kMaxRank)
    return fail(bad_key(key, fmt::format("is no whole number of 1..{}", kMaxRank)));
  return out;
}

Result<bool> boolean_or_false(const Json& config, const char* key) {
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return false;
  if (!at->is_boolean()) return fail(bad_key(key, "is neither true nor false"));
  return at->get<bool>();
}

Result<double> required(const Json& config, const char* key,
                        Result<double> (*read)(const Json&, std::string_view)) {
  const auto at = config.find(key);
  if (at == config.end()) return fail(bad_key(key, "is missing"));
  return read(*at, key);
}

Result<PeftConfig::Patterns> patterns(const Json& config, const char* key,
                                      Result<double> (*read)(const Json&, std::string_view)) {
  constexpr std::size_t kMost = 4096;
  PeftConfig::Patterns out;
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return out;
  if (!at->is_object() || at->size() > kMost)
    return fail(bad_key(key, fmt::format("is no object of at most {} patterns", kMost)));
  for (const auto& [pattern, value] : at->items()) {
    CYB_ASSIGN(const double wanted, read(value, key));
    auto regex = text::Regex::compile("\\A(?:.*\\.)?(?:" + pattern + ")\\z");
    if (!regex) return fail(bad_key(key, regex.error().message()));
    out.emplace_back(*std::move(regex), wanted);
  }
  return out;
}

Result<double> value_of(const PeftConfig::Patterns& patterns, std::string_view module,
                        double fallback, std::string_view key) {
  std::optional<double> found;
  for (const auto& [regex, value] : patterns) {
    text::RegexScan scan(regex, module);
    CYB_ASSIGN(const auto match, scan.find(0));
    if (!match.found) continue;
    if (found && *found != value) {
      return fail(
          bad_key(key, fmt::format("has two patterns of other values for {}", json_quote(module))));
    }
    found = value;
  }
  return found.value_or(fallback);
}

}  // namespace

Result<double> PeftConfig::rank_of(std::string_view module) const {
  return value_of(ranks, module, rank, "rank_pattern");
}

Result<double> PeftConfig::alpha_of(std::string_view module) const {
  return value_of(alphas, module, alpha, "alpha_pattern");
}

Result<PeftConfig> read_peft_config(const Json& config) {
  if (!config.is_object()) return fail(lora_error("L02", "adapter_config.json is no object"));
  const auto type = config.find("peft_type");
  if (type == config.end() || !type->is_string()) return fail(bad_key("peft_type", "is missing"));
  if (type->get_ref<const std::string&>() != "LORA") {
    return fail(lora_error("L04", fmt::format("adapter_config.json: peft_type {} is not supported: "
                                              "only LORA is",
                                              json_quote(type->get_ref<const std::string&>()))));
  }
  for (const auto& [key, value] : config.items()) CYB_TRY(check_key(key, value));
  CYB_TRY(check_init(config));
  const auto bias = config.find("bias");
  if (bias != config.end() && !bias->is_null() && *bias != "none") {
    return fail(lora_error(
        "L06",
        "adapter_config.json: \"bias\": an adapter with biases of the model beside A and B "
        "is not supported"));
  }
  PeftConfig out;
  CYB_ASSIGN(out.rank, required(config, "r", rank));
  CYB_ASSIGN(out.alpha, required(config, "lora_alpha", number));
  CYB_ASSIGN(out.rslora, boolean_or_false(config, "use_rslora"));
  CYB_ASSIGN(out.ranks, patterns(config, "rank_pattern", rank));
  CYB_ASSIGN(out.alphas, patterns(config, "alpha_pattern", number));
  CYB_ASSIGN(out.targets, read_peft_targets(config));
  return out;
}

}  // namespace cyb::lora
