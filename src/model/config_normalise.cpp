// Legacy conventions and synonyms of the config part, rewritten to today's keys when a file is
// read.
#include <optional>
#include <utility>

#include "model/config_check.hpp"

namespace cyb {
namespace {

void normalise_architecture(ConfigTable& config) {
  const ConfigValue* eps = config.at("architecture.rms_norm_eps");
  if (eps != nullptr && eps->number().value_or(0) >= 1) {
    config.table("architecture").set("rms_norm_eps", 1.0 / *eps->number());
  }
  const ConfigValue* types = config.at("architecture.layer_types");
  if (types == nullptr || types->array() == nullptr) return;
  ConfigArray renamed = *types->array();
  for (ConfigValue& type : renamed) {
    const std::string* name = type.string();
    if (name != nullptr && *name == "full_attention")
      type = "full";
    else if (name != nullptr && *name == "sliding_attention")
      type = "sliding";
  }
  config.table("architecture").set("layer_types", std::move(renamed));
}

void normalise_tokenizer(ConfigTable& config) {
  if (config.find_table("tokenizer") == nullptr) return;
  ConfigTable& tokenizer = config.table("tokenizer");
  constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
      {"bos_id", "bos_token_id"},
      {"pad_id", "pad_token_id"},
      {"eos_id", "eos_token_ids"},
      {"eos_token_id", "eos_token_ids"}};
  for (const auto& [old_name, name] : kSynonyms) {
    const ConfigValue* found = tokenizer.find(old_name);
    if (found == nullptr) continue;
    const ConfigValue value = *found;
    tokenizer.erase(old_name);
    if (tokenizer.find(name) != nullptr) continue;
    const bool wrap = name == "eos_token_ids" && value.array() == nullptr;
    tokenizer.append(std::string(name), wrap ? ConfigValue(ConfigArray{value}) : value);
  }
}

void normalise_sampling(ConfigTable& config) {
  const ConfigTable* sampling = config.find_table("sampling");
  const ConfigValue* stated = config.at("sampling.scale");
  const std::int64_t* scale = stated == nullptr ? nullptr : stated->integer();
  if (sampling == nullptr || scale == nullptr || *scale <= 0) return;
  ConfigTable scaled;
  for (const auto& [key, value] : sampling->items()) {
    const auto number = value.number();
    if (key == "scale") continue;
    if (!number) {
      scaled.append(key, value);
    } else if (key == "top_k" || key == "seed") {
      scaled.append(key,
                    value.integer() == nullptr ? value : ConfigValue(*value.integer() / *scale));
    } else {
      scaled.append(key, *number / static_cast<double>(*scale));
    }
  }
  config.set("sampling", std::move(scaled));
}

}  // namespace

void normalise_config(ConfigTable& config) {
  normalise_architecture(config);
  normalise_tokenizer(config);
  normalise_sampling(config);
}

}  // namespace cyb
