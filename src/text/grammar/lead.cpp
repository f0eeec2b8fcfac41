// Every text is a row of characters that do not begin the marker and of beginnings of it that go on
// differently: as its first character stands in it only once, a beginning that breaks off with that
// character begins anew, and nothing else can.
#include "text/grammar/lead.hpp"

#include <algorithm>
#include <vector>

#include "base/utf8.hpp"

namespace cyb::text {

ExprId text_before(GrammarRules& rules, std::string_view marker, bool closed) {
  std::vector<char32_t> chars;
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < marker.size();) {
    const Utf8Char c = utf8_next(marker, at);
    chars.push_back(c.code_point);
    ends.push_back(at += c.size);
  }
  const CharSet first = CharSet::of(chars.front());
  if (std::ranges::count(chars, chars.front()) > 1) {  // one character, some times over
    const std::uint64_t most = chars.size() - 1;
    const ExprId same = rules.repeat(rules.one_of(first), 0, most);
    const ExprId unit = rules.sequence({same, rules.one_of(first.negated())});
    const ExprId free = rules.repeat(unit, 0, kUnbounded);
    return rules.sequence({free, closed ? rules.literal(marker) : same});
  }
  std::vector<ExprId> broken, begun;  // beginnings with what they break off with; beginnings
  for (std::size_t n = 1; n < chars.size(); ++n) {
    CharSet other = first;
    other.add(CharSet::of(chars[n]));
    begun.push_back(rules.literal(marker.substr(0, ends[n - 1])));
    broken.push_back(rules.sequence({begun.back(), rules.one_of(other.negated())}));
  }
  const ExprId beginnings = rules.repeat(rules.choice(begun), 0, kUnbounded);
  const ExprId unit = rules.choice(
      {rules.one_of(first.negated()), rules.sequence({beginnings, rules.choice(broken)})});
  const ExprId free = rules.repeat(unit, 0, kUnbounded);
  return rules.sequence({free, beginnings, closed ? rules.literal(marker) : rules.empty()});
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
