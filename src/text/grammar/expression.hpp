// GrammarRules: what every front end (GBNF, JSON Schema, regular expressions, Lark) produces: named
// rules whose right sides are expressions over literals and character sets. An expression only
// refers to expressions made before it, and to rules by number.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/char_set.hpp"

namespace cyb::text {

using ExprId = std::uint32_t;
using RuleId = std::uint32_t;
inline constexpr ExprId kNoExpr = std::numeric_limits<ExprId>::max();
inline constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

enum class ExprKind : std::uint8_t {
  kEmpty,    // the empty text
  kNever,    // no text at all
  kLiteral,  // bytes
  kClass,    // one character of a set, as UTF-8
  kSequence,
  kChoice,
  kRepeat,  // first, min..max times
  kRule
};

struct Expr {
  ExprKind kind = ExprKind::kEmpty;
  std::uint32_t first = 0;  // of the literal's bytes, the children; the set; the rule; the child
  std::uint32_t count = 0;  // bytes, children
  std::uint64_t min = 0, max = 0;
};

struct GrammarRule {
  std::string name;  // as an error shows it
  ExprId body = kNoExpr;
  bool may_inline = false;  // where it is small and refers to no rule
};

class GrammarRules {
 public:
  GrammarRules();

  /// A rule without a body yet.
  RuleId declare(std::string name, bool may_inline = false);
  void define(RuleId rule, ExprId body) { rules_[rule].body = body; }

  ExprId empty() const noexcept { return 0; }
  ExprId never() const noexcept { return 1; }
  ExprId literal(std::string_view bytes);
  ExprId one_of(const CharSet& set);
  ExprId sequence(std::span<const ExprId> parts);
  ExprId sequence(std::initializer_list<ExprId> parts) {
    return sequence(std::span(parts.begin(), parts.size()));
  }
  ExprId choice(std::span<const ExprId> parts);
  ExprId choice(std::initializer_list<ExprId> parts) {
    return choice(std::span(parts.begin(), parts.size()));
  }
  ExprId repeat(ExprId child, std::uint64_t min, std::uint64_t max);
  ExprId optional(ExprId child) { return repeat(child, 0, 1); }
  ExprId rule(RuleId id);

  /// Takes `chars` out of every set. False where one of them has no others.
  bool exclude(const CharSet& chars);
  /// No literal has `text` in it.
  bool lacks(std::string_view text) const noexcept;

  RuleId root = 0;

  const Expr& at(ExprId id) const noexcept { return exprs_[id]; }
  std::size_t n_exprs() const noexcept { return exprs_.size(); }
  std::string_view bytes(const Expr& e) const noexcept {
    return std::string_view(bytes_).substr(e.first, e.count);
  }
  const CharSet& set(const Expr& e) const noexcept { return sets_[e.first]; }
  std::span<const ExprId> children(const Expr& e) const noexcept {
    return std::span(children_).subspan(e.first, e.count);
  }
  std::size_t n_rules() const noexcept { return rules_.size(); }
  const GrammarRule& rule_at(RuleId id) const noexcept { return rules_[id]; }

  /// A rule whose alternatives begin with itself (A = A x | y) becomes A = y x*.
  void unroll_left_recursion();

 private:
  ExprId add(Expr e);
  ExprId group(ExprKind kind, std::span<const ExprId> parts);
  bool starts_with(ExprId id, RuleId rule) const;

  std::vector<Expr> exprs_;
  std::vector<ExprId> children_;
  std::vector<CharSet> sets_;
  std::vector<GrammarRule> rules_;
  std::string bytes_;
};

}  // namespace cyb::text
