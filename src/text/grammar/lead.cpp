// Every text is a row of characters that do not begin the marker and of beginnings of it that go on
// differently: as its first character stands in it only once, a beginning that breaks off with that
// character begins anew, and nothing else can.
#include "text/grammar/lead.hpp"

#include <map>
#include <vector>

#include "base/utf8.hpp"

namespace cyb::text {

namespace {

struct Begun {
  CharSet next;  // characters with which a marker goes on
  ExprId text = kNoExpr;
};

/// The beginnings of the markers, by what is written.
std::map<std::string_view, Begun> beginnings_of(GrammarRules& rules,
                                                std::span<const std::string_view> markers) {
  std::map<std::string_view, Begun> out;
  for (const std::string_view marker : markers) {
    for (std::size_t at = 0; at < marker.size();) {
      const Utf8Char c = utf8_next(marker, at);
      if (at > 0) {
        Begun& begun = out[marker.substr(0, at)];
        begun.next.add(CharSet::of(c.code_point));
        if (begun.text == kNoExpr) begun.text = rules.literal(marker.substr(0, at));
      }
      at += c.size;
    }
  }
  return out;
}

/// Text without the markers; then `end`, which may come after a beginning of one.
ExprId text_to(GrammarRules& rules, std::span<const std::string_view> markers, ExprId end) {
  const CharSet first = CharSet::of(utf8_next(markers.front(), 0).code_point);
  std::vector<ExprId> broken, begun;  // beginnings with what they break off with; beginnings
  for (const auto& [text, one] : beginnings_of(rules, markers)) {
    CharSet other = first;
    other.add(one.next);
    begun.push_back(one.text);
    broken.push_back(rules.sequence({one.text, rules.one_of(other.negated())}));
  }
  const ExprId beginnings = rules.repeat(rules.choice(begun), 0, kUnbounded);
  const ExprId unit = rules.choice(
      {rules.one_of(first.negated()), rules.sequence({beginnings, rules.choice(broken)})});
  return rules.sequence({rules.repeat(unit, 0, kUnbounded), beginnings, end});
}

}  // namespace

ExprId text_before(GrammarRules& rules, std::string_view marker, bool closed) {
  const Utf8Char first = utf8_next(marker, 0);
  std::size_t n_first = 0, n_chars = 0;
  for (std::size_t at = 0; at < marker.size(); ++n_chars) {
    const Utf8Char c = utf8_next(marker, at);
    n_first += c.code_point == first.code_point ? 1 : 0;
    at += c.size;
  }
  if (n_first == 1) {
    const std::string_view one[] = {marker};
    return text_to(rules, one, closed ? rules.literal(marker) : rules.empty());
  }
  // One character, some times over.
  const ExprId same = rules.repeat(rules.one_of(CharSet::of(first.code_point)), 0, n_chars - 1);
  const ExprId unit = rules.sequence({same, rules.one_of(CharSet::of(first.code_point).negated())});
  const ExprId free = rules.repeat(unit, 0, kUnbounded);
  return rules.sequence({free, closed ? rules.literal(marker) : same});
}

ExprId text_without(GrammarRules& rules, std::span<const std::string_view> markers) {
  return text_to(rules, markers, rules.empty());
}

ExprId lead_expr(GrammarRules& rules, const GrammarLead& lead) {
  CharSet blank = CharSet::of(U' ');
  blank.add(CharSet::of(U'\n'));
  const ExprId closed = rules.sequence(
      {text_before(rules, lead.close, true), rules.repeat(rules.one_of(blank), 0, 4)});
  if (lead.opened) return closed;
  return rules.optional(rules.sequence({rules.literal(lead.open), closed}));
}

void add_lead(GrammarRules& rules, const GrammarLead& lead) {
  const RuleId root = rules.declare("the answer");
  rules.define(root, rules.sequence({lead_expr(rules, lead), rules.rule(rules.root)}));
  rules.root = root;
}

}  // namespace cyb::text
