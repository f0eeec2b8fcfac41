// The table. Expressions are those of the checkpoints' own tokenizer.json.
#include "text/gguf_pre_tokenizers.hpp"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cyb::text {
namespace {

using nlohmann::json;

/// Names of the built-in scanners. Flags as in gguf_pre_names.inc; s: BOS and EOS around a text.
struct PresetRow {
  std::string_view names;
  PreTokenizer pre;
  std::string_view flags;
};
constexpr std::array<PresetRow, 10> kPresets{{
    {"gpt-2,phi-2,jina-es,jina-de,gigachat,jina-v2-es,jina-v2-de,a.x-4.0,mellum,exaone4,jais,"
     "trillion,granite-docling",
     PreTokenizer::kGpt2, ""},
    {"mpt,olmo,modern-bert", PreTokenizer::kGpt2, "n"},
    {"jina-v1-en,jina-v2-code,roberta-bpe", PreTokenizer::kGpt2, "s"},
    {"smollm,starcoder,refact,codeshell,exaone,minerva-7b,mellum2", PreTokenizer::kSmollm, ""},
    {"command-r", PreTokenizer::kSmollm, "n"},
    {"qwen2,deepseek-r1-qwen,kormo,f2llmv2,megrez", PreTokenizer::kQwen2, "n"},
    {"stablelm2,hunyuan,solar-open,grok-2", PreTokenizer::kQwen2, ""},
    {"llama3,llama-v3,llama-bpe,falcon3,falcon-h1,pixtral,midm-2.0,lfm2,jina-v5-nano",
     PreTokenizer::kLlama3, "ib"},
    {"dbrx,smaug-bpe,chatglm-bpe", PreTokenizer::kLlama3, ""},
    {"glm4,glm5", PreTokenizer::kLlama3, "i"},
}};

struct SplitRow {
  std::string_view names;
  std::string_view flags;
  std::initializer_list<std::string_view> patterns;
};

const std::initializer_list<SplitRow>& split_rows() {
  static const std::initializer_list<SplitRow> kRows{
#include "text/gguf_pre_names.inc"
  };
  return kRows;
}

bool has_name(std::string_view names, std::string_view name) noexcept {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    if (names.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) return false;
    names.remove_prefix(comma + 1);
  }
  return false;
}

json byte_level(bool cuts) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", false},
          {"use_regex", cuts}};
}

json split(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

void set_flags(std::string_view flags, GgufPre& out) {
  const auto has = [&](char flag) { return flags.find(flag) != std::string_view::npos; };
  out.config.ignore_merges = has('i');
  out.config.nfc = has('n');
  out.add_bos = has('b');
  out.add_sep = has('s');
}

GgufPre from_preset(const PresetRow& row) {
  GgufPre out;
  out.config = tokenizer_preset(TokenizerKind::kBpe, row.pre);
  set_flags(row.flags, out);
  return out;
}

GgufPre from_steps(json steps, std::string_view flags) {
  GgufPre out;
  out.config = tokenizer_preset(TokenizerKind::kBpe, PreTokenizer::kNone);
  set_flags(flags, out);
  json pipeline{{"pre_tokenizer", std::move(steps)}, {"decoder", json::array({byte_level(true)})}};
  if (out.config.nfc) pipeline["normalizer"] = json::array({{{"type", "NFC"}}});
  out.config.nfc = false;
  out.config.pipeline = pipeline.dump();
  return out;
}

}  // namespace

Result<GgufPre> gguf_pre(std::string_view name) {
  for (const PresetRow& row : kPresets) {
    if (has_name(row.names, name)) return from_preset(row);
  }
  if (name == "falcon") {
    // The digits are cut in the byte alphabet, where some bytes of other characters are numbers.
    json steps = json::array({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                              byte_level(true),
                              {{"type", "Digits"}, {"individual_digits", false}},
                              split("[0-9][0-9][0-9]")});
    return from_steps(std::move(steps), "");
  }
  for (const SplitRow& row : split_rows()) {
    if (!has_name(row.names, name)) continue;
    json steps = json::array();
    bool cuts = false;
    for (const std::string_view pattern : row.patterns) {
      cuts = cuts || pattern == "@gpt2";
      if (pattern != "@gpt2") steps.push_back(split(pattern));
    }
    steps.push_back(byte_level(cuts));
    return from_steps(std::move(steps), row.flags);
  }
  return fail(not_built(fmt::format("tokenizer.ggml.pre \"{}\"", name)));
}

}  // namespace cyb::text
