// The table of encodings (tiktoken's openai_public.py, Qwen's and Llama 3's own tokenizer classes)
// and the reader of rank files. Possessive quantifiers are left out where they change nothing.
#include "text/tiktoken_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/normalizers/steps.hpp"
#include "text/tokenizers/byte_level.hpp"

namespace cyb {
namespace {

using nlohmann::json;

constexpr std::string_view kR50k =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?![\s\S])|\s+(?!\S)|\s)";
constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Special {
  std::string_view text;  // "{}" stands for the number of the token in its row
  std::int32_t id = -1;   // -1: behind the last rank, one after the other
  std::int32_t count = 1, from = 0;
};

struct Encoding {
  std::string_view name, pattern;
  bool nfc;
  std::string_view bos, end;
  std::initializer_list<Special> specials;
};

const std::initializer_list<Encoding>& encodings() {
  static const std::initializer_list<Encoding> kAll{
      {"r50k_base", kR50k, false, "", "<|endoftext|>", {{"<|endoftext|>", 50256}}},
      {"p50k_base", kR50k, false, "", "<|endoftext|>", {{"<|endoftext|>", 50256}}},
      {"cl100k_base",
       kCl100k,
       false,
       "",
       "<|endoftext|>",
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base",
       kO200k,
       false,
       "",
       "<|endoftext|>",
       {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
      {"qwen",
       kQwen,
       true,
       "",
       "<|endoftext|>",
       {{"<|endoftext|>"}, {"<|im_start|>"}, {"<|im_end|>"}, {"<|extra_{}|>", -1, 205}}},
      {"llama3",
       kLlama3,
       false,
       "<|begin_of_text|>",
       "<|end_of_text|>",
       {{"<|begin_of_text|>"},
        {"<|end_of_text|>"},
        {"<|reserved_special_token_{}|>", -1, 2},
        {"<|finetune_right_pad_id|>"},
        {"<|step_id|>"},
        {"<|start_header_id|>"},
        {"<|end_header_id|>"},
        {"<|eom_id|>"},
        {"<|eot_id|>"},
        {"<|python_tag|>"},
        {"<|image|>"},
        {"<|reserved_special_token_{}|>", -1, 244, 2}}},
  };
  return kAll;
}

Error bad(std::size_t line, std::string_view what) {
  return Error(ErrorKind::kFormat, fmt::format("tiktoken: line {}: {}", line, what));
}

struct Ranked {
  std::string bytes;
  std::size_t rank = 0;
};

Result<Ranked> read_line(std::string_view line, std::size_t number) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return fail(bad(number, "no text and rank"));
  const std::string_view digits = line.substr(space + 1);
  Ranked out;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), out.rank);
  if (code != std::errc() || end != digits.data() + digits.size() || out.rank >= kMaxVocab) {
    return fail(bad(number, "the rank is no number or too large"));
  }
  auto bytes = text::base64_bytes(line.substr(0, space));
  if (!bytes || bytes->empty()) return fail(bad(number, "the text is not base64"));
  out.bytes = std::move(*bytes);
  return out;
}

std::string mapped(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    utf8_append(out, text::byte_to_char(static_cast<std::uint8_t>(byte)));
  }
  return out;
}

/// Texts by rank, in the byte alphabet; "" is a hole.
Result<std::vector<std::string>> read_ranks(std::string_view text) {
  std::vector<std::string> out;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    CYB_ASSIGN(const Ranked ranked, read_line(line, number));
    // A hole needs a line of its own somewhere: memory stays in proportion to the file.
    if (ranked.rank > out.size() + 1024) return fail(bad(number, "a rank far above the others"));
    if (ranked.rank >= out.size()) out.resize(ranked.rank + 1);
    if (!out[ranked.rank].empty()) return fail(bad(number, "a rank that is there twice"));
    out[ranked.rank] = mapped(ranked.bytes);
  }
  return out;
}

Result<void> fill(const std::vector<std::string>& ranks, const Encoding& encoding,
                  TokenizerParts& parts) {
  struct Named {
    std::string text;
    std::size_t id = 0;
  };
  std::vector<Named> specials;
  std::size_t next = ranks.size();
  for (const Special& special : encoding.specials) {
    for (std::int32_t i = 0; i < special.count; ++i) {
      const std::size_t id = special.id < 0 ? next : static_cast<std::size_t>(special.id);
      next = id + 1;
      const bool row = special.count > 1;
      specials.push_back({row ? fmt::format(fmt::runtime(special.text), special.from + i)
                              : std::string(special.text),
                          id});
    }
  }
  std::size_t at = 0;
  for (std::size_t id = 0; id < std::max(next, ranks.size()); ++id) {
    const bool special = at < specials.size() && specials[at].id == id;
    const bool ranked = id < ranks.size() && !ranks[id].empty();
    if (special && ranked) {
      return fail(Error(ErrorKind::kFormat, fmt::format("tiktoken: rank {} is \"{}\" of {}", id,
                                                        specials[at].text, encoding.name)));
    }
    const std::string hole = fmt::format("[PAD{}]", id);
    const std::string_view text = special ? specials[at].text : ranked ? ranks[id] : hole;
    const TokenType type = special  ? TokenType::kControl
                           : ranked ? TokenType::kNormal
                                    : TokenType::kUnused;
    CYB_TRY(parts.vocabulary.add({text, type}));
    if (special) ++at;
  }
  return parts.vocabulary.finish();
}

}  // namespace

std::vector<std::string_view> tiktoken_encodings() {
  std::vector<std::string_view> out;
  for (const Encoding& encoding : encodings()) out.push_back(encoding.name);
  return out;
}

bool looks_like_tiktoken(std::string_view text) noexcept {
  const std::string_view line = text.substr(0, std::min<std::size_t>(text.find('\n'), 4096));
  const std::size_t space = line.find(' ');
  return space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
         line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos &&
         line.substr(0, space).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
             std::string_view::npos;
}

Result<TokenizerParts> vocabulary_from_tiktoken(std::string_view text, std::string_view name) {
  const auto* const found = std::ranges::find(encodings(), name, &Encoding::name);
  if (found == encodings().end()) {
    return fail(invalid_input(fmt::format("\"{}\" is none of the encodings {}", name,
                                          fmt::join(tiktoken_encodings(), ", "))));
  }
  CYB_ASSIGN(const std::vector<std::string> ranks, read_ranks(text));
  TokenizerParts parts;
  CYB_TRY(fill(ranks, *found, parts));
  TokenizerConfig& config = parts.config;
  config.type = TokenizerKind::kBpe;
  config.ignore_merges = true;  // a piece that is a token is that token
  json pipeline{{"pre_tokenizer", json::array({{{"type", "Split"},
                                                {"pattern", {{"Regex", found->pattern}}},
                                                {"behavior", "Isolated"},
                                                {"invert", false}},
                                               {{"type", "ByteLevel"},
                                                {"add_prefix_space", false},
                                                {"trim_offsets", false},
                                                {"use_regex", false}}})},
                {"decoder", json::array({{{"type", "ByteLevel"}}})},
                {"model", {{"ranks", "ids"}}}};
  if (found->nfc) pipeline["normalizer"] = json::array({{{"type", "NFC"}}});
  config.pipeline = pipeline.dump();
  const std::int32_t bos = parts.vocabulary.find(found->bos);
  if (bos >= 0) config.bos_token_id = bos;
  config.add_bos_token = bos >= 0;
  for (const std::string_view end :
       {found->end, std::string_view("<|eot_id|>"), std::string_view("<|eom_id|>"),
        std::string_view("<|im_end|>")}) {
    const std::int32_t id = parts.vocabulary.find(end);
    if (id >= 0 && parts.vocabulary.type(id) == TokenType::kControl)
      config.eos_token_ids.push_back(id);
  }
  parts.assumptions.push_back(fmt::format(
      "the file has ranks only: expression and special tokens are those of {}", found->name));
  return parts;
}

}  // namespace cyb
