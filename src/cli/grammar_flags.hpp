// Options of what the text of an answer must be: a JSON schema, a grammar, a pattern.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "text/grammar/grammar.hpp"

namespace cyb::cli {

class GrammarFlags {
 public:
  void declare(Options& options);
  /// Reads and compiles what was given, before a model is loaded. `stop_texts`: --stop was given
  /// too. Errors: Usage for two of them or with stop texts; Io; InvalidInput naming the option, the
  /// file and the place.
  Result<void> check(bool stop_texts);
  /// Names of all options that were given.
  std::vector<std::string> given() const;
  /// Null where none was.
  const std::shared_ptr<const Grammar>& grammar() const noexcept { return grammar_; }

 private:
  std::optional<std::string> json_schema_, gbnf_, regex_, lark_;
  std::shared_ptr<const Grammar> grammar_;
};

}  // namespace cyb::cli
