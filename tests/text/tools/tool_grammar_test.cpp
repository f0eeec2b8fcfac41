// Grammars of whole answers: what they take is read back as exactly those calls.
#include <gtest/gtest.h>

#include <utility>

#include "text/grammar_support.hpp"
#include "text/tools/answer_splitter.hpp"
#include "text/tools/tool_grammar.hpp"

namespace cyb {
namespace {

const std::string kWeather =
    R"({"type":"object","properties":{"city":{"$ref":"#/$defs/name"}},"required":["city"],)"
    R"("additionalProperties":false,"$defs":{"name":{"type":"string","maxLength":8}}})";

ToolGrammarOptions options_of(std::string_view format) {
  ToolGrammarOptions out;
  out.format = find_tool_format(format);
  out.functions = {{"get_weather", kWeather}, {"f", R"({"type":"object"})"}};
  out.required = true;
  return out;
}

std::string calls_text(const ToolLayout& layout, const std::vector<std::string>& arguments) {
  std::string out(layout.before_all);
  for (const std::string& text : arguments) {
    if (&text != arguments.data()) out += layout.between;
    out += std::string(layout.before) + "get_weather" + (layout.numbered ? ":0" : "") +
           std::string(layout.middle) + text + std::string(layout.after);
  }
  return out + std::string(layout.after_all);
}

/// An argument as the format writes it. `value`: as it stands between the tags.
std::string tagged_text(const ToolTags& tags, std::string_view name, std::string_view value) {
  const std::string_view line = tags.lines ? "\n" : "";
  std::string out;
  for (const std::string_view part : {tags.key, name, tags.key_end, tags.gap, tags.value, line,
                                      value, line, tags.value_end, tags.after}) {
    out += part;
  }
  return out;
}

/// The one argument of get_weather.
std::string city_text(const ToolFormat& format, const std::string& city) {
  if (format.tags != nullptr) return tagged_text(*format.tags, "city", city);
  return R"({"city": ")" + city + "\"}";
}

SplitAnswer read(const ToolGrammarOptions& options, const std::string& text) {
  SplitOptions split{.format = options.format, .functions = {"get_weather", "f"}};
  for (const ToolFunction& function : options.functions) {
    split.types.push_back(read_argument_types(function.name, function.parameters));
  }
  AnswerSplitter splitter(std::move(split));
  std::vector<AnswerPart> parts;
  splitter.push(text, parts);
  splitter.finish(true, parts);
  return join_parts(parts);
}

TEST(ToolGrammar, CallsOfEveryFormatAreReadBack) {
  for (const ToolFormat& format : tool_formats()) {
    const ToolGrammarOptions options = options_of(format.name);
    const GrammarPtr grammar = must_compile(tool_grammar(options));
    ASSERT_NE(grammar, nullptr) << format.name;
    const std::string good = city_text(format, "Paris");
    for (std::size_t n = 1; n <= (format.layout.several ? 3U : 1U); ++n) {
      const std::string text = calls_text(format.layout, std::vector<std::string>(n, good));
      EXPECT_TRUE(grammar->matches(text)) << format.name << ": " << text;
      const SplitAnswer answer = read(options, text);
      ASSERT_EQ(answer.calls.size(), n) << format.name << ": " << text;
      EXPECT_EQ(answer.calls.back().name, "get_weather");
      EXPECT_EQ(answer.calls.back().arguments, R"({"city": "Paris"})") << format.name;
      EXPECT_EQ(answer.content, "") << format.name;
    }
    const std::string none = format.tags == nullptr ? "{}" : "";
    for (const std::string& bad : {none, city_text(format, "too long a name"), good + good}) {
      EXPECT_FALSE(grammar->matches(calls_text(format.layout, {bad}))) << format.name << bad;
    }
    EXPECT_FALSE(grammar->matches("")) << format.name;
    EXPECT_FALSE(grammar->matches("words")) << format.name;
  }
}

TEST(ToolGrammar, WithoutDutyWordsAreAnAnswerToo) {
  for (const ToolFormat& format : tool_formats()) {
    ToolGrammarOptions options = options_of(format.name);
    options.required = false;
    options.several = false;
    const GrammarPtr grammar = must_compile(tool_grammar(options));
    ASSERT_NE(grammar, nullptr) << format.name;
    const std::string call = calls_text(format.layout, {city_text(format, "Rome")});
    EXPECT_TRUE(grammar->matches(call)) << format.name;
    const std::string start = format.channels              ? "<|channel|>final<|message|>"
                              : format.starts_with.empty() ? ""
                                                           : "all\n";
    EXPECT_TRUE(grammar->matches(start + "It <b>rains</b>.")) << format.name;
    EXPECT_FALSE(grammar->matches(call + call)) << format.name;
    // What would be read as a call must be one that fits.
    const std::string bare = R"({"name": "get_weather", "arguments": {}})";
    EXPECT_TRUE(read(options, bare).calls.empty() || !grammar->matches(bare)) << format.name;
    const SplitAnswer answer = read(options, start + "It <b>rains</b>.");
    EXPECT_EQ(answer.content, "It <b>rains</b>.") << format.name;
  }
}

/// What the grammar takes as the arguments of f is read as `expected`.
void expect_read(const ToolGrammarOptions& options, const Grammar& grammar, const std::string& text,
                 const std::string& expected) {
  const ToolLayout& layout = options.format->layout;
  const std::string call = std::string(layout.before) + "f" + std::string(layout.middle) + text +
                           std::string(layout.after);
  EXPECT_EQ(grammar.matches(call), !expected.empty()) << options.format->name << ": " << call;
  if (expected.empty()) return;
  const SplitAnswer answer = read(options, call);
  ASSERT_EQ(answer.calls.size(), 1u) << call;
  EXPECT_EQ(answer.calls[0].arguments, expected) << call;
  EXPECT_EQ(answer.content, "") << call;
}

TEST(ToolGrammar, ArgumentsBetweenTagsAreReadAsTheirTypes) {
  for (const char* format : {"qwen3-coder", "glm-4.5", "glm-4.7"}) {
    ToolGrammarOptions options = options_of(format);
    options.functions[1].parameters = R"({"type": "object", "required": ["s"], "properties": {
      "s": {"type": "string"}, "e": {"enum": ["a b", "<x>"]}, "p": {"type": "string", "pattern": "^[a-c<]+$"},
      "d": {"type": "string", "format": "date"}, "k": {"type": "string", "minLength": 2, "maxLength": 3},
      "i": {"type": "integer", "minimum": 3}, "b": {"type": "boolean"},
      "l": {"type": "array", "items": {"$ref": "#/$defs/t"}}, "o": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "x/%7": {"type": "number"}}, "$defs": {"t": {"type": "string"}}})";
    const GrammarPtr grammar = must_compile(tool_grammar(options));
    ASSERT_NE(grammar, nullptr) << format;
    const ToolTags& tags = *options.format->tags;
    const auto one = [&](std::string_view name, std::string_view value,
                         const std::string& expected) {
      const std::string text = tagged_text(tags, "s", "v") + tagged_text(tags, name, value);
      expect_read(
          options, *grammar, text,
          expected.empty() ? "" : R"({"s": "v", ")" + std::string(name) + "\": " + expected + "}");
    };
    for (const std::string s :
         {"", "null", "5", " two\nlines\n", "</param <</arg_", "{\"a\": 1}"}) {
      std::string json = "\"";
      for (const char c : s) text::append_json_char(json, c);
      expect_read(options, *grammar, tagged_text(tags, "s", s), R"({"s": )" + json + "\"}");
    }
    expect_read(options, *grammar, tagged_text(tags, "e", "a b"), "");  // s is required
    expect_read(options, *grammar, tagged_text(tags, "s", std::string(tags.value_end) + "x"), "");
    one("e", "<x>", R"("<x>")");
    one("e", "c", "");
    one("p", "abc", R"("abc")");
    one("p", "a<", "");
    one("d", "2024-02-29", R"("2024-02-29")");
    one("d", "2023-02-29", "");
    one("k", "\n1", R"("\n1")");
    one("k", "1", "");
    one("i", "12", "12");
    one("i", "2", "");
    one("b", "true", "true");
    one("b", "yes", "");
    one("l", R"(["a", "\u003c/parameter>"])", R"(["a", "\u003c/parameter>"])");
    one("l", R"(["<"])", "");
    one("o", "null", "null");
    one("o", R"("text")", R"("text")");
    one("o", "text", "");
    one("x/%7", "1.5", "1.5");
    expect_read(options, *grammar, tagged_text(tags, "s", "v") + tagged_text(tags, "z", "1"), "");
  }
}

TEST(ToolGrammar, WhatCannotBeWrittenBetweenTagsIsRefusedByName) {
  const auto refused = [](const char* properties, const char* part, const char* more = "") {
    ToolGrammarOptions options = options_of("qwen3-coder");
    options.functions[1].parameters =
        R"({"type": "object", "properties": {)" + std::string(properties) + "}" + more + "}";
    const auto made = tool_grammar(options);
    ASSERT_FALSE(made) << properties;
    EXPECT_NE(made.error().message().find(part), std::string::npos) << made.error().message();
  };
  const char* f = "function f: #";
  refused(R"("a": {"type": "string", "anyOf": [{"maxLength": 1}]})",
          "function f: #/properties/a/anyOf");
  refused(R"("a>b": {"type": "string"})", "function f: #/properties/a>b");
  refused(R"("a": {"enum": ["x</parameter>"]})", "</parameter>");
  refused(R"("a": {"type": "array", "items": {"enum": ["x</parameter>"]}})", "</parameter>");
  refused(R"("a": {"minItems": 1})", "function f: #/properties/a");
  refused(R"("a": {"type": "string", "pattern": "a", "maxLength": 3})", "only one of");
  refused(R"("a": {"type": "integer"})", "requires \"b\"", R"(, "required": ["b"])");
  refused(R"("a": {"type": "integer"})", f, R"(, "patternProperties": {"^x": {}})");
  refused(R"("a": {"type": "integer"})", f, R"(, "anyOf": [{"required": ["a"]}])");
  refused(R"("a": {"type": "integer", "not": {}})", "function f: #/properties/a");
}

TEST(ToolGrammar, ContentMayHaveASchemaAndReasoningComesFirst) {
  ToolGrammarOptions options = options_of("hermes");
  options.required = false;
  options.content = R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})";
  options.lead = {"<think>", "</think>", false};
  const GrammarPtr grammar = must_compile(tool_grammar(options));
  const std::string call = calls_text(options.format->layout, {R"({"city":"Rome"})"});
  EXPECT_TRUE(grammar->matches("{\"a\":1}"));
  EXPECT_TRUE(grammar->matches("<think>a < b, </thin </ think></think>\n\n{\"a\":1}"));
  EXPECT_TRUE(grammar->matches("<think><<</thi</think>" + call));
  EXPECT_FALSE(grammar->matches("<think>no end {\"a\":1}"));
  EXPECT_FALSE(grammar->matches("<think></think>x</think>{\"a\":1}"));
  EXPECT_FALSE(grammar->matches("words"));
  options.lead.opened = true;
  const GrammarPtr opened = must_compile(tool_grammar(options));
  EXPECT_TRUE(opened->matches("hm</think>" + call));
  EXPECT_FALSE(opened->matches(call));
}

TEST(ToolGrammar, LeadsOfOtherLanguages) {
  const GrammarLead lead{"[THINK]", "[/THINK]", false};
  const GrammarPtr regex = must_compile(Grammar::from_regex("[ab]+", lead));
  EXPECT_TRUE(regex->matches("[THINK]a[b][/THINK]\nab"));
  EXPECT_TRUE(regex->matches("ab"));
  EXPECT_FALSE(regex->matches("[THINK]ab"));
  const GrammarPtr gbnf = must_compile(Grammar::from_gbnf("root ::= \"x\"", lead));
  EXPECT_TRUE(gbnf->matches("[THINK][[/THINK]x"));
}

TEST(ToolGrammar, ErrorsNameTheFunctionAndThePath) {
  ToolGrammarOptions options = options_of("hermes");
  options.functions[1].parameters =
      R"({"type":"object","properties":{"a":{"not":{"type":"string"}}}})";
  auto made = tool_grammar(options);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("function f: #/properties/a"), std::string::npos)
      << made.error().message();
  options = options_of("hermes");
  options.content = R"({"type":"object","properties":{"b":{"if":{}}}})";
  made = tool_grammar(options);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("#/properties/b"), std::string::npos);
  EXPECT_EQ(made.error().message().find("$defs"), std::string::npos) << made.error().message();
}

}  // namespace
}  // namespace cyb
