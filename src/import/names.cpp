// Name tables of the families and the rules of names.
#include "import/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_text.hpp"
#include "base/utf8.hpp"

namespace cyb {
namespace {

#define CYB_NAME(gguf, canonical, need) NameRow{gguf, canonical, NameNeed::need},
constexpr NameRow kLlama[] = {
#include "import/names/llama.inc"
};
constexpr NameRow kQwen2[] = {
#include "import/names/qwen2.inc"
};
constexpr NameRow kQwen3[] = {
#include "import/names/qwen3.inc"
};
constexpr NameRow kGemma3[] = {
#include "import/names/gemma3.inc"
};
constexpr NameRow kGemma[] = {
#include "import/names/gemma.inc"
};
constexpr NameRow kGemma2[] = {
#include "import/names/gemma2.inc"
};
constexpr NameRow kSmollm3[] = {
#include "import/names/smollm3.inc"
};
constexpr NameRow kGranite[] = {
#include "import/names/granite.inc"
};
constexpr NameRow kInternlm2[] = {
#include "import/names/internlm2.inc"
};
constexpr NameRow kOlmo2[] = {
#include "import/names/olmo2.inc"
};
constexpr NameRow kPhi2[] = {
#include "import/names/phi2.inc"
};
constexpr NameRow kPhi3[] = {
#include "import/names/phi3.inc"
};
constexpr NameRow kStarcoder2[] = {
#include "import/names/starcoder2.inc"
};
constexpr NameRow kGpt2[] = {
#include "import/names/gpt2.inc"
};
constexpr NameRow kStarcoder[] = {
#include "import/names/starcoder.inc"
};
#undef CYB_NAME

struct Table {
  std::string_view architecture;
  std::span<const NameRow> rows;
};

constexpr std::array kTables = {
    Table{"llama", kLlama},           Table{"qwen2", kQwen2},     Table{"qwen3", kQwen3},
    Table{"gemma3", kGemma3},         Table{"gemma", kGemma},     Table{"gemma2", kGemma2},
    Table{"smollm3", kSmollm3},       Table{"granite", kGranite}, Table{"internlm2", kInternlm2},
    Table{"olmo2", kOlmo2},           Table{"phi2", kPhi2},       Table{"phi3", kPhi3},
    Table{"starcoder2", kStarcoder2}, Table{"gpt2", kGpt2},       Table{"starcoder", kStarcoder}};

constexpr std::string_view kMark = "{i}";
constexpr std::array<std::string_view, 2> kLayerPrefixes = {"model.layers.", "h."};

/// Order of a layer's tensors in the written file: the order in which a forward pass reads them.
constexpr std::array<std::string_view, 24> kLayerOrder = {"input_layernorm.",
                                                          "ln_1.",
                                                          "self_attn.q_proj.",
                                                          "self_attn.k_proj.",
                                                          "self_attn.v_proj.",
                                                          "self_attn.qkv_proj.",
                                                          "attn.c_attn.",
                                                          "self_attn.q_norm.",
                                                          "self_attn.k_norm.",
                                                          "self_attn.o_proj.",
                                                          "self_attn.dense.",
                                                          "attn.c_proj.",
                                                          "post_attention_layernorm.",
                                                          "ln_2.",
                                                          "pre_feedforward_layernorm.",
                                                          "mlp.gate_proj.",
                                                          "mlp.gate_up_proj.",
                                                          "mlp.up_proj.",
                                                          "mlp.c_fc.",
                                                          "mlp.fc1.",
                                                          "mlp.down_proj.",
                                                          "mlp.c_proj.",
                                                          "mlp.fc2.",
                                                          "post_feedforward_layernorm."};

std::optional<std::uint32_t> layer_number(std::string_view digits) noexcept {
  if (digits.empty() || digits.size() > 6 || (digits.size() > 1 && digits[0] == '0'))
    return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> name_problem(std::string_view name) {
  if (name.empty()) return "is empty";
  if (utf8_find_invalid(name) != std::string_view::npos) return "is not valid UTF-8";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, is_control)) return "has a control character";
  if (name.front() == '/' || name.find("../") != std::string_view::npos ||
      name.find("..\\") != std::string_view::npos) {
    return "looks like a path";
  }
  return std::nullopt;
}

std::span<const NameRow> gguf_names(std::string_view architecture) noexcept {
  for (const Table& table : kTables) {
    if (table.architecture == architecture) return table.rows;
  }
  return {};
}

std::optional<std::uint32_t> match_name(std::string_view pattern, std::string_view name) noexcept {
  const std::size_t mark = pattern.find(kMark);
  if (mark == std::string_view::npos)
    return pattern == name ? std::optional(std::uint32_t{0}) : std::nullopt;
  const std::string_view before = pattern.substr(0, mark);
  const std::string_view after = pattern.substr(mark + kMark.size());
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after)) {
    return std::nullopt;
  }
  return layer_number(name.substr(before.size(), name.size() - before.size() - after.size()));
}

std::string fill_name(std::string_view pattern, std::uint32_t layer) {
  std::string out(pattern);
  const std::size_t mark = out.find(kMark);
  if (mark != std::string::npos) out.replace(mark, kMark.size(), std::to_string(layer));
  return out;
}

std::optional<std::string> canonical_name(std::span<const NameRow> table, std::string_view name) {
  for (const NameRow& row : table) {
    if (const auto layer = match_name(row.gguf, name)) return fill_name(row.canonical, *layer);
  }
  return std::nullopt;
}

std::optional<std::string> gguf_name(std::span<const NameRow> table, std::string_view canonical) {
  for (const NameRow& row : table) {
    if (const auto layer = match_name(row.canonical, canonical)) return fill_name(row.gguf, *layer);
  }
  return std::nullopt;
}

Result<void> check_presence(std::span<const NameRow> table, std::int64_t n_layers,
                            const std::set<std::string, std::less<>>& canonical,
                            std::string_view model_type, bool by_gguf) {
  for (const NameRow& row : table) {
    const bool per_layer = row.canonical.find(kMark) != std::string_view::npos;
    const auto last = static_cast<std::uint32_t>(per_layer ? n_layers : 1);
    std::optional<std::uint32_t> absent;
    bool any = false;
    for (std::uint32_t layer = 0; layer < last && !(absent && any); ++layer) {
      if (canonical.contains(fill_name(row.canonical, layer))) {
        any = true;
      } else if (!absent) {
        absent = layer;
      }
      if (absent && row.need == NameNeed::kRequired) break;
    }
    if (!absent || (row.need == NameNeed::kOptional && !any)) continue;
    return fail(
        Error(ErrorKind::kMissingTensor, "F32",
              fmt::format("model_type {}: missing tensor {}", model_type,
                          json_quote(fill_name(by_gguf ? row.gguf : row.canonical, *absent)))));
  }
  return {};
}

std::uint64_t file_order(std::string_view canonical) {
  constexpr std::uint64_t kLayers = std::uint64_t{1} << 32, kTail = std::uint64_t{1} << 60;
  if (canonical == "model.embed_tokens.weight" || canonical == "wte.weight") return 0;
  if (canonical.starts_with("cyb.") || canonical == "wpe.weight") return 1;
  for (const std::string_view prefix : kLayerPrefixes) {
    if (!canonical.starts_with(prefix)) continue;
    const std::string_view rest = canonical.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    const auto layer = layer_number(rest.substr(0, dot));
    if (dot == std::string_view::npos || !layer) continue;
    const std::string_view tail = rest.substr(dot + 1);
    const auto starts = [tail](std::string_view part) { return tail.starts_with(part); };
    const auto at = std::ranges::find_if(kLayerOrder, starts) - kLayerOrder.begin();
    const std::uint64_t bias = tail.ends_with(".bias") ? 1 : 0;
    return kLayers * (*layer + 1) + static_cast<std::uint64_t>(at) * 2 + bias;
  }
  constexpr std::array<std::string_view, 3> kFinalNorms = {"model.norm.", "model.final_layernorm.",
                                                           "ln_f."};
  for (const std::string_view norm : kFinalNorms) {
    if (canonical.starts_with(norm)) return kTail;
  }
  if (canonical == "lm_head.weight") return kTail + 1;
  return kTail + 2;
}

bool carries_no_information(std::string_view name) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  // GPT-2's causal mask and its value of "masked".
  const bool gpt2 = name.starts_with("h.") || name.starts_with("transformer.h.");
  return gpt2 && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

}  // namespace cyb
