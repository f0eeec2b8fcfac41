// Grammars in the manner of Lark: rules, TERMINALS, "strings", /regexps/, ranges, groups, [ ],
// ? * + ~, aliases, %ignore, %import common. The text is read as by Lark's Earley parser with the
// lexer dynamic_complete: any cut into terminals will do. What %ignore names may follow any
// terminal of a rule, and come first.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/utf8.hpp"
#include "text/grammar/grammar.hpp"
#include "text/grammar/regex_reader.hpp"
#include "text/grammar/source_text.hpp"

namespace cyb {
namespace text {
namespace {

constexpr std::pair<std::string_view, const char*> kCommon[] = {
#define CYB_LARK_TERMINAL(name, pattern) {name, pattern},
#include "text/grammar/lark_common.inc"
};

class LarkReader {
 public:
  LarkReader(SourceText source, GrammarBudget& budget) : source_(source), budget_(budget) {
    ignored_ = rules_.declare("%ignore");
  }
  Result<GrammarRules> read();

 private:
  Result<void> read_statement();
  Result<void> read_directive();
  Result<void> read_import();
  Result<void> import_common(std::string_view word, std::string_view as, std::size_t at);
  Result<void> read_definition();
  Result<ExprId> read_alternatives(bool terminal);
  Result<bool> read_item();
  Result<bool> read_mark();
  Result<void> read_name();
  Result<void> read_string();
  Result<std::string> read_quoted();
  Result<void> read_regexp();
  Result<void> read_times();
  Result<void> close(char bracket);
  void add(ExprId item, bool token);
  void skip_space(bool newlines);
  bool continues_below();

  SourceText source_;
  GrammarBudget& budget_;
  GrammarRules rules_;
  RuleId ignored_ = 0;
  std::vector<ExprId> ignores_;
  RuleNames names_;
  std::vector<OpenGroup> groups_;
  bool terminal_ = false;  // the definition that is being read is a terminal's
};

bool is_terminal(std::string_view name) {
  const std::size_t letter = name.find_first_not_of('_');
  return letter != std::string_view::npos && name[letter] >= 'A' && name[letter] <= 'Z';
}

void LarkReader::skip_space(bool newlines) {
  while (!source_.done()) {
    const char c = source_.peek();
    if (c == '#' || (c == '/' && source_.peek(1) == '/')) {
      while (!source_.done() && source_.peek() != '\n') source_.skip();
    } else if (c == ' ' || c == '\t' || c == '\r' || (newlines && c == '\n')) {
      source_.skip();
    } else {
      return;
    }
  }
}

void LarkReader::add(ExprId item, bool token) {
  const bool followed = token && !terminal_;
  groups_.back().items.push_back(followed ? rules_.sequence({item, rules_.rule(ignored_)}) : item);
}

Result<std::string> LarkReader::read_quoted() {
  const std::size_t from = source_.at();
  source_.skip();
  std::string out;
  while (source_.peek() != '"') {
    if (source_.done() || source_.peek() == '\n')
      return source_.error_at(from, "the string has no end");
    const std::size_t at = source_.at();
    char32_t c = source_.take_char();
    if (c == '\\') {
      constexpr std::string_view kNames = "nrtf\\\"", kValues = "\n\r\t\f\\\"";
      const char name = source_.peek();
      source_.skip();
      const std::size_t i = name == '\0' ? std::string_view::npos : kNames.find(name);
      if (i != std::string_view::npos) {
        c = static_cast<char32_t>(kValues[i]);
      } else if (name == 'x' || name == 'u' || name == 'U') {
        CYB_ASSIGN(c, source_.take_hex(name == 'x' ? 2 : name == 'u' ? 4 : 8));
      } else {
        return source_.error_at(at,
                                "unknown escape: \\n \\r \\t \\f \\x \\u \\U \\\\ \\\" are known");
      }
    }
    utf8_append(out, c);
  }
  source_.skip();
  return out;
}

/// "text", "text"i, "a".."z".
Result<void> LarkReader::read_string() {
  const std::size_t at = source_.at();
  CYB_ASSIGN(const std::string text, read_quoted());
  if (source_.peek() == '.' && source_.peek(1) == '.') {
    source_.skip(2);
    if (source_.peek() != '"') return source_.error("the end of the range belongs here, in quotes");
    CYB_ASSIGN(const std::string last, read_quoted());
    const Utf8Char a = text.empty() ? Utf8Char{} : utf8_next(text, 0);
    const Utf8Char b = last.empty() ? Utf8Char{} : utf8_next(last, 0);
    if (a.size != text.size() || b.size != last.size() || !a.valid || a.code_point > b.code_point)
      return source_.error_at(at, "no range of characters");
    add(rules_.one_of(CharSet::range(a.code_point, b.code_point)), true);
    return {};
  }
  if (!source_.take("i")) {
    if (text.empty()) return source_.error_at(at, "an empty string is no terminal");
    add(rules_.literal(text), true);
    return {};
  }
  std::vector<ExprId> chars;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_next(text, i);
    if (c.code_point >= 0x80) return source_.error_at(at, "\"...\"i is supported for ASCII only");
    chars.push_back(rules_.one_of(CharSet::of(c.code_point).any_case()));
    i += c.size;
  }
  add(rules_.sequence(chars), true);
  return {};
}

Result<void> LarkReader::read_regexp() {
  const std::size_t from = source_.at();
  source_.skip();
  while (source_.peek() != '/') {
    if (source_.done() || source_.peek() == '\n')
      return source_.error_at(from, "the regular expression has no end");
    source_.skip(source_.peek() == '\\' ? 2 : 1);
  }
  const std::string_view pattern = source_.since(from + 1);
  source_.skip();
  RegexOptions options;
  for (const char flag : source_.take_word("")) {
    options.ignore_case = options.ignore_case || flag == 'i';
    options.dot_all = options.dot_all || flag == 's';
    if (flag != 'i' && flag != 's' && flag != 'u')
      return source_.error_at(from, fmt::format("the flag {} is not supported", flag));
  }
  CYB_ASSIGN(const SourceText opened, SourceText::open(pattern));
  auto body = read_regex(rules_, opened, options, budget_);
  if (!body) {
    std::string_view what = body.error().message();
    return source_.error_at(from, what.substr(what.rfind(": ") + 2));
  }
  add(*body, true);
  return {};
}

/// ~ n, ~ n..m.
Result<void> LarkReader::read_times() {
  const std::size_t at = source_.at();
  source_.skip();
  skip_space(false);
  CYB_ASSIGN(const std::uint64_t min, source_.take_number());
  std::uint64_t max = min;
  skip_space(false);
  if (source_.take("..")) {
    skip_space(false);
    CYB_ASSIGN(max, source_.take_number());
  }
  if (max < min) return source_.error_at(at, "the largest number is below the smallest");
  ExprId& last = groups_.back().items.back();
  last = rules_.repeat(last, min, max);
  return {};
}

Result<void> LarkReader::close(char bracket) {
  const char opened = bracket == ')' ? '(' : '[';
  if (groups_.size() == 1 || groups_.back().bracket != opened)
    return source_.error(fmt::format("{} without a {}", bracket, opened));
  source_.skip();
  const ExprId expr = groups_.back().close(rules_);
  groups_.pop_back();
  groups_.back().items.push_back(opened == '[' ? rules_.optional(expr) : expr);
  return {};
}

bool LarkReader::continues_below() {
  const std::size_t here = source_.at();
  skip_space(true);
  if (source_.peek() == '|' || (source_.peek() == '-' && source_.peek(1) == '>')) return true;
  source_.move_to(here);
  return false;
}

Result<void> LarkReader::read_name() {
  const std::size_t at = source_.at();
  const std::string_view word = source_.take_word("_");
  if (word.empty()) return source_.error("this character begins nothing that a rule may hold");
  if (source_.peek() == '{') return source_.error_at(at, "templates of rules are not supported");
  const bool terminal = is_terminal(word);
  if (terminal_ && !terminal)
    return source_.error_at(at, fmt::format("a terminal cannot be made of the rule \"{}\"", word));
  add(rules_.rule(names_.use(rules_, word, at)), terminal);
  return {};
}

/// Brackets and operators. False: something else stands here.
Result<bool> LarkReader::read_mark() {
  const char c = source_.peek();
  if (c == '(' || c == '[') {
    if (groups_.size() > kMaxGrammarDepth)
      return source_.error(fmt::format("more than {} levels of brackets", kMaxGrammarDepth));
    groups_.push_back({source_.at(), c});
    source_.skip();
  } else if (c == ')' || c == ']') {
    CYB_TRY(close(c));
  } else if (c == '|') {
    groups_.back().next_alternative(rules_);
    source_.skip();
    skip_space(true);
  } else if (c == '-' && source_.peek(1) == '>') {
    source_.skip(2);
    skip_space(false);
    if (source_.take_word("_").empty()) return source_.error("a name belongs here");
  } else if (c == '?' || c == '*' || c == '+' || c == '~') {
    if (groups_.back().items.empty()) return source_.error("nothing stands before the repetition");
    if (c == '~') {
      CYB_TRY(read_times());
      return true;
    }
    source_.skip();
    ExprId& last = groups_.back().items.back();
    last = rules_.repeat(last, c == '+' ? 1 : 0, c == '?' ? 1 : kUnbounded);
  } else {
    return false;
  }
  return true;
}

/// False: the definition is over.
Result<bool> LarkReader::read_item() {
  skip_space(groups_.size() > 1);
  if (source_.done() || source_.peek() == '\n') {
    if (groups_.size() > 1) return source_.error_at(groups_.back().at, "a bracket without its end");
    return continues_below();
  }
  CYB_ASSIGN(const bool mark, read_mark());
  if (mark) return true;
  if (source_.peek() == '"') {
    CYB_TRY(read_string());
  } else if (source_.peek() == '/') {
    CYB_TRY(read_regexp());
  } else {
    CYB_TRY(read_name());
  }
  return true;
}

Result<ExprId> LarkReader::read_alternatives(bool terminal) {
  terminal_ = terminal;
  groups_.assign(1, OpenGroup{source_.at()});
  while (true) {
    CYB_ASSIGN(const bool more, read_item());
    CYB_TRY(budget_.step("the grammar"));
    if (!more) return groups_.back().close(rules_);
  }
}

Result<void> LarkReader::import_common(std::string_view word, std::string_view as, std::size_t at) {
  const auto found =
      std::ranges::find(kCommon, word, [](const auto& known) { return known.first; });
  if (found == std::end(kCommon))
    return source_.error_at(at, fmt::format("common has no terminal \"{}\"", word));
  const std::optional<RuleId> rule = names_.define(rules_, as, at);
  if (!rule) return source_.error_at(at, fmt::format("a second \"{}\"", as));
  CYB_ASSIGN(const SourceText source, SourceText::open(found->second));
  CYB_ASSIGN(const ExprId body, read_regex(rules_, source, {}, budget_));
  rules_.define(*rule, body);
  return {};
}

/// Behind %import.
Result<void> LarkReader::read_import() {
  skip_space(false);
  const std::size_t at = source_.at();
  if (source_.take_word("_") != "common")
    return source_.error_at(at, "only %import common is supported");
  skip_space(false);
  if (source_.take("(")) {
    for (skip_space(true); !source_.take(")"); skip_space(true)) {
      const std::size_t from = source_.at();
      const std::string_view word = source_.take_word("_");
      CYB_TRY(import_common(word, word, from));
      skip_space(true);
      source_.take(",");
    }
    return {};
  }
  if (!source_.take(".")) return source_.error(". belongs here");
  const std::size_t from = source_.at();
  const std::string_view word = source_.take_word("_");
  std::string_view as = word;
  skip_space(false);
  if (source_.take("->")) {
    skip_space(false);
    as = source_.take_word("_");
  }
  return import_common(word, as, from);
}

Result<void> LarkReader::read_directive() {
  const std::size_t at = source_.at();
  source_.skip();
  const std::string_view word = source_.take_word("_");
  if (word == "import") return read_import();
  if (word != "ignore") return source_.error_at(at, fmt::format("%{} is not supported", word));
  CYB_ASSIGN(const ExprId body, read_alternatives(true));
  ignores_.push_back(body);
  return {};
}

Result<void> LarkReader::read_definition() {
  while (source_.peek() == '?' || source_.peek() == '!') source_.skip();  // shapes of trees
  const std::size_t at = source_.at();
  const std::string_view word = source_.take_word("_");
  if (word.empty()) return source_.error("a rule, a terminal or a % belongs here");
  if (source_.peek() == '{') return source_.error("templates of rules are not supported");
  if (source_.peek() == '.') return source_.error("priorities are not supported");
  const std::optional<RuleId> rule = names_.define(rules_, word, at);
  if (!rule) return source_.error_at(at, fmt::format("a second \"{}\"", word));
  skip_space(false);
  if (!source_.take(":")) return source_.error(": belongs here");
  CYB_ASSIGN(const ExprId body, read_alternatives(is_terminal(word)));
  rules_.define(*rule, body);
  return {};
}

Result<void> LarkReader::read_statement() {
  CYB_TRY(source_.peek() == '%' ? read_directive() : read_definition());
  skip_space(false);
  if (!source_.done() && source_.peek() != '\n') return source_.error("the line ends here");
  return {};
}

Result<GrammarRules> LarkReader::read() {
  for (skip_space(true); !source_.done(); skip_space(true)) CYB_TRY(read_statement());
  if (const auto missing = names_.first_missing()) {
    return source_.error_at(missing->first_use,
                            fmt::format("no rule or terminal \"{}\"", missing->word));
  }
  const auto start = names_.find("start");
  if (!start) return source_.error("no rule \"start\"");
  rules_.define(ignored_, ignores_.empty() ? rules_.empty()
                                           : rules_.repeat(rules_.choice(ignores_), 0, kUnbounded));
  rules_.root = rules_.declare("start");
  rules_.define(rules_.root, rules_.sequence({rules_.rule(ignored_), rules_.rule(*start)}));
  return std::move(rules_);
}

}  // namespace
}  // namespace text

Result<std::shared_ptr<const Grammar>> Grammar::from_lark(std::string_view source,
                                                          const GrammarLead& lead) {
  text::GrammarBudget budget;
  CYB_ASSIGN(const text::SourceText opened, text::SourceText::open_grammar(source));
  CYB_ASSIGN(text::GrammarRules rules, text::LarkReader(opened, budget).read());
  return compile(rules, budget, lead);
}

}  // namespace cyb
