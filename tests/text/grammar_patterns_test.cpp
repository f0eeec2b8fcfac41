// Regular expressions against re.fullmatch and Lark grammars against lark
// (golden/make/grammar_patterns.py), and what is refused by name.
#include <nlohmann/json.hpp>

#include "grammar_support.hpp"
#include "tokenizer_support.hpp"

namespace cyb {
namespace {

using Json = nlohmann::json;

void expect_refused(const Result<GrammarPtr>& made, const std::string& source,
                    const std::string& part) {
  ASSERT_FALSE(made.has_value()) << source;
  EXPECT_EQ(made.error().kind(), ErrorKind::kInvalidInput) << source;
  EXPECT_NE(made.error().text().find(part), std::string::npos) << source << "\n"
                                                               << made.error().text();
}

TEST(RegexGrammar, AgreesWithFullmatch) {
  const Json rows = Json::parse(file_text(golden_path("grammar/regex.json")));
  ASSERT_EQ(rows.size(), 400U);
  for (const Json& row : rows) {
    const std::string pattern = row[0].get<std::string>();
    SCOPED_TRACE(pattern);
    const GrammarPtr grammar = must_compile(Grammar::from_regex(pattern));
    ASSERT_NE(grammar, nullptr);
    for (const Json& text : row[1]) EXPECT_TRUE(grammar->matches(text.get<std::string>())) << text;
    for (const Json& text : row[2]) EXPECT_FALSE(grammar->matches(text.get<std::string>())) << text;
  }
}

TEST(RegexGrammar, AnchorsAtTheEndsSayNothingNew) {
  const GrammarPtr grammar = must_compile(Grammar::from_regex("^ab$|^c|d\\Z"));
  for (const char* text : {"ab", "c", "d"}) EXPECT_TRUE(grammar->matches(text));
  for (const char* text : {"abc", "cd", ""}) EXPECT_FALSE(grammar->matches(text));
}

TEST(RegexGrammar, RefusalsNameTheConstruct) {
  const std::pair<std::string, std::string> all[] = {
      {"a(?=b)", "line 1, column 2: lookaheads are not regular"},
      {"(?<!a)b", "lookbehinds"},
      {"(a)\\1", "column 4: backreferences"},
      {"(?P<x>a)(?P=x)", "backreferences"},
      {"\\bword", "word boundaries"},
      {"(?i)a", "flags"},
      {"(?>a)", "atomic groups"},
      {"a++", "possessive"},
      {"a**", "nothing that can be repeated"},
      {"*a", "column 1: nothing that can be repeated"},
      {"(a$)b", "$ is supported only at the end"},
      {"a^b", "^ is supported only at the start"},
      {"\\p{L}", "Unicode properties"},
      {"[[:alpha:]]", "classes by name"},
      {"[a", "the class has no end"},
      {"(a", "( without a )"},
      {"a)", ") without a ("},
      {"[z-a]", "no range"},
      {"a{3,1}", "the largest number is below"},
      {"a{,3}", "{ begins no"},
      {"\\q", "the escape \\q"},
      {std::string(100, '(') + std::string(100, ')'), "more than 64 levels"},
  };
  for (const auto& [pattern, part] : all)
    expect_refused(Grammar::from_regex(pattern), pattern, part);
}

TEST(LarkGrammar, AgreesWithLark) {
  const Json rows = Json::parse(file_text(golden_path("grammar/lark.json")));
  for (const Json& row : rows) {
    SCOPED_TRACE(row["grammar"].get<std::string>());
    const GrammarPtr grammar = must_compile(Grammar::from_lark(row["grammar"].get<std::string>()));
    ASSERT_NE(grammar, nullptr);
    for (const Json& text : row["texts"])
      EXPECT_EQ(grammar->matches(text[0].get<std::string>()), text[1].get<bool>()) << text[0];
  }
}

TEST(LarkGrammar, RefusalsNameTheConstruct) {
  const std::pair<std::string, std::string> all[] = {
      {"start: A\nA.2: \"a\"", "line 2, column 2: priorities are not supported"},
      {"start.2: \"a\"", "priorities"},
      {"start: list{x}", "templates"},
      {"list{x}: x", "templates"},
      {"%declare X", "%declare is not supported"},
      {"%import other.X", "only %import common"},
      {"%import common.NOPE", "common has no terminal \"NOPE\""},
      {"start: b", "line 1, column 8: no rule or terminal \"b\""},
      {"a: \"x\"", "no rule \"start\""},
      {"start: \"x\"\nstart: \"y\"", "line 2, column 1: a second \"start\""},
      {"start: A\nA: start", "a terminal cannot be made of the rule"},
      {"start: \"a", "the string has no end"},
      {"start: /a", "the regular expression has no end"},
      {"start: /(?=a)b/", "line 1, column 8: lookaheads"},
      {"start: /a/m", "the flag m"},
      {"start: (\"a\"", "a bracket without its end"},
      {"start: \"a\")", ") without a ("},
      {"start: (\"a\"]", "] without a ["},
      {"start: ?", "nothing stands before"},
      {"start: a\na: b \"x\" | \"y\"\nb: a \"z\"", "left recursion"},
  };
  for (const auto& [source, part] : all) expect_refused(Grammar::from_lark(source), source, part);
}

}  // namespace
}  // namespace cyb
