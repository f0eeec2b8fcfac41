// What a person sees. stdout carries the answer and nothing else; stderr carries notes, warnings,
// progress and errors. A reader that goes away (`| head`) ends the program quietly; control
// characters never reach a terminal raw.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::cli {

class Output {
 public:
  Output();

  bool out_is_terminal() const noexcept { return out_is_terminal_; }
  bool err_is_terminal() const noexcept { return err_is_terminal_; }
  void set_quiet(bool quiet) noexcept { quiet_ = quiet; }
  bool quiet() const noexcept { return quiet_; }

  /// Puts something unreadable or unwritable under the numbers of standard streams that are closed:
  /// a file opened later must never be taken for one of them. Call it before anything is opened.
  static void reserve_streams() noexcept;

  /// Writes to stdout at once, without a line end. False when nobody reads any more (closed()) or
  /// the write failed (see result()). Text for a terminal has its control characters replaced.
  bool print(std::string_view text);
  bool line(std::string_view text) { return print(std::string(text) + "\n"); }
  /// The reader of stdout has gone away.
  bool closed() const noexcept { return closed_; }
  /// Io error where stdout cannot be written at all (closed, or open for reading): to be asked
  /// before long work.
  static Result<void> check_writable();
  /// Io error of a write to stdout that failed for another reason than closed().
  Result<void> result() const;

  /// One line on stderr: "note: ..." (not with --quiet) and "warning: ...".
  void note(std::string_view text);
  void warning(std::string_view text);
  /// "error: ..." and, where not empty, a second line that says what to do.
  void error(std::string_view text, std::string_view hint = {});
  /// Raw to stderr: progress bars.
  void err(std::string_view text);

 private:
  bool out_is_terminal_, err_is_terminal_, quiet_ = false, closed_ = false;
  int write_errno_ = 0;
};

/// Control characters but newline and tab become U+FFFD, as a terminal would obey them.
std::string terminal_safe(std::string_view text);

/// 1536 -> "1.5 KiB".
std::string size_text(std::uint64_t bytes);

}  // namespace cyb::cli
