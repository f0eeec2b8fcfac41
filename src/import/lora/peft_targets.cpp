// PEFT puts nothing beside a module that its configuration does not name, and warns of tensors that
// are left over: an adapter with such tensors would compute something else here than there.
#include "import/lora/peft_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "paths/lora.hpp"

namespace cyb::lora {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostNames = 1 << 16;

Error bad_key(std::string_view key, std::string_view why) {
  return lora_error("L02", fmt::format("adapter_config.json: {} {}", json_quote(key), why));
}

const Json* given(const Json& config, const char* key) {
  const auto at = config.find(key);
  return at == config.end() || at->is_null() ? nullptr : &*at;
}

/// A text counts as a list of it where `one` allows.
Result<std::vector<std::string>> texts(const Json& value, const char* key, bool one) {
  if (one && value.is_string()) return std::vector{value.get<std::string>()};
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!value.is_array() || value.size() > kMostNames || !std::ranges::all_of(value, is_text))
    return fail(bad_key(key, "is no list of names"));
  return value.get<std::vector<std::string>>();
}

Result<ModuleNames> module_names(const Json& value, const char* key) {
  ModuleNames out;
  if (value.is_string()) {
    auto regex = text::Regex::compile("\\A(?:" + value.get_ref<const std::string&>() + ")\\z");
    if (!regex) return fail(bad_key(key, regex.error().message()));
    out.whole = *std::move(regex);
    return out;
  }
  CYB_ASSIGN(out.ends, texts(value, key, false));
  return out;
}

Result<std::vector<std::int64_t>> layer_numbers(const Json& value) {
  constexpr const char* kKey = "layers_to_transform";
  if (value.is_number_integer()) return std::vector{value.get<std::int64_t>()};
  const auto is_whole = [](const Json& item) { return item.is_number_integer(); };
  if (!value.is_array() || value.size() > kMostNames || !std::ranges::all_of(value, is_whole))
    return fail(bad_key(kKey, "is neither a whole number nor a list of them"));
  return value.get<std::vector<std::int64_t>>();
}

bool is_name_or_end(std::string_view module, std::string_view name) {
  return module == name || (module.size() > name.size() && module.ends_with(name) &&
                            module[module.size() - name.size() - 1] == '.');
}

/// The first number behind one of these names, or without them behind any that is not the first,
/// and with something behind it: "model.layers.3.mlp" is of layer 3.
std::optional<std::int64_t> layer_of(std::string_view module,
                                     const std::vector<std::string>& before) {
  std::string_view last;
  std::size_t begin = 0;
  for (std::size_t part = 0; begin <= module.size(); ++part) {
    const std::size_t dot = module.find('.', begin);
    if (dot == std::string_view::npos) break;  // nothing behind it
    const std::string_view text = module.substr(begin, dot - begin);
    std::int64_t layer = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), layer);
    const bool number = code == std::errc{} && end == text.data() + text.size() && layer >= 0;
    if (number && (before.empty() ? part >= 2 : std::ranges::count(before, last) != 0))
      return layer;
    last = text;
    begin = dot + 1;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> ModuleNames::match(std::string_view module) const {
  if (!whole) {
    return std::ranges::any_of(
        ends, [&](const std::string& name) { return is_name_or_end(module, name); });
  }
  text::RegexScan scan(*whole, module);
  CYB_ASSIGN(const auto match, scan.find(0));
  return match.found;
}

Result<bool> PeftTargets::names(std::string_view module) const {
  CYB_ASSIGN(const bool out, excluded.match(module));
  if (out) return false;
  if (!targets) return true;
  CYB_ASSIGN(const bool found, targets->match(module));
  // An expression says itself which layers it means; so does a whole name.
  if (!found || layers.empty() || targets->whole || std::ranges::count(targets->ends, module) != 0)
    return found;
  const auto layer = layer_of(module, layers_before);
  return layer && std::ranges::count(layers, *layer) != 0;
}

Result<PeftTargets> read_peft_targets(const Json& config) {
  PeftTargets out;
  const Json* const targets = given(config, "target_modules");
  if (targets != nullptr && *targets != "all-linear") {
    CYB_ASSIGN(out.targets, module_names(*targets, "target_modules"));
  }
  if (const Json* excluded = given(config, "exclude_modules"); excluded && !excluded->empty()) {
    CYB_ASSIGN(out.excluded, module_names(*excluded, "exclude_modules"));
    if (*excluded == "") out.excluded = {};
  }
  if (const Json* layers = given(config, "layers_to_transform")) {
    CYB_ASSIGN(out.layers, layer_numbers(*layers));
  }
  if (const Json* before = given(config, "layers_pattern"); before && *before != "") {
    CYB_ASSIGN(out.layers_before, texts(*before, "layers_pattern", true));
  }
  return out;
}

}  // namespace cyb::lora
