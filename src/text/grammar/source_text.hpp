// SourceText: the text of a grammar with a place in it, for readers of grammars: characters one at
// a time, escapes and numbers with bounds, errors with line and column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "text/grammar/budget.hpp"
#include "text/grammar/char_set.hpp"
#include "text/grammar/expression.hpp"

namespace cyb::text {

class SourceText {
 public:
  /// Errors: InvalidInput for too long a text, or one that is not UTF-8.
  static Result<SourceText> open(std::string_view text);
  /// The same of a grammar, which never begins with a byte order mark.
  static Result<SourceText> open_grammar(std::string_view text);

  bool done() const noexcept { return at_ >= text_.size(); }
  std::size_t at() const noexcept { return at_; }
  /// The byte `ahead` from here, 0 past the end.
  char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip(std::size_t n = 1) noexcept { at_ += n; }
  void move_to(std::size_t at) noexcept { at_ = at; }
  bool take(std::string_view word) noexcept {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  /// The next character; there must be one.
  char32_t take_char() noexcept;
  /// Exactly `digits` hexadecimal digits as a scalar value. Errors: InvalidInput.
  Result<char32_t> take_hex(std::size_t digits);
  /// A decimal number below 2^64. Errors: InvalidInput.
  Result<std::uint64_t> take_number();
  /// Letters, digits and what else `more` lists.
  std::string_view take_word(std::string_view more) noexcept;
  std::string_view text() const noexcept { return text_; }
  std::string_view since(std::size_t from) const noexcept { return text_.substr(from, at_ - from); }

  std::unexpected<Error> error(std::string_view what) const { return error_at(at_, what); }
  std::unexpected<Error> error_at(std::size_t at, std::string_view what) const {
    return fail(grammar_error(line_and_column(text_, at), what));
  }

 private:
  explicit SourceText(std::string_view text) : text_(text) {}
  std::string_view text_;
  std::size_t at_ = 0;
};

/// The rules that a text names, declared where a name is first met.
class RuleNames {
 public:
  struct Missing {
    std::string_view word;
    std::size_t first_use;
  };
  /// A name that stands at `at`; its definition may come later.
  RuleId use(GrammarRules& rules, std::string_view word, std::size_t at);
  /// The name of a definition at `at`; nullopt where it has one already.
  std::optional<RuleId> define(GrammarRules& rules, std::string_view word, std::size_t at);
  std::optional<RuleId> find(std::string_view word) const;
  /// Of the names without a definition the one that is used first.
  std::optional<Missing> first_missing() const;

 private:
  struct Name {
    RuleId rule;
    std::size_t first_use;
    bool defined = false;
  };
  Name& name_of(GrammarRules& rules, std::string_view word, std::size_t at);

  std::unordered_map<std::string, Name> names_;
};

/// Alternatives that are being read, between one pair of brackets.
struct OpenGroup {
  std::size_t at = 0;  // of the bracket
  char bracket = 0;
  std::vector<ExprId> alternatives{}, items{};

  void next_alternative(GrammarRules& rules) {
    alternatives.push_back(rules.sequence(items));
    items.clear();
  }
  ExprId close(GrammarRules& rules) {
    next_alternative(rules);
    return rules.choice(alternatives);
  }
};

}  // namespace cyb::text
