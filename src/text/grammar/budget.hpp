// What compiling a grammar may cost, and the shape of its errors: a place (line and column, a path
// in a schema, a rule's name) and what is wrong there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::text {

inline constexpr std::size_t kMaxGrammarBytes = 1U << 20;      // of a source text
inline constexpr std::size_t kMaxGrammarStates = 100000;       // of the compiled network
inline constexpr std::size_t kMaxGrammarDepth = 64;            // nesting in the source
inline constexpr std::chrono::milliseconds kGrammarTime{200};  // of reading and compiling

/// Whether a compilation is within its time: processor time of this thread, so that what else the
/// machine does decides nothing. A clock read per call: ask every few hundred steps.
class GrammarBudget {
 public:
  explicit GrammarBudget(std::chrono::milliseconds time = kGrammarTime)
      : end_(thread_time() + time) {}
  /// Errors: InvalidInput naming `place` where the time is over.
  Result<void> check(std::string_view place) const;
  /// The same at every 256th call.
  Result<void> step(std::string_view place) {
    return ++steps_ % 256 == 0 ? check(place) : Result<void>();
  }

 private:
  static std::chrono::nanoseconds thread_time() noexcept;

  std::chrono::nanoseconds end_;
  std::uint32_t steps_ = 0;
};

/// InvalidInput "grammar: <place>: <what>".
Error grammar_error(std::string_view place, std::string_view what);

/// "line L, column C" (both from 1, columns in characters) of a byte offset.
std::string line_and_column(std::string_view text, std::size_t at);

}  // namespace cyb::text
