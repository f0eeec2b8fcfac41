// read_regex: a regular expression as an expression of a grammar. Only what is regular: groups,
// classes, alternatives, repetitions; the rest is refused by its name. Where it is a pattern of a
// JSON string, characters are written as JSON writes them.
#pragma once

#include <string>
#include <string_view>

#include "text/grammar/source_text.hpp"

namespace cyb::text {

struct RegexOptions {
  bool search = false;       // found anywhere in the text, but for ^ and $; else the whole text
  bool json = false;         // characters of a JSON string, escaped; . as in ECMAScript
  bool ignore_case = false;  // ASCII letters
  bool dot_all = false;      // . is any character
};

/// One character of `set` as a JSON string spells it: raw, or its short escape, or \u00XX.
ExprId json_chars(GrammarRules& rules, const CharSet& set);
/// The characters of `text` (UTF-8) as a JSON string spells them, without quotes.
std::string json_spelling(std::string_view text);

/// Errors: InvalidInput with line and column in `source`.
Result<ExprId> read_regex(GrammarRules& rules, const SourceText& source,
                          const RegexOptions& options, GrammarBudget& budget);

}  // namespace cyb::text
