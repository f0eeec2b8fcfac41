// A program on a pseudo-terminal: what a person at a keyboard would see and do.
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

namespace cyb::test {

class Terminal {
 public:
  /// Starts `command`; `environment` holds NAME=value entries that are added to ours.
  Terminal(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys);
  /// Reads until `text` appears after what earlier calls consumed; false at the end of output or
  /// after `timeout_s`.
  bool wait_for(const std::string& text, unsigned timeout_s = 60);
  /// Everything shown so far.
  const std::string& screen() const noexcept { return screen_; }
  /// Waits for the end; the exit code, 128 + n for a signal, -1 after `timeout_s` (the program is
  /// killed then).
  int finish(unsigned timeout_s = 60);

 private:
  bool read_some(int wait_ms);

  int fd_ = -1;
  pid_t child_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;
};

}  // namespace cyb::test
