// StopMatcher: finds stop strings in streamed text; holds text back exactly as long as it may still
// become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

class StopMatcher {
 public:
  /// Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Takes the next text (whole UTF-8) and appends to `out` what can no longer be part of a stop
  /// string. True when a stop string was completed: the text from its start on is dropped, and so
  /// is everything pushed later.
  bool push(std::string_view text, std::string& out);

  /// End of the answer: releases what is held (nothing after a stop).
  void flush(std::string& out);

  bool stopped() const noexcept { return stopped_; }
  /// Back to the start, for the next answer.
  void reset();

 private:
  struct Stop {
    std::string text;
    std::vector<std::uint32_t> border;  // KMP failure function
    std::size_t matched = 0;
  };
  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace cyb
