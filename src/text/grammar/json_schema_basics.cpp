// Rules that every JSON grammar shares, and the patterns of formats.
#include <array>
#include <utility>

#include "text/grammar/json_schema_compiler.hpp"
#include "text/grammar/regex_reader.hpp"

namespace cyb::text {
namespace {

#define CYB_YEAR "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
#define CYB_LEAP_YEAR "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define CYB_DATE                                                         \
  "(" CYB_YEAR                                                           \
  "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12]" \
  "[0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|" CYB_LEAP_YEAR "-02-29)"
#define CYB_TIME                                                                               \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-" \
  "9])"
#define CYB_OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define CYB_H "[0-9a-fA-F]{1,4}"
#define CYB_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"

constexpr std::array<std::pair<std::string_view, const char*>, 12> kFormats = {{
    {"date", CYB_DATE},
    {"time", CYB_TIME},
    {"date-time", CYB_DATE "T" CYB_TIME},
    {"duration",
     "P([0-9]{1,4}W|([0-9]{1,4}Y([0-9]{1,2}M([0-9]{1,2}D)?)?|[0-9]{1,2}M([0-9]{1,2}D)?|[0-9]{1,3}D)"
     "(T([0-9]{1,3}H([0-9]{1,3}M([0-9]{1,3}S)?)?|[0-9]{1,3}M([0-9]{1,3}S)?|[0-9]{1,3}S))?"
     "|T([0-9]{1,3}H([0-9]{1,3}M([0-9]{1,3}S)?)?|[0-9]{1,3}M([0-9]{1,3}S)?|[0-9]{1,3}S))"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"email", "[a-zA-Z0-9_+-]+(\\.[a-zA-Z0-9_+-]+)*@" CYB_LABEL "(\\." CYB_LABEL ")+"},
    {"hostname", CYB_LABEL "(\\." CYB_LABEL "){0,3}"},
    {"ipv4", CYB_OCTET "(\\." CYB_OCTET "){3}"},
    {"ipv6",
     "(" CYB_H ":){7}" CYB_H "|(" CYB_H ":){1,7}:|(" CYB_H ":){1,6}:" CYB_H "|(" CYB_H
     ":){1,5}(:" CYB_H "){2}|(" CYB_H ":){1,4}(:" CYB_H "){3}|(" CYB_H ":){1,3}(:" CYB_H
     "){4}|(" CYB_H ":){1,2}(:" CYB_H "){5}|" CYB_H ":(:" CYB_H "){6}|:((:" CYB_H "){1,7}|:)"},
    {"uri", "[a-zA-Z][a-zA-Z0-9+.-]*://" CYB_LABEL "(\\." CYB_LABEL "){0,4}(:[0-9]{1,4})?"
            "(/([a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
            "(\\?([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
            "(#([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"},
    {"json-pointer", "(/([^~/]|~[01])*)*"},
    {"regex", "[a-zA-Z0-9 _-]*"},
}};

}  // namespace

const char* format_pattern(std::string_view format) {
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern;
  }
  return nullptr;
}

void JsonSchemaCompiler::define_basics() {
  const auto set = [&](std::string_view chars) {
    CharSet out;
    for (const char c : chars) out.add(static_cast<char32_t>(c), static_cast<char32_t>(c));
    return rules_.one_of(out);
  };
  const auto range = [&](char32_t first, char32_t last) {
    return rules_.one_of(CharSet::range(first, last));
  };
  space_ = rules_.declare("white space");
  rules_.define(
      space_,
      rules_.optional(rules_.choice(
          {rules_.literal(" "),
           rules_.sequence({rules_.literal("\n"), rules_.repeat(set(" \t"), 0, kMostIndent)})})));
  CharSet hex = CharSet::range('0', '9');
  hex.add('a', 'f');
  hex.add('A', 'F');
  const auto hexes = [&](std::uint64_t n) { return rules_.repeat(rules_.one_of(hex), n, n); };
  CharSet raw = CharSet::range(0, 0x1F);
  raw.add('"', '"');
  raw.add('\\', '\\');
  // \u escapes: a character outside of the surrogates, or a pair of them.
  const ExprId code =
      rules_.choice({rules_.sequence({set("0123456789abcefABCEF"), hexes(3)}),
                     rules_.sequence({set("dD"), range('0', '7'), hexes(2)}),
                     rules_.sequence({set("dD"), set("89abAB"), hexes(2), rules_.literal("\\u"),
                                      set("dD"), set("cdefCDEF"), hexes(2)})});
  const auto one_char = [&] {
    return rules_.choice(
        {rules_.one_of(raw.negated()),
         rules_.sequence(
             {rules_.literal("\\"),
              rules_.choice({set("\"\\/bfnrt"), rules_.sequence({rules_.literal("u"), code})})})});
  };
  char_ = rules_.declare("a character of a text", true);
  rules_.define(char_, one_char());
  string_ = rules_.declare("a text");
  rules_.define(string_,
                rules_.sequence({rules_.literal("\""), rules_.repeat(one_char(), 0, kUnbounded),
                                 rules_.literal("\"")}));
  const ExprId whole = rules_.sequence(
      {rules_.optional(rules_.literal("-")),
       rules_.choice(
           {rules_.literal("0"),
            rules_.sequence({range('1', '9'), rules_.repeat(range('0', '9'), 0, kUnbounded)})})});
  integer_ = rules_.declare("an integer");
  rules_.define(integer_, whole);
  number_ = rules_.declare("a number");
  rules_.define(
      number_,
      rules_.sequence({whole,
                       rules_.optional(rules_.sequence(
                           {rules_.literal("."), rules_.repeat(range('0', '9'), 1, 18)})),
                       rules_.optional(rules_.sequence({set("eE"), rules_.optional(set("+-")),
                                                        rules_.repeat(range('0', '9'), 1, 2)}))}));
  define_any();
}

void JsonSchemaCompiler::define_any() {
  any_ = rules_.declare("any value");
  any_array_ = rules_.declare("any array");
  any_object_ = rules_.declare("any object");
  const ExprId space = rules_.rule(space_), any = rules_.rule(any_);
  const auto list_of = [&](ExprId item, std::string_view open, std::string_view close) {
    const ExprId more =
        rules_.repeat(rules_.sequence({rules_.literal(","), space, item}), 0, kUnbounded);
    return rules_.sequence({rules_.literal(open),
                            rules_.optional(rules_.sequence({space, item, more, space})),
                            rules_.literal(close)});
  };
  rules_.define(any_array_, list_of(any, "[", "]"));
  const ExprId entry = rules_.sequence(
      {rules_.rule(string_), rules_.literal(":"), rules_.optional(rules_.literal(" ")), any});
  rules_.define(any_object_, list_of(entry, "{", "}"));
  rules_.define(
      any_, rules_.choice({rules_.rule(any_object_), rules_.rule(any_array_), rules_.rule(string_),
                           rules_.rule(number_), rules_.literal("true"), rules_.literal("false"),
                           rules_.literal("null")}));
}

}  // namespace cyb::text
