// JSON Schema against the verdicts of jsonschema (golden/make/grammar_json_schema.py), refusals by
// name, and walks with random tokens.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "grammar_support.hpp"
#include "tokenizer_support.hpp"

namespace cyb {
namespace {

using Json = nlohmann::ordered_json;

const Json& cases() {
  static const Json kCases = Json::parse(file_text(golden_path("grammar/json_schema.json")));
  return kCases;
}

TEST(JsonSchema, AgreesWithTheOracle) {
  std::size_t n_changed = 0, n_taken = 0;
  for (const Json& c : cases()) {
    SCOPED_TRACE(c["schema"].dump());
    const GrammarPtr grammar = must_compile(Grammar::from_json_schema(c["schema"].dump()));
    ASSERT_NE(grammar, nullptr);
    for (const Json& text : c["accept"])
      EXPECT_TRUE(grammar->matches(text.get<std::string>())) << text;
    for (const char* key : {"reject", "narrow"}) {
      for (const Json& text : c[key])
        EXPECT_FALSE(grammar->matches(text.get<std::string>())) << text;
    }
    for (const Json& changed : c["changed"]) {
      const bool taken = grammar->matches(changed[0].get<std::string>());
      n_taken += taken ? 1 : 0;
      EXPECT_TRUE(!taken || changed[1].get<bool>()) << changed[0];
      ++n_changed;
    }
  }
  EXPECT_GT(n_changed, 5000U);
  EXPECT_GT(n_taken, 500U);  // the other direction: changes that leave a text valid
}

TEST(JsonSchema, RefusalsNameThePath) {
  const std::pair<std::string, std::string> all[] = {
      {R"({"not": {"type": "null"}})", "#/not: not is not supported"},
      {R"({"type": "object", "properties": {"a": {"if": {}}}})", "#/properties/a/if"},
      {R"({"type": "array", "uniqueItems": true})", "#/uniqueItems"},
      {R"({"type": "array", "contains": {}})", "#/contains"},
      {R"({"type": "object", "dependentRequired": {}})", "#/dependentRequired"},
      {R"({"type": "object", "unevaluatedProperties": false})", "#/unevaluatedProperties"},
      {R"({"type": "string", "format": "zip"})", "#/format: format \"zip\" is not supported"},
      {R"x({"type": "string", "pattern": "(?=a)"})x", "#/pattern: line 1, column 1: lookaheads"},
      {R"x({"type": "string", "pattern": "(a)\\1"})x", "backreferences"},
      {R"({"type": "string", "pattern": "a", "minLength": 3})", "#/pattern"},
      {R"({"type": "text"})", "#/type: none of null"},
      {R"({"type": "object", "required": "a"})", "#/required"},
      {R"({"properties": {"a/b~": {"type": 3}}})", "#/properties/a~1b~0/type"},
      {R"({"$ref": "#/$defs/x"})", "#/$ref: \"#/$defs/x\" is not there"},
      {R"({"$ref": "other.json"})", "only references within the schema"},
      {R"({"$ref": "#"})", "#/$ref: a cycle of $ref"},
      {R"({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})",
       "a cycle of $ref"},
      {R"({"allOf": [{"$ref": "#"}]})", "a cycle of $ref and allOf"},
      {R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
       "no finite text fits"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "#/oneOf: alternatives 0 and 1"},
      {R"({"type": "object", "properties": {"a": false}, "required": ["a"]})",
       "#/properties/a: the property is required"},
      {R"({"type": "array", "items": [{"type": "null"}]})", "#/items"},
      {R"({"type": "integer", "multipleOf": 0.5})", "#/multipleOf"},
      {R"({"type": "object", "minProperties": 3})", "#/minProperties"},
      {R"({"made-up": 1})", "#/made-up: made-up is not supported"},
      {R"({"type": "string", "enum": ["a"], "minLength": 1})",
       "#/minLength: is not supported together"},
      {"{\"type\": \"object\",\n  oops}", "line 2, column 3: this is not JSON"},
      {R"({"const": 12345678901234567890123})", "line 1, column 11: the number does not fit"},
      {R"({"maximum": 18446744073709551616})", "does not fit 64 bits"},
      {R"({"const": -9223372036854775809})", "does not fit 64 bits"},
      {R"({"type": "number", "minimum": -1e99999})", "#: a number does not fit 64 bits"},
      {"3", "a schema is an object"},
      {"false", "no finite text fits"},
  };
  for (const auto& [source, part] : all) {
    const auto made = Grammar::from_json_schema(source);
    ASSERT_FALSE(made.has_value()) << source;
    EXPECT_EQ(made.error().kind(), ErrorKind::kInvalidInput) << source;
    EXPECT_NE(made.error().text().find(part), std::string::npos) << source << "\n"
                                                                 << made.error().text();
  }
}

TEST(JsonSchema, BigBoundsAreCounters) {
  const auto most = must_compile(Grammar::from_json_schema(
      R"({"type": "array", "items": {"type": "null"}, "maxItems": 18446744073709551615})"));
  EXPECT_TRUE(most->matches("[null, null]"));
  const auto least = must_compile(Grammar::from_json_schema(
      R"({"type": "array", "items": {"type": "null"}, "minItems": 9223372036854775808})"));
  EXPECT_FALSE(least->matches("[null, null]"));
  const auto numbers = must_compile(Grammar::from_json_schema(
      R"({"type": "array", "items": {"type": "number"}, "minItems": 10, "maxItems": 1000})"));
  EXPECT_LT(numbers->network().n_nodes(), 300U);
  const auto list = [](int n) {
    std::string out = "[1";
    for (int i = 1; i < n; ++i) out += ", " + std::to_string(i) + ".5";
    return out + "]";
  };
  EXPECT_FALSE(numbers->matches(list(9)));
  EXPECT_TRUE(numbers->matches(list(10)));
  EXPECT_TRUE(numbers->matches(list(1000)));
  EXPECT_FALSE(numbers->matches(list(1001)));
  std::string deep = "true";
  for (int i = 0; i < 200; ++i) deep = R"({"type": "array", "items": )" + deep + "}";
  const auto refused = Grammar::from_json_schema(deep);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text().find("more than 64 levels"), std::string::npos);
}

/// A walk with random tokens; empty where it did not end.
std::string random_walk(const GrammarPtr& grammar,
                        const std::shared_ptr<const text::TokenTrie>& trie, Dice& dice,
                        bool blanks) {
  GrammarMatcher matcher(grammar->masks(trie));
  std::string out;
  for (int step = 0; step < 3000; ++step) {
    if (matcher.can_end() && (matcher.must_end() || dice.below(3) == 0)) return out;
    const auto bits = mask_of(matcher, trie->vocab_size());
    std::vector<std::int32_t> allowed;
    for (std::size_t id = 0; id < trie->vocab_size(); ++id) {
      if (bit(bits, id)) allowed.push_back(static_cast<std::int32_t>(id));
    }
    EXPECT_TRUE(!allowed.empty() || matcher.can_end()) << out;
    if (allowed.empty()) return out;
    std::int32_t token = allowed[dice.below(static_cast<std::uint32_t>(allowed.size()))];
    // Ends are rare among random tokens: half of the time one of the shortest ways on.
    for (const std::int32_t end : {'"', '}', ']', '0'}) {
      if (bit(bits, static_cast<std::size_t>(end)) && dice.below(4) == 0) token = end;
    }
    for (const std::int32_t blank : {'\n', ' ', '\t'}) {
      if (blanks && bit(bits, static_cast<std::size_t>(blank))) token = blank;
    }
    EXPECT_TRUE(matcher.accept(token));
    out += trie->text(token);
  }
  return "";
}

// With CYB_GRAMMAR_WALKS=FILE the texts are written there as lines of [schema, text], for
// golden/make/grammar_walks.py to check with jsonschema.
TEST(JsonSchema, RandomWalksThatEndAreJson) {
  const auto trie = byte_trie({"\":",  "\", \"", "[{",  "}]", ", ",  "\n  ",     "\n",
                               "true", "null",   "0.",  "12", "\"}", "\xF0\x9F", "\x98\x80",
                               "e-",   "\\\"",   "\\u", "00", "}}",  "]}"});
  const char* file = std::getenv("CYB_GRAMMAR_WALKS");
  std::ofstream lines(file == nullptr ? "/dev/null" : file);
  Dice dice(5);
  std::size_t n_ended = 0;
  for (const Json& c : cases()) {
    const GrammarPtr grammar = must_compile(Grammar::from_json_schema(c["schema"].dump()));
    for (int walk = 0; walk < (file == nullptr ? 4 : 40); ++walk) {
      const std::string text = random_walk(grammar, trie, dice, walk % 4 == 3);
      if (text.empty()) continue;
      ++n_ended;
      EXPECT_TRUE(grammar->matches(text)) << text;
      const Json parsed = Json::parse(text, nullptr, false);
      ASSERT_FALSE(parsed.is_discarded()) << c["schema"] << text;
      lines << Json::array({c["schema"], text}).dump() << "\n";
    }
  }
  EXPECT_GT(n_ended, cases().size() * 2);
}

// The logits want white space at every step: at most a line break and 32 blanks in a row.
TEST(JsonSchema, WhiteSpaceIsBounded) {
  const auto trie = byte_trie({"  ", "    ", "\n\n", " \n", "        ", "\t\t"});
  for (
      const char* schema :
      {R"({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "null"}, "maxItems": 2}},
            "required": ["a"], "additionalProperties": false})",
       R"({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]})"}) {
    const GrammarPtr grammar = must_compile(Grammar::from_json_schema(schema));
    Dice dice(1);
    GrammarMatcher matcher(grammar->masks(trie));
    std::string out;
    while (!matcher.must_end()) {
      const auto bits = mask_of(matcher, trie->vocab_size());
      std::int32_t best = -1;
      int best_score = -1;  // line breaks first, then any blank
      for (std::int32_t id = 0; id < static_cast<std::int32_t>(trie->vocab_size()); ++id) {
        if (!bit(bits, static_cast<std::size_t>(id))) continue;
        const std::string_view word = trie->text(id);
        const bool blank = word.find_first_not_of(" \t\n") == std::string_view::npos;
        const int score = blank ? (word.starts_with('\n') ? 2 : 1) : 0;
        if (score > best_score) best = id;
        best_score = std::max(best_score, score);
      }
      ASSERT_GE(best, 0);
      ASSERT_TRUE(matcher.accept(best));
      out += trie->text(best);
      ASSERT_LT(out.size(), 2000U);
    }
    EXPECT_TRUE(Json::accept(out)) << out;
    std::size_t run = 0, longest = 0;
    for (const char c : out) {
      run = c == ' ' || c == '\n' || c == '\t' ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    EXPECT_EQ(longest, 33U) << out;
  }
}

}  // namespace
}  // namespace cyb
