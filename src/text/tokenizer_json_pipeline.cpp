// Recognition of pipelines. A component is accepted only if all of its fields have the values whose
// meaning is built.
#include "text/tokenizer_json_pipeline.hpp"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizers/space_mark.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;

constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string shortened(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 160) text = text.substr(0, 160) + "...";
  return text;
}

Error refused(std::string_view where, const json& value) {
  return not_built(fmt::format("tokenizer.json: {}: {}", where, shortened(value)));
}

/// The value of `key`, or null.
const json& at(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

using Fields = std::initializer_list<std::pair<const char*, json>>;

/// `object` is {"type": type} with these fields and no others. A field with a null value may be
/// absent.
bool is(const json& object, const char* type, const Fields& fields) {
  if (!object.is_object() || at(object, "type") != type) return false;
  std::size_t known = 1;
  for (const auto& [key, value] : fields) {
    if (at(object, key) != value) return false;
    known += object.contains(key) ? 1 : 0;
  }
  return known == object.size();
}

json replace_fields(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// Steps of a component: itself, or those of a Sequence under `list`.
std::vector<json> steps_of(const json& component, const char* list) {
  if (component.is_null()) return {};
  if (component.is_object() && at(component, "type") == "Sequence" && component.size() == 2 &&
      at(component, list).is_array()) {
    return at(component, list).get<std::vector<json>>();
  }
  return {component};
}

// trim_offsets moves reported offsets only, never ids; use_regex is true where absent.
bool is_byte_level(const json& step, bool use_regex) {
  if (!step.is_object() || at(step, "type") != "ByteLevel") return false;
  for (const auto& [key, value] : step.items()) {
    if (key != "type" && key != "add_prefix_space" && key != "trim_offsets" && key != "use_regex")
      return false;
  }
  const json& regex = at(step, "use_regex");
  const bool uses = regex.is_null() || regex == true;
  return at(step, "add_prefix_space") == false && uses == use_regex;
}

bool is_split(const json& step, std::string_view pattern) {
  return is(step, "Split",
            {{"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
}

std::optional<PreTokenizer> byte_level_pre(const std::vector<json>& steps) {
  if (steps.size() == 1 && is_byte_level(steps[0], true)) return PreTokenizer::kGpt2;
  if (steps.size() == 1 && is_byte_level(steps[0], false)) return PreTokenizer::kNone;
  if (steps.size() != 2) return std::nullopt;
  if (is(steps[0], "Digits", {{"individual_digits", true}}) && is_byte_level(steps[1], true)) {
    return PreTokenizer::kSmollm;
  }
  if (!is_byte_level(steps[1], false)) return std::nullopt;
  if (is_split(steps[0], kQwen2Pattern)) return PreTokenizer::kQwen2;
  if (is_split(steps[0], kLlama3Pattern)) return PreTokenizer::kLlama3;
  return std::nullopt;
}

bool has_byte_level(const std::vector<json>& steps) {
  for (const json& step : steps) {
    if (at(step, "type") == "ByteLevel") return true;
  }
  return false;
}

Result<void> recognise_byte_level(const json& document, const std::vector<json>& steps,
                                  TokenizerConfig& config) {
  const auto pre = byte_level_pre(steps);
  if (!pre) return fail(refused("pre_tokenizer", at(document, "pre_tokenizer")));
  config.type = TokenizerKind::kBpe;
  config.pre = *pre;
  const std::vector<json> normal = steps_of(at(document, "normalizer"), "normalizers");
  config.nfc = normal.size() == 1 && is(normal[0], "NFC", {});
  if (!normal.empty() && !config.nfc)
    return fail(refused("normalizer", at(document, "normalizer")));
  const json& decoder = at(document, "decoder");
  if (at(decoder, "type") != "ByteLevel") return fail(refused("decoder", decoder));
  return {};
}

Result<void> recognise_spm_normalizer(const json& document, TokenizerConfig& config) {
  const json& normalizer = at(document, "normalizer");
  std::vector<json> steps = steps_of(normalizer, "normalizers");
  if (!steps.empty() && is(steps[0], "Prepend", {{"prepend", kSpaceMark}})) {
    config.add_space_prefix = true;
    config.space_prefix = SpacePrefix::kEverySegment;
    steps.erase(steps.begin());
  }
  if (steps.size() == 1 && steps[0] == replace_fields(" ", kSpaceMark.data())) return {};
  return fail(refused("normalizer", normalizer));
}

// Metaspace: {"replacement": "U+2581", "prepend_scheme": first | always | never, "split": bool};
// older files say add_prefix_space instead of prepend_scheme.
Result<void> recognise_metaspace(const json& step, TokenizerConfig& config) {
  const json& scheme = at(step, "prepend_scheme");
  const json& split = at(step, "split");
  const json& old_prefix = at(step, "add_prefix_space");
  std::size_t known = 2;
  for (const json* field : {&scheme, &split, &old_prefix}) known += field->is_null() ? 0 : 1;
  if (at(step, "replacement") != kSpaceMark || known != step.size()) {
    return fail(refused("pre_tokenizer", step));
  }
  config.split_words = split.is_null() || split == true;
  config.add_space_prefix = true;
  if (scheme == "first") {
    config.space_prefix = SpacePrefix::kFirstSegment;
  } else if (scheme == "always" || (scheme.is_null() && old_prefix == true)) {
    config.space_prefix = SpacePrefix::kEverySegmentMissing;
  } else if (scheme == "never") {
    config.add_space_prefix = false;
  } else {
    return fail(refused("pre_tokenizer", step));
  }
  return {};
}

// What turns U+2581 back into spaces and bytes into text; the strip must match the prefix that is
// added.
bool is_spm_decoder(const json& decoder, bool strips) {
  const std::vector<json> steps = steps_of(decoder, "decoders");
  const bool strip_step =
      steps.size() == 4 && is(steps[3], "Strip", {{"content", " "}, {"start", 1}, {"stop", 0}});
  return (steps.size() == 3 || strip_step) && strip_step == strips &&
         steps[0] == replace_fields(kSpaceMark.data(), " ") && is(steps[1], "ByteFallback", {}) &&
         is(steps[2], "Fuse", {});
}

Result<void> recognise_spm(const json& document, TokenizerConfig& config) {
  config.type = TokenizerKind::kSpm;
  const json& pre = at(document, "pre_tokenizer");
  if (at(pre, "type") == "Metaspace") {
    if (!steps_of(at(document, "normalizer"), "normalizers").empty()) {
      return fail(refused("normalizer", at(document, "normalizer")));
    }
    CYB_TRY(recognise_metaspace(pre, config));
  } else {
    CYB_TRY(recognise_spm_normalizer(document, config));
    // Gemma splits at spaces after all spaces have been replaced: nothing is left to split.
    const bool nothing =
        pre.is_null() ||
        is(pre, "Split",
           {{"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}});
    if (!nothing) return fail(refused("pre_tokenizer", pre));
  }
  const json& decoder = at(document, "decoder");
  if (!is_spm_decoder(decoder, config.add_space_prefix)) return fail(refused("decoder", decoder));
  return {};
}

Result<void> recognise_model(const json& model, TokenizerConfig& config) {
  const json& type = at(model, "type");
  if (!model.is_object() || (!type.is_null() && type != "BPE"))
    return fail(refused("model.type", type));
  constexpr std::array<std::string_view, 8> kKnown{"type",
                                                   "dropout",
                                                   "unk_token",
                                                   "continuing_subword_prefix",
                                                   "end_of_word_suffix",
                                                   "fuse_unk",
                                                   "byte_fallback",
                                                   "ignore_merges"};
  for (const auto& [key, value] : model.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) {
      return fail(refused("model." + key, value));
    }
  }
  const auto empty = [&](const char* key) {
    const auto& value = at(model, key);
    return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
  };
  const auto flag = [&](const char* key) {
    return at(model, key).is_null() || at(model, key).is_boolean();
  };
  if (!at(model, "dropout").is_null() && at(model, "dropout") != 0.0)
    return fail(refused("model.dropout", at(model, "dropout")));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!empty(key)) return fail(refused(fmt::format("model.{}", key), at(model, key)));
  }
  for (const char* key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    if (!flag(key)) return fail(refused(fmt::format("model.{}", key), at(model, key)));
  }
  config.fuse_unk = at(model, "fuse_unk") == true;
  config.byte_fallback = at(model, "byte_fallback") == true;
  config.ignore_merges = at(model, "ignore_merges") == true;
  if (config.type == TokenizerKind::kBpe && config.byte_fallback) {
    return fail(refused("model.byte_fallback of a byte-level model", at(model, "byte_fallback")));
  }
  if (config.type == TokenizerKind::kSpm && config.ignore_merges) {
    return fail(
        refused("model.ignore_merges of a SentencePiece model", at(model, "ignore_merges")));
  }
  return {};
}

}  // namespace

Result<TokenizerConfig> recognise_pipeline(const json& document) {
  TokenizerConfig config;
  const std::vector<json> steps = steps_of(at(document, "pre_tokenizer"), "pretokenizers");
  if (has_byte_level(steps)) {
    CYB_TRY(recognise_byte_level(document, steps, config));
  } else {
    CYB_TRY(recognise_spm(document, config));
  }
  CYB_TRY(recognise_model(at(document, "model"), config));
  return config;
}

}  // namespace cyb::text
