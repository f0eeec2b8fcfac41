// GBNF: what is read, what is refused and where, and what the rows of the budget cost.
#include <chrono>

#include "grammar_support.hpp"

namespace cyb {
namespace {

struct Example {
  const char* name;
  const char* source;
  std::vector<std::string> fits, does_not;
};

// llama.cpp's own examples.
const std::vector<Example>& examples() {
  static const std::vector<Example> kAll = {
      {"json",
       R"(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)",
       {"{}", R"({"a":1})", R"({ "a": [1, {"b": "x\"\u00e9"}, -1.5e3, null]})", "{\"é\":\n  true}"},
       {"", "[1]", "{\"a\":}", "{\"a\":01}", "{  }", "{\"a\":1,}", R"({"a":"\x"})"}},
      {"arithmetic",
       "root  ::= (expr \"=\" ws term \"\\n\")+\nexpr  ::= term ([-+*/] term)*\n"
       "term  ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\n"
       "num   ::= [0-9]+ ws\nws    ::= [ \\t\\n]*\n",
       {"1+2=3\n", "(a +b)*2 = c\n", "((x))=y\n1=1\n"},
       {"1+2=3", "1++2=3\n", "(1=2\n", "=1\n"}},
      {"list",
       "root ::= item+\n# a list\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ "
       "\"\\n\"\n",
       {"- a\n", "- a b\n- \xC3\xA9\n"},
       {"- \n", "-a\n", "- a", "- \xE2\x80\xA8\n"}},
      {"chess",
       "root   ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move \"\\n\")+\n"
       "move   ::= (pawn | nonpawn | castle) [+#]?\n"
       "nonpawn ::= [NBKQR] [a-h]? [1-8]? \"x\"? [a-h] [1-8]\n"
       "pawn   ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBKQR])?\ncastle ::= \"O-O\" \"-O\"?\n",
       {"1. e4 e5\n2. Nf3 Nc6\n3. O-O exd4+\n"},
       {"1. e4 e5\n", "1. e9 e5\n2. Nf3 Nc6\n"}},
      {"japanese",
       "root     ::= jp-char+ ([ \\t\\n] jp-char+)*\n"
       "jp-char  ::= hiragana | katakana | punctuation | cjk\nhiragana ::= "
       "[\xE3\x81\x81-\xE3\x82\x9F]\n"
       "katakana ::= [\xE3\x82\xA1-\xE3\x83\xBF]\npunctuation ::= [\xE3\x80\x81-\xE3\x80\xBE]\n"
       "cjk      ::= [\xE4\xB8\x80-\xE9\xBF\xBF]\n",
       {"\xE3\x81\x82\xE3\x82\xA2 \xE6\xBC\xA2"},
       {"a", "\xE3\x81\x82 ", "\xE3\x81"}},
      {"repetitions",
       "root ::= \"ab\"{2} [0-9]{1,3} (\"x\" | \"yz\"){2,} .{ 0 , 2 } \"\\u00e9\"? "
       "\"\\U0001F600\"?\n",
       {"abab1xx", "abab123xyzx", "abab1xx\n!", "abab1xx\xC3\xA9", "abab1yzyz\xF0\x9F\x98\x80"},
       {"ab1xx", "abab1234xx", "abab1x", "abab1xxabcd"}},
      {"left recursion by itself",
       "root ::= root \"+\" num | num\nnum ::= [0-9]+\n",
       {"1", "1+22+3"},
       {"", "+1", "1+"}},
      {"optional loops", "root ::= (\"a\"*)*", {"", "a", "aaaa"}, {"b"}},
      {"empty alternatives", "root ::= \"a\" ( | \"b\" | ) \"c\"", {"ac", "abc"}, {"abbc"}},
      {"next lines",
       "root ::= \"a\"\n  | \"b\"\n# last\n\n  | \"c\" |\n \"d\"",
       {"a", "b", "c", "d"},
       {"ab"}},
  };
  return kAll;
}

TEST(Gbnf, Examples) {
  for (const Example& e : examples()) {
    SCOPED_TRACE(e.name);
    const GrammarPtr grammar = must_compile(Grammar::from_gbnf(e.source));
    ASSERT_NE(grammar, nullptr);
    for (const std::string& text : e.fits) EXPECT_TRUE(grammar->matches(text)) << text;
    for (const std::string& text : e.does_not) EXPECT_FALSE(grammar->matches(text)) << text;
  }
}

TEST(Gbnf, RefusalsNameThePlace) {
  const std::pair<std::string, std::string> all[] = {
      {"root ::= \"a", "line 1, column 10: the literal has no end"},
      {"root ::= [a", "line 1, column 10: the class has no end"},
      {"root ::= [b-a]", "line 1, column 11: the range of characters runs backwards"},
      {"root ::= (\"a\"", "line 1, column 10: ( without a )"},
      {"root ::= \"a\")", "line 1, column 13: ) without a ("},
      {"root ::= *", "line 1, column 10: nothing stands before the repetition"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: the repetition's largest number is below"},
      {"root ::= \"a\"{99999999999999999999}", "the number is too large"},
      {"root ::= \"\\q\"", "line 1, column 11: unknown escape"},
      {"root ::= \"\\ud800\"", "no Unicode character"},
      {"root = \"a\"", "line 1, column 6: ::= belongs here"},
      {"root ::= a\n", "line 1, column 10: no rule \"a\""},
      {"other ::= \"a\"", "no rule \"root\""},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: a second rule \"root\""},
      {"root ::= []",
       "rule \"root\": no finite text fits: every way through it goes on for ever or needs a "
       "character of a class that has none"},
      {"\xEF\xBB\xBFroot ::= \"a\"", "line 1, column 1: a byte order mark"},
      {"root ::= <think>", "line 1, column 10: tokens in a grammar"},
      {"root ::= \xC3", "line 1, column 10: not UTF-8"},
      {"root ::= root", "rule \"root\": no finite text fits"},
      {"root ::= \"a\" root", "rule \"root\": no finite text fits"},
      {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= a \"z\"", "left recursion"},
      {"root ::= \"x\"? root \"y\" | \"z\"", "rule \"root\": left recursion"},
      {"", "no rule \"root\""},
  };
  for (const auto& [source, part] : all) {
    const auto made = Grammar::from_gbnf(source);
    ASSERT_FALSE(made.has_value()) << source;
    EXPECT_EQ(made.error().kind(), ErrorKind::kInvalidInput) << source;
    EXPECT_NE(made.error().text().find(part), std::string::npos) << source << "\n"
                                                                 << made.error().text();
  }
}

// Each is an error that names its place, or right, and soon: the limit is 200 ms of work, the bound
// here allows for a busy machine.
TEST(Gbnf, HostileSourcesEndSoon) {
  const auto start = std::chrono::steady_clock::now();
  const auto refused = [](const std::string& source) {
    const auto made = Grammar::from_gbnf(source);
    return made ? std::string("accepted") : made.error().text();
  };
  const std::string deep(60000, '(');
  EXPECT_NE(refused("root ::= " + deep).find("more than 64 levels of brackets"), std::string::npos);
  EXPECT_NE(refused("root ::= " + deep + "\"a\"" + std::string(60000, ')')).find("64 levels"),
            std::string::npos);
  EXPECT_NE(refused("root ::= root").find("no finite text"), std::string::npos);
  EXPECT_EQ(refused("root ::= (\"a\"*)*"), "accepted");
  EXPECT_EQ(refused("root ::= ((\"a\"{0,18446744073709551614}){2,9999999999})+"), "accepted");
  EXPECT_NE(
      refused("root ::= \"" + std::string(200000, 'a') + "\"").find("more than 100000 states"),
      std::string::npos);
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 30000; ++i)
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  chain += "r30000 ::= \"x\"\n";
  const std::string said = refused(chain);
  EXPECT_TRUE(said == "accepted" || said.find("200 ms") != std::string::npos) << said;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 10.0);
}

}  // namespace
}  // namespace cyb
