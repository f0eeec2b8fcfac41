// Texts of a grammar's errors.
#include "text/grammar/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace cyb::text {

std::chrono::nanoseconds GrammarBudget::thread_time() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

Result<void> GrammarBudget::check(std::string_view place) const {
  if (thread_time() < end_) return {};
  return fail(
      grammar_error(place, fmt::format("compiling takes longer than {} ms", kGrammarTime.count())));
}

Error grammar_error(std::string_view place, std::string_view what) {
  return Error(ErrorKind::kInvalidInput, fmt::format("grammar: {}: {}", place, what))
      .with("place", std::string(place));
}

std::string line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::string_view row = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto column = 1 + std::ranges::count_if(row, [](char c) {
                        return (static_cast<unsigned>(c) & 0xC0U) != 0x80U;
                      });
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace cyb::text
