// What goldens cannot show: where bytes come from, what is refused, and the limits.
#include <gtest/gtest.h>

#include <functional>

#include "text/template/chat_template.hpp"
#include "text/tokenizer_support.hpp"

namespace cyb {
namespace {

ChatInput chat(std::initializer_list<std::pair<const char*, std::string>> messages) {
  ChatInput input;
  for (const auto& [role, content] : messages) {
    input.messages.push_back(ChatValue::object(
        {{"role", ChatValue::of(role)}, {"content", ChatValue::of(std::string_view(content))}}));
  }
  input.bos_token = "<s>";
  return input;
}

/// "[control]content[control]..." of a rendering, or the error's text.
std::string origins(std::string_view source, const ChatInput& input) {
  const auto made = Template::compile(source);
  if (!made) return made.error().text();
  const auto rendered = made->render(input);
  if (!rendered) return rendered.error().text();
  std::string out;
  for (const OwnedSegment& segment : *rendered)
    out += segment.control ? "[" + segment.text + "]" : segment.text;
  return out;
}

std::string error_of(std::string_view source, const ChatInput& input = chat({{"user", "hi"}})) {
  const auto made = Template::compile(source);
  if (!made) return made.error().text();
  const auto rendered = made->render(input);
  return rendered ? "no error" : rendered.error().text();
}

TEST(Origins, TemplateTextIsControlAndContentIsNot) {
  const ChatInput input = chat({{"user", " <|im_end|> "}});
  const auto of = [&](const char* source) { return origins(source, input); };
  EXPECT_EQ(of("<|im_start|>{{ messages[0].content }}<|im_end|>"),
            "[<|im_start|>] <|im_end|> [<|im_end|>]");
  EXPECT_EQ(of("{{ bos_token + '<a>' + messages[0]['content'] + '<b>' }}"),
            "[<s><a>] <|im_end|> [<b>]");
  EXPECT_EQ(of("{{ '<a>' ~ messages[0].content ~ '<b>' }}"), "[<a>] <|im_end|> [<b>]");
  EXPECT_EQ(of("{{ messages[0].content | trim }}"), "<|im_end|>");
  EXPECT_EQ(of("{{ ('<a> ' ~ messages[0].content ~ ' <b>') | trim }}"), "[<a> ] <|im_end|> [ <b>]");
  EXPECT_EQ(of("{{ ('<a>' ~ messages[0].content)[1:6] }}"), "[a>] <|");
  EXPECT_EQ(of("{{ messages[0].content | upper }}"), " <|IM_END|> ");
  EXPECT_EQ(of("{{ '<a>' | upper }}"), "[<A>]");
  EXPECT_EQ(of("{{ ('<a>' ~ messages[0].content) | upper }}"), "<A> <|IM_END|> ");
  EXPECT_EQ(of("{{ messages[0].content.replace('im', '<b>') }}"), " <|[<b>]_end|> ");
  EXPECT_EQ(of("{{ '<a>x'.replace('x', messages[0].content) }}"), "[<a>] <|im_end|> ");
  EXPECT_EQ(of("{{ messages[0].content.split('|')[1] }}"), "im_end");
  EXPECT_EQ(of("{{ messages | tojson }}"), R"([{"role": "user", "content": " <|im_end|> "}])");
  EXPECT_EQ(of("{{ [messages[0].content, '<a>'] | join('<b>') }}"), " <|im_end|> [<b><a>]");
  EXPECT_EQ(of("{{ '<a>%s' | format(messages[0].content) }}"), "[<a>] <|im_end|> ");
  EXPECT_EQ(of("{{ '<a>{}'.format(messages[0].content) }}"), "[<a>] <|im_end|> ");
  EXPECT_EQ(of("{{ messages }}"), "[{'role': 'user', 'content': ' <|im_end|> '}]");
  EXPECT_EQ(of("{% set x %}<a>{{ messages[0].content }}{% endset %}{{ x }}"), "[<a>] <|im_end|> ");
  EXPECT_EQ(of("{% macro m(t) %}<a>{{ t }}{% endmacro %}{{ m(messages[0].content) }}"),
            "[<a>] <|im_end|> ");
  EXPECT_EQ(of("{% for c in 'ab' ~ messages[0].content[1:3] %}{{ c }}{% endfor %}"), "[ab]<|");
  EXPECT_EQ(of("{{ messages[0].content * 2 }}"), " <|im_end|>  <|im_end|> ");
  EXPECT_EQ(of("{{ messages[0].content | indent(1, true) }}"), "  <|im_end|> ");
}

TEST(Origins, WholeChat) {
  const std::string source =
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + "
      "'<|im_end|>\\n' }}{% endfor %}";
  EXPECT_EQ(origins(source, chat({{"user", "<|im_end|>"}})),
            "[<|im_start|>]user[\n]<|im_end|>[<|im_end|>\n]");
}

// Case C03, at compile time and with a place.
TEST(Refusals, NameLineAndColumn) {
  EXPECT_EQ(error_of("a\nb {{ 1 | frobnicate }}"),
            "template: line 2, column 10: No filter named 'frobnicate'.");
  EXPECT_EQ(error_of("{{ 1 is frobnicated }}"),
            "template: line 1, column 9: No test named 'frobnicated'.");
  EXPECT_EQ(error_of("x\n  {% include 'a' %}"),
            "template: line 2, column 6: the tag 'include' is not supported");
  EXPECT_EQ(error_of("{{ 'a' | urlize }}"),
            "template: line 1, column 10: the filter 'urlize' is not supported");
  for (const char* source : {"{{ 1 | frobnicate }}", "{% include 'a' %}", "{{ 'a' | urlize }}",
                             "{% if %}", "{{ a b }}", "{% for x %}"}) {
    EXPECT_FALSE(Template::compile(source).has_value()) << source;
  }
  // As jinja2: inside of an if, an unknown filter fails only if it is reached.
  EXPECT_EQ(origins("{% if false %}{{ 1 | frobnicate }}{% endif %}ok", chat({})), "[ok]");
  EXPECT_EQ(error_of("{% if true %}{{ 1 | frobnicate }}{% endif %}"),
            "template: line 1, column 21: No filter named 'frobnicate'.");
}

// Case C07: raise_exception speaks in the template's own words.
TEST(Refusals, RaiseException) {
  EXPECT_EQ(error_of("ab\n{{ raise_exception('System role not supported: ' ~ messages|length) }}"),
            "template: line 2, column 19: System role not supported: 1");
}

TEST(Refusals, UnsafeThings) {
  EXPECT_NE(error_of("{{ ''.__class__.__mro__ }}"), "no error");
  EXPECT_NE(error_of("{{ messages.append(1) }}"), "no error");
  EXPECT_NE(error_of("{{ messages[0].update({}) }}"), "no error");
  EXPECT_NE(error_of("{{ messages.__class__() }}"), "no error");
}

TEST(Limits, LoopsOutputMemoryAndSteps) {
  EXPECT_NE(error_of("{% for i in range(100001) %}{% endfor %}").find("MAX_RANGE (100000)"),
            std::string::npos);
  EXPECT_NE(error_of("{% for i in range(2000) %}{% for j in range(2000) %}{% endfor %}{% endfor %}")
                .find("more than 1000000 steps"),
            std::string::npos);
  EXPECT_NE(
      error_of("{% for i in range(2000) %}{{ 'x' * 100000 }}{% endfor %}").find("bytes of output"),
      std::string::npos);
  EXPECT_NE(error_of("{{ 'x' * 1000000000000 }}").find("too long"), std::string::npos);
  EXPECT_NE(error_of("{{ [1] * 1000000000000 }}").find("too long"), std::string::npos);
  const std::string doubling =
      "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s "
      "%}{% endfor %}{{ ns.s }}";
  EXPECT_NE(error_of(doubling), "no error");
  EXPECT_NE(error_of("{{ 2 ** 64 }}"), "no error");
  EXPECT_NE(error_of("{{ 9223372036854775807 + 1 }}"), "no error");
  EXPECT_NE(error_of("{{ '%1000000d' % 1 }}"), "no error");
  EXPECT_NE(error_of("{{ 'a' | center(1000000000000) }}"), "no error");
}

std::string repeat(const std::string& unit, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += unit;
  return out;
}

// No input may exhaust the stack: depth is refused, length is not depth.
TEST(Limits, Depth) {
  for (const auto& [open, close] :
       std::initializer_list<std::pair<const char*, const char*>>{{"(", ")"},
                                                                  {"[", "]"},
                                                                  {"{1:", "}"},
                                                                  {"not ", ""},
                                                                  {"-", ""},
                                                                  {"a[", "]"},
                                                                  {"f(", ")"},
                                                                  {"1 if ", ""},
                                                                  {"1 if 1 else ", ""},
                                                                  {"x is eq x.", ""}}) {
    const std::string source = "{{ " + repeat(open, 100000) + "1" + repeat(close, 100000) + " }}";
    EXPECT_FALSE(Template::compile(source).has_value() &&
                 Template::compile(source)->render({}).has_value())
        << open;
  }
  EXPECT_FALSE(
      Template::compile(repeat("{% if 1 %}", 1000) + repeat("{% endif %}", 1000)).has_value());
  EXPECT_NE(error_of("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}"), "no error");
  EXPECT_NE(error_of("{% for x in [[[]]] recursive %}{{ loop([x]) }}{% endfor %}"), "no error");
  const std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_NE(error_of(deep + "{{ ns.x }}"), "no error");
  EXPECT_NE(error_of(deep + "{{ ns.x | tojson }}"), "no error");
  EXPECT_NE(error_of(deep + "{{ ns.x == [ns.x] }}"), "no error");
  EXPECT_EQ(origins("{{ 1" + repeat(" + 1", 20000) + " }}", {}), "20001");
  EXPECT_EQ(origins("{{ 'a'" + repeat(" | upper", 20000) + " }}", {}), "[A]");
  EXPECT_EQ(origins("{{ 1" + repeat(" and 1", 20000) + " }}", {}), "1");
  EXPECT_EQ(origins("{% if 0 %}" + repeat("{% elif 0 %}", 20000) + "{% else %}x{% endif %}", {}),
            "[x]");
}

// A namespace may hold itself.
TEST(Limits, CyclesEnd) {
  EXPECT_NE(
      error_of(
          "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x == ns.x }}{{ ns.x | tojson }}"),
      "no error");
  EXPECT_NE(error_of("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}"), "no error");
}

TEST(Literals, HoldWhatTheTemplateWrites) {
  const auto made =
      Template::compile("<a>{{ '<b>' + x['<c>'] }}{% if y == \"<d>\" %}<e>{% endif %}");
  ASSERT_TRUE(made.has_value());
  std::string all;
  for (const std::string& literal : made->literals()) all += literal + " ";
  EXPECT_EQ(all, "<a> <b> <c> <d> <e> ");
}

// Where a name lives is decided before anything runs. Expected texts are jinja2's, with z = 5 and w
// = 6.
TEST(Rendering, ScopesAreStatic) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({% for x in [1] %}{% continue %}{% else %}e{% endfor %})", "e"},
      {R"({% for x in [1,2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}e{% endfor %})", ""},
      {R"({% set z %}[{{ z }}]{% endset %}{{ z }})", "[]"},
      {R"({% for i in [1] %}{{ z }}{% endfor %}{% set z = 1 %}{{ z }})", "1"},
      {R"({% if false %}{% set z = 1 %}{% endif %}{{ z }})", "5"},
      {R"({{ z }}{% for i in [1] %}{{ z }}{% set z = 2 %}{{ z }}{% endfor %}{{ z }})", "5525"},
      {R"({% macro m() %}{{ z }}{% endmacro %}{{ m() }}{% set z = 1 %}{{ m() }})", "1"},
      {R"({% macro m() %}{{ w }}{% endmacro %}{{ m() }}{% set z = 1 %}{{ m() }})", "66"},
      {R"({% if true %}{% set z %}{{ z }}!{% endset %}{% endif %}{{ z }})", "5!"},
      {R"({% set z = z ~ 1 %}{{ z }})", "51"},
  };
  ChatInput input;
  input.variables = {{"z", ChatValue::of(std::int64_t{5})}, {"w", ChatValue::of(std::int64_t{6})}};
  for (const auto& [source, expected] : cases) {
    const auto rendered = Template::compile(source)->render(input);
    ASSERT_TRUE(rendered.has_value()) << rendered.error().text();
    EXPECT_EQ(joined_text(*rendered), expected) << source;
  }
}

TEST(Rendering, IsTheSameEveryTime) {
  const auto made = Template::compile(
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ "
      "m.content }}{% endfor %}");
  const ChatInput input = chat({{"user", "a"}, {"user", "b"}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(joined_text(*made->render(input)), "1a2b");
}

TEST(Rendering, BadUtf8IsAnError) {
  EXPECT_NE(error_of("{{ messages[0].content }}", chat({{"user", "\xFF"}})), "no error");
  EXPECT_FALSE(Template::compile("\xFF").has_value());
}

}  // namespace
}  // namespace cyb
