// A progress line on stderr: on a terminal only, at most ten times a second, gone when the work is
// done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/output.hpp"

namespace cyb::cli {

class Progress {
 public:
  Progress(Output& output, std::string label, bool enabled = true)
      : output_(output), label_(std::move(label)), enabled_(enabled && output.err_is_terminal()) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `what`: the item at work, shown behind the bar; may be empty.
  void update(std::uint64_t done, std::uint64_t total, std::string_view what);
  /// Removes the line.
  void clear();

 private:
  Output& output_;
  std::string label_;
  bool enabled_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace cyb::cli
