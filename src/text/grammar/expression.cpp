// Makers of expressions; small ones are simplified on the way.
#include "text/grammar/expression.hpp"

#include <algorithm>
#include <utility>

namespace cyb::text {

GrammarRules::GrammarRules() {
  add({.kind = ExprKind::kEmpty});
  add({.kind = ExprKind::kNever});
}

ExprId GrammarRules::add(Expr e) {
  exprs_.push_back(e);
  return static_cast<ExprId>(exprs_.size() - 1);
}

RuleId GrammarRules::declare(std::string name, bool may_inline) {
  rules_.push_back({std::move(name), kNoExpr, may_inline});
  return static_cast<RuleId>(rules_.size() - 1);
}

ExprId GrammarRules::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  const std::size_t first = bytes_.size();
  bytes_ += bytes;
  return add({.kind = ExprKind::kLiteral,
              .first = static_cast<std::uint32_t>(first),
              .count = static_cast<std::uint32_t>(bytes.size())});
}

ExprId GrammarRules::one_of(const CharSet& set) {
  if (set.empty()) return never();
  sets_.push_back(set);
  return add({.kind = ExprKind::kClass, .first = static_cast<std::uint32_t>(sets_.size() - 1)});
}

bool GrammarRules::exclude(const CharSet& chars) {
  bool some_left = true;
  for (CharSet& set : sets_) {
    set = set.minus(chars);
    some_left = some_left && !set.empty();
  }
  return some_left;
}

bool GrammarRules::lacks(std::string_view text) const noexcept {
  return std::ranges::none_of(exprs_, [&](const Expr& e) {
    return e.kind == ExprKind::kLiteral && bytes(e).find(text) != std::string_view::npos;
  });
}

ExprId GrammarRules::group(ExprKind kind, std::span<const ExprId> parts) {
  const std::size_t first = children_.size();
  children_.insert(children_.end(), parts.begin(), parts.end());
  return add({.kind = kind,
              .first = static_cast<std::uint32_t>(first),
              .count = static_cast<std::uint32_t>(parts.size())});
}

ExprId GrammarRules::sequence(std::span<const ExprId> parts) {
  if (parts.empty()) return empty();
  if (std::ranges::find(parts, never()) != parts.end()) return never();
  return parts.size() == 1 ? parts[0] : group(ExprKind::kSequence, parts);
}

ExprId GrammarRules::choice(std::span<const ExprId> parts) {
  std::vector<ExprId> kept(parts.begin(), parts.end());
  std::erase(kept, never());
  if (kept.empty()) return never();
  return kept.size() == 1 ? kept[0] : group(ExprKind::kChoice, kept);
}

ExprId GrammarRules::repeat(ExprId child, std::uint64_t min, std::uint64_t max) {
  if (max == 0 || child == empty()) return empty();
  if (child == never()) return min == 0 ? empty() : never();
  if (min == 1 && max == 1) return child;
  return add({.kind = ExprKind::kRepeat, .first = child, .min = min, .max = max});
}

ExprId GrammarRules::rule(RuleId id) {
  return add({.kind = ExprKind::kRule, .first = id});
}

bool GrammarRules::starts_with(ExprId id, RuleId rule) const {
  const Expr* e = &exprs_[id];
  if (e->kind == ExprKind::kSequence) e = &exprs_[children(*e)[0]];
  return e->kind == ExprKind::kRule && e->first == rule;
}

void GrammarRules::unroll_left_recursion() {
  for (RuleId r = 0; r < rules_.size(); ++r) {
    const ExprId body = rules_[r].body;
    if (body == kNoExpr) continue;
    std::vector<ExprId> parts{body};
    if (at(body).kind == ExprKind::kChoice) {
      const auto all = children(at(body));
      parts.assign(all.begin(), all.end());
    }
    std::vector<ExprId> starts, tails;
    for (const ExprId part : parts) {
      if (!starts_with(part, r)) {
        starts.push_back(part);
      } else if (at(part).kind == ExprKind::kSequence) {
        const auto all = children(at(part)).subspan(1);
        tails.push_back(sequence(std::vector<ExprId>(all.begin(), all.end())));
      }  // A = A says nothing
    }
    if (starts.size() == parts.size()) continue;
    rules_[r].body = sequence({choice(starts), repeat(choice(tails), 0, kUnbounded)});
  }
}

}  // namespace cyb::text
