// Line editing at a terminal with history, on libedit. Ctrl-C clears the line, Ctrl-D on an empty
// line ends the input. Between two lines nothing that is typed is shown: it waits and begins the
// next line.
#pragma once

#include <memory>
#include <string>

#include "cli/interrupts.hpp"

namespace cyb::cli {

class LineEditor {
 public:
  /// `history_file`: read now, written after each line, readable by its owner only; a file that
  /// cannot be used is no error.
  LineEditor(Interrupts& interrupts, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// kMalformed: a line with bytes that are no UTF-8; its text is not given.
  enum class Kind { kText, kMalformed, kInterrupted, kEnd };
  struct Line {
    Kind kind = Kind::kEnd;
    std::string text;  // without the line end
  };
  Line read(const std::string& prompt);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cyb::cli
