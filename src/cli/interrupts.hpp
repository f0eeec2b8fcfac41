// Ctrl-C and termination as stop requests. A thread of its own waits for the signals, so no code
// runs in a handler: the first one asks the work at hand to stop, a second one while it has not
// stopped (or one while there is no work that could) removes temporary files and ends the program.
// Signals that come together are one: a program that watches others sends them to each process and
// once more to the group.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace cyb::cli {

class Interrupts {
 public:
  /// Blocks SIGINT, SIGTERM and SIGHUP for this thread and all that it starts later: create it
  /// before any other thread.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// A fresh token for the next piece of work; replaces the one before.
  std::stop_token begin();
  /// Asks the work at hand to stop, as Ctrl-C does.
  void stop();
  /// True once SIGTERM or SIGHUP came: finish instead of asking for more input.
  bool terminating() const noexcept;

  /// What SIGHUP means instead of an end, on the thread of the signals; empty: the end. Where the
  /// terminal that the program was started from is gone it is the end in any case.
  void on_hangup(std::function<void()> callback);

  /// What to put right before a signal ends the program, such as the terminal; empty: nothing.
  void set_cleanup(std::function<void()> cleanup);

  /// Readable when a signal came that no work has taken; for poll() beside the terminal.
  int wake_fd() const noexcept;
  /// Empties wake_fd().
  void clear_wake() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cyb::cli
