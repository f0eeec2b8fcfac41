// Regex: an expression of a tokenizer, compiled by PCRE2 with UTF-8, Unicode properties and JIT.
// Immutable and shared by threads; a RegexScan is one walk over one text. Steps are bounded: a
// pattern that explodes on a text is an error, never a hang.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.hpp"

namespace cyb::text {

class Regex {
 public:
  /// `pattern` in Oniguruma's dialect. Errors: NotBuilt naming what is not understood.
  static Result<Regex> compile(std::string_view pattern);

 private:
  friend class RegexScan;
  struct Code;
  std::shared_ptr<const Code> code_;
};

class RegexScan {
 public:
  /// `text`: valid UTF-8. Both must outlive this.
  RegexScan(const Regex& regex, std::string_view text);
  ~RegexScan();
  RegexScan(const RegexScan&) = delete;
  RegexScan& operator=(const RegexScan&) = delete;

  struct Match {
    std::size_t begin = 0, end = 0;
    bool found = false;
  };
  /// The first match that starts at or after `from`, a start of a character.
  /// Errors: Tokenizer where the match needs too many steps or too much memory.
  Result<Match> find(std::size_t from);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cyb::text
