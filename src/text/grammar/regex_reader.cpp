// Anchors stand at the two ends of a whole alternative only. \d \w \s and their complements are
// those of ASCII.
#include "text/grammar/regex_reader.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.hpp"
#include "text/grammar/grammar.hpp"

namespace cyb {
namespace text {
namespace {

CharSet digits() {
  return CharSet::range('0', '9');
}
CharSet word_chars() {
  CharSet out = digits();
  out.add('A', 'Z');
  out.add('_', '_');
  out.add('a', 'z');
  return out;
}
CharSet spaces() {
  CharSet out = CharSet::range(9, 13);
  out.add(' ', ' ');
  return out;
}

class RegexReader {
 public:
  RegexReader(GrammarRules& rules, const SourceText& source, const RegexOptions& options,
              GrammarBudget& budget)
      : rules_(rules), source_(source), options_(options), budget_(budget) {}
  Result<ExprId> read();

 private:
  Result<void> read_item();
  Result<void> read_atom();
  Result<void> open_group();
  Result<void> close_group();
  Result<void> anchor(bool start, std::size_t size);
  Result<void> read_repeat();
  Result<CharSet> read_class();
  Result<CharSet> read_class_member(bool& single);
  Result<CharSet> read_escape(bool in_class);
  Result<char32_t> read_code(char kind);
  CharSet dot() const;
  ExprId chars(CharSet set);
  void add(ExprId item) {
    groups_.back().items.push_back(item);
    repeats_ = true;
  }
  void next_alternative();

  GrammarRules& rules_;
  SourceText source_;
  const RegexOptions& options_;
  GrammarBudget& budget_;
  std::vector<OpenGroup> groups_;
  bool repeats_ = false;                      // the last item may be repeated
  bool from_start_ = false, to_end_ = false;  // anchors of the alternative outside of groups
};

ExprId RegexReader::chars(CharSet set) {
  if (options_.ignore_case) set = set.any_case();
  return options_.json ? json_chars(rules_, set) : rules_.one_of(set);
}

CharSet RegexReader::dot() const {
  CharSet ends;
  if (!options_.dot_all) ends.add('\n', '\n');
  if (options_.json) {
    ends.add('\r', '\r');
    ends.add(0x2028, 0x2029);
  }
  return ends.negated();
}

Result<void> RegexReader::anchor(bool start, std::size_t size) {
  const bool at_start = groups_.back().items.empty() && !to_end_;
  if (groups_.size() > 1 || (start && !at_start)) {
    return source_.error(
        fmt::format("{} is supported only at the {} of a whole alternative, outside of groups",
                    start ? "^" : "$", start ? "start" : "end"));
  }
  (start ? from_start_ : to_end_) = true;
  repeats_ = false;
  source_.skip(size);
  return {};
}

Result<void> RegexReader::open_group() {
  if (groups_.size() > kMaxGrammarDepth)
    return source_.error(fmt::format("more than {} levels of groups", kMaxGrammarDepth));
  const std::size_t at = source_.at();
  source_.skip();
  if (source_.take("?")) {
    const std::pair<std::string_view, std::string_view> refused[] = {
        {"=", "lookahead"},   {"!", "lookahead"},    {"<=", "lookbehind"},
        {"<!", "lookbehind"}, {">", "atomic group"}, {"P=", "backreference"},
        {"P>", "recursion"},  {"(", "condition"},    {"|", "branch reset"}};
    for (const auto& [text, name] : refused) {
      if (source_.text().substr(source_.at()).starts_with(text))
        return source_.error_at(at, fmt::format("{}s are not regular, and not supported", name));
    }
    if (source_.take("P<") || source_.take("<")) {
      source_.take_word("_");
      if (!source_.take(">")) return source_.error("> belongs here, after the group's name");
    } else if (!source_.take(":")) {
      return source_.error_at(at, "flags and comments in a pattern, (?...), are not supported");
    }
  }
  groups_.push_back({at, '('});
  repeats_ = false;
  return {};
}

Result<void> RegexReader::close_group() {
  if (groups_.size() == 1) return source_.error(") without a (");
  source_.skip();
  const ExprId expr = groups_.back().close(rules_);
  groups_.pop_back();
  add(expr);
  return {};
}

Result<void> RegexReader::read_repeat() {
  const std::size_t at = source_.at();
  if (!repeats_) return source_.error("nothing that can be repeated stands before this");
  std::uint64_t min = 0, max = kUnbounded;
  if (source_.take("+")) {
    min = 1;
  } else if (source_.take("?")) {
    max = 1;
  } else if (!source_.take("*")) {
    source_.skip();
    if (source_.peek() < '0' || source_.peek() > '9')
      return source_.error_at(at, "{ begins no {m}, {m,} or {m,n}; write \\{ for the character");
    CYB_ASSIGN(min, source_.take_number());
    max = min;
    if (source_.take(",")) {
      max = kUnbounded;
      if (source_.peek() != '}') {
        CYB_ASSIGN(max, source_.take_number());
      }
    }
    if (!source_.take("}")) return source_.error("} belongs here");
    if (max < min) return source_.error_at(at, "the largest number is below the smallest");
  }
  if (source_.peek() == '+')
    return source_.error("possessive repetitions are not regular, and not supported");
  source_.take("?");  // lazy: the same texts match
  ExprId& last = groups_.back().items.back();
  last = rules_.repeat(last, min, max);
  repeats_ = false;
  return {};
}

Result<char32_t> RegexReader::read_code(char kind) {
  if (kind == 'x') return source_.take_hex(2);
  if (!source_.take("{")) return source_.take_hex(4);
  std::size_t n = 0;
  while (source_.peek(n) != '}' && n < 8) ++n;
  CYB_ASSIGN(const char32_t c, source_.take_hex(n == 0 ? 1 : n));
  if (!source_.take("}")) return source_.error("} belongs here");
  return c;
}

/// Behind the backslash.
Result<CharSet> RegexReader::read_escape(bool in_class) {
  const std::size_t at = source_.at() - 1;
  if (source_.done()) return source_.error_at(at, "the pattern ends after a backslash");
  const char c = source_.peek();
  if (static_cast<unsigned char>(c) >= 0x80) return CharSet::of(source_.take_char());
  source_.skip();
  constexpr std::string_view kNames = "nrtfv0";
  constexpr char kControls[] = {'\n', '\r', '\t', '\f', '\v', '\0'};
  if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
    const bool octal = c == '0' && source_.peek() >= '0' && source_.peek() <= '9';
    if (octal) return source_.error_at(at, "octal escapes are not supported");
    return CharSet::of(static_cast<char32_t>(kControls[i]));
  }
  if (c == 'd') return digits();
  if (c == 'D') return digits().negated();
  if (c == 'w') return word_chars();
  if (c == 'W') return word_chars().negated();
  if (c == 's') return spaces();
  if (c == 'S') return spaces().negated();
  if (c == 'x' || c == 'u') {
    CYB_ASSIGN(const char32_t code, read_code(c));
    return CharSet::of(code);
  }
  if (in_class && c == 'b') return CharSet::of('\b');
  if (c == 'b' || c == 'B') return source_.error_at(at, "word boundaries are not supported");
  if (c >= '1' && c <= '9')
    return source_.error_at(at, "backreferences are not regular, and not supported");
  if (c == 'k' || c == 'g')
    return source_.error_at(at, "backreferences are not regular, and not supported");
  if (c == 'p' || c == 'P')
    return source_.error_at(at, "classes of Unicode properties are not supported");
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (letter) return source_.error_at(at, fmt::format("the escape \\{} is not supported", c));
  return CharSet::of(static_cast<char32_t>(c));
}

/// `single`: one character, which may begin or end a range.
Result<CharSet> RegexReader::read_class_member(bool& single) {
  if (source_.peek() == '[' && (source_.peek(1) == ':' || source_.peek(1) == '='))
    return source_.error("classes by name, [:name:], are not supported");
  if (source_.peek() != '\\') {
    single = true;
    return CharSet::of(source_.take_char());
  }
  source_.skip();
  CYB_ASSIGN(CharSet set, read_escape(true));
  single = set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
  return set;
}

Result<CharSet> RegexReader::read_class() {
  const std::size_t at = source_.at();
  source_.skip();
  const bool negated = source_.take("^");
  if (source_.peek() == ']')
    return source_.error_at(at, "an empty class; write \\] where ] is the first character");
  CharSet set;
  while (source_.peek() != ']') {
    if (source_.done()) return source_.error_at(at, "the class has no end");
    const std::size_t from = source_.at();
    bool single = false;
    CYB_ASSIGN(const CharSet member, read_class_member(single));
    if (source_.peek() != '-' || source_.peek(1) == ']' || source_.peek(1) == '\0') {
      set.add(member);
      continue;
    }
    source_.skip();
    bool ends = false;
    CYB_ASSIGN(const CharSet last, read_class_member(ends));
    if (!single || !ends || last.ranges()[0].first < member.ranges()[0].first)
      return source_.error_at(from, "no range of characters");
    set.add(member.ranges()[0].first, last.ranges()[0].first);
    CYB_TRY(budget_.step("class"));
  }
  source_.skip();
  // Case is folded before the complement is taken.
  if (options_.ignore_case) set = set.any_case();
  return negated ? set.negated() : set;
}

Result<void> RegexReader::read_atom() {
  const char c = source_.peek();
  if (c == '.') {
    source_.skip();
    add(chars(dot()));
  } else if (c == '[') {
    CYB_ASSIGN(const CharSet set, read_class());
    add(options_.json ? json_chars(rules_, set) : rules_.one_of(set));
  } else if (c == '\\') {
    source_.skip();
    CYB_ASSIGN(CharSet set, read_escape(false));
    add(chars(std::move(set)));
  } else {
    add(chars(CharSet::of(source_.take_char())));
  }
  return {};
}

void RegexReader::next_alternative() {
  OpenGroup& group = groups_.back();
  if (groups_.size() == 1 && options_.search) {
    const ExprId any = rules_.repeat(
        options_.json ? json_chars(rules_, CharSet::all()) : rules_.one_of(CharSet::all()), 0,
        kUnbounded);
    if (!from_start_) group.items.insert(group.items.begin(), any);
    if (!to_end_) group.items.push_back(any);
  }
  if (groups_.size() == 1) from_start_ = to_end_ = false;
  group.next_alternative(rules_);
  repeats_ = false;
}

Result<void> RegexReader::read_item() {
  const char c = source_.peek();
  if (c == '^') return anchor(true, 1);
  if (c == '$') return anchor(false, 1);
  if (c == '\\' && source_.peek(1) == 'A') return anchor(true, 2);
  if (c == '\\' && (source_.peek(1) == 'Z' || source_.peek(1) == 'z')) return anchor(false, 2);
  if (c == '|') {
    source_.skip();
    next_alternative();
    return {};
  }
  if (to_end_ && groups_.size() == 1)
    return source_.error("$ is supported only at the end of a whole alternative");
  if (c == '(') return open_group();
  if (c == ')') return close_group();
  if (c == '*' || c == '+' || c == '?' || c == '{') return read_repeat();
  return read_atom();
}

Result<ExprId> RegexReader::read() {
  groups_.assign(1, OpenGroup{});
  while (!source_.done()) {
    CYB_TRY(read_item());
    CYB_TRY(budget_.step("pattern"));
  }
  if (groups_.size() > 1) return source_.error_at(groups_.back().at, "( without a )");
  next_alternative();
  return rules_.choice(groups_.back().alternatives);
}

}  // namespace

std::string json_spelling(std::string_view text) {
  constexpr std::string_view kRaw = "\"\\\b\f\n\r\t", kShort = "\"\\bfnrt";
  std::string out;
  for (const char c : text) {
    const std::size_t i = kRaw.find(c);
    if (i != std::string_view::npos) {
      out += '\\';
      out += kShort[i];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

ExprId json_chars(GrammarRules& rules, const CharSet& set) {
  CharSet escaped = CharSet::range(0, 0x1F);
  escaped.add('"', '"');
  escaped.add('\\', '\\');
  std::vector<ExprId> parts{rules.one_of(set.minus(escaped))};
  const CharSet spelled = set.common(escaped);
  for (const CharRange& range : spelled.ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c)
      parts.push_back(rules.literal(json_spelling(std::string(1, static_cast<char>(c)))));
  }
  return rules.choice(parts);
}

Result<ExprId> read_regex(GrammarRules& rules, const SourceText& source,
                          const RegexOptions& options, GrammarBudget& budget) {
  return RegexReader(rules, source, options, budget).read();
}

}  // namespace text

Result<std::shared_ptr<const Grammar>> Grammar::from_regex(
    std::string_view pattern, const GrammarLead& lead) {
  text::GrammarBudget budget;
  CYB_ASSIGN(const text::SourceText source, text::SourceText::open(pattern));
  text::GrammarRules rules;
  rules.root = rules.declare("pattern");
  CYB_ASSIGN(const text::ExprId body, text::read_regex(rules, source, {}, budget));
  rules.define(rules.root, body);
  return compile(rules, budget, lead);
}

}  // namespace cyb
