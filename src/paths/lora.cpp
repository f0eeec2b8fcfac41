// Stacking: [A_1; A_2] along the rank, [s_1 B_1, s_2 B_2] with s = weight * scale in double,
// rounded once.
#include "paths/lora.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/json_text.hpp"
#include "paths/weight_table.hpp"

namespace cyb {
namespace {

using Key = std::tuple<std::string_view, LoraPlace>;

struct Scaled {
  const LoraPair* pair;
  double scale;
};

std::string at(const LoraPair& pair) {
  return json_quote(pair.source);
}

std::size_t size_of(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// A: [R, K], of an embedding its transpose [V, R].
std::vector<float> stacked_a(std::span<const Scaled> parts, std::size_t rank) {
  const LoraPair& first = *parts[0].pair;
  const std::size_t k = size_of(first.n_in);
  std::vector<float> out;
  out.reserve(rank * k);
  if (first.place == LoraPlace::kProduct) {
    for (const Scaled& part : parts)
      out.insert(out.end(), part.pair->a.begin(), part.pair->a.end());
    return out;
  }
  for (std::size_t column = 0; column < k; ++column) {
    for (const Scaled& part : parts) {
      for (std::size_t r = 0; r < size_of(part.pair->rank); ++r)
        out.push_back(part.pair->a[r * k + column]);
    }
  }
  return out;
}

/// B with the scales: [N, R].
Result<std::vector<float>> stacked_b(std::span<const Scaled> parts, std::size_t rank) {
  const std::size_t n = size_of(parts[0].pair->n_out);
  std::vector<float> out;
  out.reserve(rank * n);
  for (std::size_t row = 0; row < n; ++row) {
    for (const Scaled& part : parts) {
      const std::size_t r = size_of(part.pair->rank);
      for (std::size_t i = 0; i < r; ++i) {
        const auto value = static_cast<float>(double{part.pair->b[row * r + i]} * part.scale);
        if (!std::isfinite(value)) {
          return fail(lora_error("L10", fmt::format("{}: B times the scale {} is not finite",
                                                    at(*part.pair), part.scale)));
        }
        out.push_back(value);
      }
    }
  }
  return out;
}

Result<LoraTerm> add_term(std::span<const Scaled> parts, std::size_t number, WeightTable& weights) {
  const LoraPair& first = *parts[0].pair;
  std::size_t rank = 0;
  for (const Scaled& part : parts) rank += size_of(part.pair->rank);
  LoraTerm term{.tensor = first.tensor,
                .place = first.place,
                .rank = static_cast<std::uint32_t>(rank),
                .a = fmt::format("lora.{}.a", number),
                .b = fmt::format("lora.{}.b", number)};
  const auto r = static_cast<std::int64_t>(rank);
  CYB_ASSIGN(std::vector<float> b, stacked_b(parts, rank));
  const Shape shape =
      first.place == LoraPlace::kProduct ? Shape{r, first.n_in} : Shape{first.n_in, r};
  CYB_TRY(weights.add_tensor(term.a, shape, stacked_a(parts, rank)));
  CYB_TRY(weights.add_tensor(term.b, Shape{first.n_out, r}, std::move(b)));
  return term;
}

std::string range_text(double low, double high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
}

}  // namespace

const LoraTerm* LoraTerms::find(std::string_view tensor, LoraPlace place) const noexcept {
  const auto before = [](const LoraTerm& term, const Key& key) {
    return Key(term.tensor, term.place) < key;
  };
  const auto it = std::lower_bound(terms_.begin(), terms_.end(), Key(tensor, place), before);
  return it != terms_.end() && it->tensor == tensor && it->place == place ? &*it : nullptr;
}

Result<void> check_lora_pair(const LoraPair& pair, const TensorSpec& weight) {
  const bool embedding = pair.place == LoraPlace::kEmbedding;
  const std::int64_t rows = embedding ? pair.n_in : pair.n_out,
                     columns = embedding ? pair.n_out : pair.n_in;
  const auto shape = weight.bind({});
  if (shape && shape->rank() == 2 && (*shape)[0] == rows && (*shape)[1] == columns) return {};
  return fail(lora_error(
      "L09", fmt::format("{} is for a weight [{}, {}], {} of the model is {}", at(pair), rows,
                         columns, json_quote(pair.tensor), shape ? shape->text() : weight.text())));
}

Result<LoraTerms> add_adapters(std::span<const LoraUse> uses, WeightTable& weights) {
  std::map<Key, std::vector<Scaled>> by_weight;
  for (const LoraUse& use : uses) {
    if (!std::isfinite(use.weight))
      return fail(invalid_input(fmt::format("the weight of {} is no number", use.adapter->path)));
    for (const LoraPair& pair : use.adapter->pairs) {
      const auto spec = weights.find(pair.tensor);
      if (!spec) {
        return fail(lora_error("L07", fmt::format("{}: the model has no weight {}", at(pair),
                                                  json_quote(pair.tensor)))
                        .in(use.adapter->path));
      }
      if (auto good = check_lora_pair(pair, *spec); !good)
        return fail(std::move(good).error().in(use.adapter->path));
      if (use.weight == 0) continue;  // checked, and without effect
      by_weight[{pair.tensor, pair.place}].push_back({&pair, use.weight * pair.scale});
    }
  }
  LoraTerms out;
  for (const auto& [key, parts] : by_weight) {
    CYB_ASSIGN(LoraTerm term, add_term(parts, out.terms_.size(), weights));
    out.terms_.push_back(std::move(term));
  }
  return out;
}

std::string lora_summary(const LoraAdapter& adapter) {
  if (adapter.pairs.empty()) return "no matrices";
  const auto [low, high] = std::ranges::minmax(adapter.pairs, {}, &LoraPair::rank);
  const auto [small, large] = std::ranges::minmax(adapter.pairs, {}, &LoraPair::scale);
  return fmt::format("{} {}, rank {}, scale {}", adapter.pairs.size(),
                     adapter.pairs.size() == 1 ? "matrix" : "matrices",
                     range_text(static_cast<double>(low.rank), static_cast<double>(high.rank)),
                     range_text(small.scale, large.scale));
}

Error lora_error(std::string code, std::string text) {
  return Error(ErrorKind::kFormat, std::move(code), std::move(text));
}

Error lora_unused(const LoraTerm& term, std::string_view why) {
  return lora_error("L11",
                    fmt::format("an adapter for {}{}: {}", json_quote(term.tensor),
                                term.place == LoraPlace::kEmbedding ? " as embedding" : "", why));
}

}  // namespace cyb
