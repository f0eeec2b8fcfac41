// Grammars of whole answers: calls in a model's own format with arguments that fit the functions'
// schemas, content that fits a schema, reasoning before both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "text/grammar/grammar.hpp"
#include "text/tools/tool_format.hpp"

namespace cyb {

struct ToolFunction {
  std::string name;        // letters, digits, _ - .
  std::string parameters;  // JSON Schema of the arguments, as text; an object's
};

struct ToolGrammarOptions {
  const ToolFormat* format = nullptr;
  std::vector<ToolFunction> functions{};  // that may be called; may be empty
  bool required = false;                  // an answer without calls is none
  bool several = true;                    // more than one call, where the format can
  std::string content{};                  // JSON Schema of the content; empty: any text
  GrammarLead lead{};
};

/// The answers are read by AnswerSplitter with the same format and functions as exactly these
/// calls. Errors: InvalidInput as Grammar::from_json_schema; the place is "function NAME: path" or
/// the path in `content`.
Result<std::shared_ptr<const Grammar>> tool_grammar(const ToolGrammarOptions& options);

}  // namespace cyb
