// Grammars of arguments between tags: texts as they stand, values of other types as JSON. What
// TaggedScan would read as something else is not written.
#pragma once

#include <vector>

#include "text/grammar/expression.hpp"
#include "text/grammar/json_schema.hpp"
#include "text/tools/tool_grammar.hpp"

namespace cyb {

/// Rules of all arguments of each function in `schemas`, then of the content where it has a schema.
/// `document`: the functions' schemas at "#/$defs/f0", ..., the content's at "#/$defs/content".
/// Declared properties alone are written, in their order. Errors: InvalidInput with the path of
/// what a schema asks for that cannot be written so.
Result<text::GrammarRules> tagged_rules(const ToolGrammarOptions& options,
                                        const text::SchemaJson& document,
                                        text::GrammarBudget& budget,
                                        std::vector<text::ExprId>& schemas);

}  // namespace cyb
