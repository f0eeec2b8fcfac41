// Grammars of whole answers: what they take is read back as exactly those calls.
#include <gtest/gtest.h>

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
    out += std::string(layout.before) + "get_weather" + std::string(layout.middle) + text +
           std::string(layout.after);
  }
  return out + std::string(layout.after_all);
}

SplitAnswer read(const ToolGrammarOptions& options, const std::string& text) {
  AnswerSplitter splitter({.format = options.format, .functions = {"get_weather", "f"}});
  std::vector<AnswerPart> parts;
  splitter.push(text, parts);
  splitter.finish(true, parts);
  return join_parts(parts);
}

TEST(ToolGrammar, CallsOfEveryFormatAreReadBack) {
  const std::string good = R"({"city":"Paris"})";
  for (const ToolFormat& format : tool_formats()) {
    const ToolGrammarOptions options = options_of(format.name);
    const GrammarPtr grammar = must_compile(tool_grammar(options));
    ASSERT_NE(grammar, nullptr) << format.name;
    for (std::size_t n = 1; n <= (format.layout.several ? 3U : 1U); ++n) {
      const std::string text = calls_text(format.layout, std::vector<std::string>(n, good));
      EXPECT_TRUE(grammar->matches(text)) << format.name << ": " << text;
      const SplitAnswer answer = read(options, text);
      ASSERT_EQ(answer.calls.size(), n) << format.name << ": " << text;
      EXPECT_EQ(answer.calls.back().name, "get_weather");
      EXPECT_EQ(answer.calls.back().arguments, good) << format.name;
      EXPECT_EQ(answer.content, "") << format.name;
    }
    for (const char* bad : {R"({"city":7})", R"({})", R"({"city":"too long a name"})"}) {
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
    const std::string call = calls_text(format.layout, {R"({"city":"Rome"})"});
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
