// GBNF, the grammar language of llama.cpp: rules `name ::= alternatives`, one per line; "literals",
// [classes], ., (groups), * + ? {m} {m,} {m,n}, # comments. Read with a list of open groups, so
// that nesting costs no stack.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.hpp"
#include "text/grammar/grammar.hpp"
#include "text/grammar/source_text.hpp"

namespace cyb {
namespace text {
namespace {

class GbnfReader {
 public:
  GbnfReader(SourceText source, GrammarBudget& budget) : source_(source), budget_(budget) {}
  Result<GrammarRules> read();

 private:
  Result<void> read_rule();
  Result<bool> read_item();
  Result<void> read_group_end();
  Result<ExprId> read_literal();
  Result<ExprId> read_class();
  Result<char32_t> read_char();
  Result<void> read_repeat();
  Result<std::pair<std::uint64_t, std::uint64_t>> read_bounds();
  void skip_space(bool newlines);
  bool continues_below();
  OpenGroup& group() { return groups_.back(); }

  SourceText source_;
  GrammarBudget& budget_;
  GrammarRules rules_;
  RuleNames names_;
  std::vector<OpenGroup> groups_;
};

constexpr std::string_view kNameChars = "-_";

void GbnfReader::skip_space(bool newlines) {
  while (!source_.done()) {
    const char c = source_.peek();
    if (c == '#') {
      while (!source_.done() && source_.peek() != '\n' && source_.peek() != '\r') source_.skip();
    } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
      source_.skip();
    } else {
      return;
    }
  }
}

Result<char32_t> GbnfReader::read_char() {
  if (source_.done()) return source_.error("the text ends inside a literal or class");
  if (source_.peek() != '\\') return source_.take_char();
  source_.skip();
  const char c = source_.peek();
  source_.skip();
  switch (c) {
    case 'x':
      return source_.take_hex(2);
    case 'u':
      return source_.take_hex(4);
    case 'U':
      return source_.take_hex(8);
    case 't':
      return U'\t';
    case 'r':
      return U'\r';
    case 'n':
      return U'\n';
    case '\\':
    case '"':
    case '[':
    case ']':
      return static_cast<char32_t>(c);
    default:
      return source_.error_at(
          source_.at() - 2, "unknown escape: \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\] are known");
  }
}

Result<ExprId> GbnfReader::read_literal() {
  const std::size_t from = source_.at();
  source_.skip();
  std::string bytes;
  while (source_.peek() != '"') {
    if (source_.done()) return source_.error_at(from, "the literal has no end");
    CYB_ASSIGN(const char32_t c, read_char());
    utf8_append(bytes, c);
  }
  source_.skip();
  return rules_.literal(bytes);
}

Result<ExprId> GbnfReader::read_class() {
  const std::size_t from = source_.at();
  source_.skip();
  const bool negated = source_.take("^");
  CharSet set;
  while (source_.peek() != ']') {
    if (source_.done()) return source_.error_at(from, "the class has no end");
    const std::size_t at = source_.at();
    CYB_ASSIGN(const char32_t first, read_char());
    char32_t last = first;
    if (source_.peek() == '-' && source_.peek(1) != ']') {
      source_.skip();
      CYB_ASSIGN(last, read_char());
      if (last < first) return source_.error_at(at, "the range of characters runs backwards");
    }
    set.add(first, last);
    CYB_TRY(budget_.step("class"));
  }
  source_.skip();
  return rules_.one_of(negated ? set.negated() : set);
}

Result<std::pair<std::uint64_t, std::uint64_t>> GbnfReader::read_bounds() {
  const std::size_t from = source_.at();
  if (source_.take("*")) return std::pair(std::uint64_t{0}, kUnbounded);
  if (source_.take("+")) return std::pair(std::uint64_t{1}, kUnbounded);
  if (source_.take("?")) return std::pair(std::uint64_t{0}, std::uint64_t{1});
  source_.skip();  // {
  skip_space(true);
  CYB_ASSIGN(const std::uint64_t min, source_.take_number());
  std::uint64_t max = min;
  skip_space(true);
  if (source_.take(",")) {
    max = kUnbounded;
    skip_space(true);
    if (source_.peek() != '}') {
      CYB_ASSIGN(max, source_.take_number());
    }
    skip_space(true);
  }
  if (!source_.take("}")) return source_.error("} belongs here");
  if (max < min)
    return source_.error_at(from, "the repetition's largest number is below its smallest");
  return std::pair(min, max);
}

Result<void> GbnfReader::read_repeat() {
  if (group().items.empty()) return source_.error("nothing stands before the repetition");
  CYB_ASSIGN(const auto bounds, read_bounds());
  ExprId& last = group().items.back();
  last = rules_.repeat(last, bounds.first, bounds.second);
  return {};
}

Result<void> GbnfReader::read_group_end() {
  if (groups_.size() == 1) return source_.error(") without a (");
  source_.skip();
  const ExprId expr = group().close(rules_);
  groups_.pop_back();
  group().items.push_back(expr);
  return {};
}

/// At the end of a line outside of brackets: whether the next one goes on with |.
bool GbnfReader::continues_below() {
  const std::size_t here = source_.at();
  skip_space(true);
  if (source_.peek() == '|') return true;
  source_.move_to(here);
  return false;
}

/// False: the rule is over.
Result<bool> GbnfReader::read_item() {
  skip_space(groups_.size() > 1);
  const char c = source_.peek();
  if (source_.done() || c == '\n' || c == '\r') {
    if (groups_.size() > 1) return source_.error_at(group().at, "( without a )");
    return continues_below();
  }
  if (c == '(') {
    if (groups_.size() > kMaxGrammarDepth) {
      return source_.error(fmt::format("more than {} levels of brackets", kMaxGrammarDepth));
    }
    groups_.push_back({source_.at(), '('});
    source_.skip();
  } else if (c == ')') {
    CYB_TRY(read_group_end());
  } else if (c == '|') {
    group().next_alternative(rules_);
    source_.skip();
    skip_space(true);
  } else if (c == '"') {
    CYB_ASSIGN(const ExprId literal, read_literal());
    group().items.push_back(literal);
  } else if (c == '[') {
    CYB_ASSIGN(const ExprId set, read_class());
    group().items.push_back(set);
  } else if (c == '.') {
    source_.skip();
    group().items.push_back(rules_.one_of(CharSet::all()));
  } else if (c == '*' || c == '+' || c == '?' || c == '{') {
    CYB_TRY(read_repeat());
  } else if (c == '<' || c == '!') {
    return source_.error("tokens in a grammar (<token>, !<token>) are not supported");
  } else {
    const std::size_t at = source_.at();
    const std::string_view word = source_.take_word(kNameChars);
    if (word.empty()) return source_.error("this character begins nothing that a rule may hold");
    group().items.push_back(rules_.rule(names_.use(rules_, word, at)));
  }
  return true;
}

Result<void> GbnfReader::read_rule() {
  const std::size_t at = source_.at();
  const std::string_view word = source_.take_word(kNameChars);
  if (word.empty()) return source_.error("the name of a rule belongs here");
  const std::optional<RuleId> rule = names_.define(rules_, word, at);
  if (!rule) return source_.error_at(at, fmt::format("a second rule \"{}\"", word));
  skip_space(false);
  if (!source_.take("::=")) return source_.error("::= belongs here");
  skip_space(true);
  groups_.assign(1, OpenGroup{at});
  while (true) {
    CYB_ASSIGN(const bool more, read_item());
    if (!more) break;
    CYB_TRY(budget_.step("the grammar"));
  }
  rules_.define(*rule, group().close(rules_));
  return {};
}

Result<GrammarRules> GbnfReader::read() {
  for (skip_space(true); !source_.done(); skip_space(true)) CYB_TRY(read_rule());
  if (const auto missing = names_.first_missing()) {
    return source_.error_at(missing->first_use, fmt::format("no rule \"{}\"", missing->word));
  }
  const auto root = names_.find("root");
  if (!root) return source_.error("no rule \"root\"");
  rules_.root = *root;
  return std::move(rules_);
}

}  // namespace
}  // namespace text

Result<std::shared_ptr<const Grammar>> Grammar::from_gbnf(std::string_view source,
                                                          const GrammarLead& lead) {
  text::GrammarBudget budget;
  CYB_ASSIGN(const text::SourceText opened, text::SourceText::open_grammar(source));
  CYB_ASSIGN(text::GrammarRules rules, text::GbnfReader(opened, budget).read());
  return compile(rules, budget, lead);
}

}  // namespace cyb
