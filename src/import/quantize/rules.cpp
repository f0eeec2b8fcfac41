// The tables: what stands in for an encoding where rows do not fit its block, and what the head
// gets. Both never have fewer bits than what they stand for.
#include "import/quantize/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cyb {
namespace quantize {
namespace {

struct Row {
  DType to, fallback, head;
};
// The fallbacks of the 256-value encodings have 32 values a block; the next one stays as it is.
constexpr std::array kRows = {
    Row{DType::kQ2k, DType::kQ4_1, DType::kQ6k},  Row{DType::kQ3k, DType::kQ4_1, DType::kQ6k},
    Row{DType::kQ4, DType::kQ4, DType::kQ6k},     Row{DType::kQ4k, DType::kQ5_0, DType::kQ6k},
    Row{DType::kQ4_1, DType::kQ4_1, DType::kQ6k}, Row{DType::kQ5_0, DType::kQ5_0, DType::kQ6k},
    Row{DType::kQ5k, DType::kQ5_1, DType::kQ6k},  Row{DType::kQ5_1, DType::kQ5_1, DType::kQ6k},
    Row{DType::kQ6k, DType::kQ8, DType::kQ6k},    Row{DType::kQ8, DType::kQ8, DType::kQ8},
};

const Row* find_row(DType to) noexcept {
  const auto at = std::ranges::find(kRows, to, &Row::to);
  return at == kRows.end() ? nullptr : &*at;
}

bool fits(const DraftTensor& tensor, DType to) {
  return tensor.shape.back() % static_cast<std::int64_t>(format_info(to).block_values) == 0;
}

/// Matrices that are read by row or choose between experts: small, and their error is not averaged.
constexpr std::array<std::string_view, 6> kTables = {
    "position_embeddings.", "token_type_embeddings.",
    "embed_positions.",     "wpe.",
    ".mlp.gate.",           ".router."};

bool is_weight_matrix(const DraftTensor& tensor) {
  if (tensor.shape.rank() != 2 || tensor.name.starts_with("cyb.")) return false;
  if (!tensor.name.ends_with(".weight") || format_info(tensor.dtype).decode == nullptr)
    return false;
  return std::ranges::none_of(
      kTables, [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; });
}

bool is_head(const DraftTensor& tensor, const ModelFacts& facts) {
  return tensor.name == "lm_head.weight" ||
         (!facts.has_head && tensor.name == "model.embed_tokens.weight");
}

}  // namespace

std::optional<std::string> why_not(const DraftTensor& tensor, DType to) {
  const FormatInfo& format = format_info(to);
  if (format_info(tensor.dtype).decode == nullptr)
    return fmt::format("{} values are no weights", dtype_name(tensor.dtype));
  if (format.block_values == 1) return std::nullopt;
  if (tensor.shape.rank() < 2) return fmt::format("{} needs at least two dimensions", format.name);
  if (fits(tensor, to)) return std::nullopt;
  return fmt::format("rows of {} are no multiple of the {} values of a block of {}",
                     tensor.shape.back(), format.block_values, format.name);
}

Choice choose(const DraftTensor& tensor, DType to, const ModelFacts& facts) {
  if (!is_weight_matrix(tensor)) return {tensor.dtype, "no weight matrix"};
  Choice out{to, ""};
  const Row* row = find_row(to);
  if (row != nullptr && is_head(tensor, facts) && row->head != to) {
    out = {row->head, "the head"};
    row = find_row(row->head);
  }
  if (fits(tensor, out.to)) return out;
  if (row == nullptr || !fits(tensor, row->fallback))
    return {tensor.dtype, *why_not(tensor, row == nullptr ? out.to : row->fallback)};
  return {row->fallback, (out.reason.empty() ? "" : out.reason + "; ") + *why_not(tensor, out.to)};
}

}  // namespace quantize

bool is_quantize_target(DType dtype) noexcept {
  return quantize::find_row(dtype) != nullptr;
}

std::vector<DType> quantize_targets() {
  std::vector<DType> out;
  for (const quantize::Row& row : quantize::kRows) out.push_back(row.to);
  for (const DType dtype : {DType::kF16, DType::kBf16, DType::kF32}) out.push_back(dtype);
  return out;
}

bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0, star = std::string_view::npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace cyb
