// Names of the tokenizer's enumerations, and what each preset's own checkpoints use.
#include "text/tokenizer_config.hpp"

#include <array>
#include <string>
#include <utility>

namespace cyb {
namespace {

constexpr std::array<std::pair<TokenizerKind, std::string_view>, 6> kKinds{
    {{TokenizerKind::kBpe, "bpe"},
     {TokenizerKind::kSpm, "spm"},
     {TokenizerKind::kUnigram, "unigram"},
     {TokenizerKind::kWordPiece, "wordpiece"},
     {TokenizerKind::kWordLevel, "wordlevel"},
     {TokenizerKind::kNone, "none"}}};
constexpr std::array<std::pair<PreTokenizer, std::string_view>, 5> kPres{
    {{PreTokenizer::kNone, "none"},
     {PreTokenizer::kGpt2, "gpt2"},
     {PreTokenizer::kSmollm, "smollm"},
     {PreTokenizer::kQwen2, "qwen2"},
     {PreTokenizer::kLlama3, "llama3"}}};
constexpr std::array<std::pair<SpacePrefix, std::string_view>, 3> kPrefixes{
    {{SpacePrefix::kEverySegment, "every"},
     {SpacePrefix::kFirstSegment, "first"},
     {SpacePrefix::kEverySegmentMissing, "missing"}}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) noexcept {
  for (const auto& [entry, name] : table) {
    if (entry == value) return name;
  }
  return "?";
}

template <class Table>
auto value_in(const Table& table, std::string_view key, std::string_view name)
    -> Result<typename Table::value_type::first_type> {
  for (const auto& [entry, text] : table) {
    if (text == name) return entry;
  }
  return fail(invalid_config(key, "\"" + std::string(name) + "\" is not built"));
}

}  // namespace

TokenizerConfig tokenizer_preset(TokenizerKind type, PreTokenizer pre) {
  TokenizerConfig config;
  config.type = type;
  if (type == TokenizerKind::kBpe) {
    config.pre = pre;
    config.nfc = pre == PreTokenizer::kQwen2;
    config.ignore_merges = pre == PreTokenizer::kLlama3;
  }
  if (type == TokenizerKind::kSpm) {
    config.add_space_prefix = true;
    config.byte_fallback = true;
    config.fuse_unk = true;
  }
  return config;
}

std::string_view tokenizer_kind_name(TokenizerKind kind) noexcept {
  return name_in(kKinds, kind);
}
std::string_view pre_tokenizer_name(PreTokenizer pre) noexcept {
  return name_in(kPres, pre);
}
std::string_view space_prefix_name(SpacePrefix mode) noexcept {
  return name_in(kPrefixes, mode);
}

Result<TokenizerKind> parse_tokenizer_kind(std::string_view name) {
  return value_in(kKinds, "tokenizer.type", name);
}
Result<PreTokenizer> parse_pre_tokenizer(std::string_view name) {
  return value_in(kPres, "tokenizer.pre", name);
}
Result<SpacePrefix> parse_space_prefix(std::string_view name) {
  return value_in(kPrefixes, "tokenizer.space_prefix", name);
}

}  // namespace cyb
