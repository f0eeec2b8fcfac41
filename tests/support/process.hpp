// Runs a program the way a shell does and collects what it says; for tests of the built binary.
#pragma once

#include <string>
#include <vector>

namespace cyb::test {

struct ProcessResult {
  int exit_code = -1;  // 128 + n where signal n ended it; 127 where it could not start
  std::string out, err;
};

struct ProcessOptions {
  std::string input;                     // stdin, then end of file
  std::vector<std::string> environment;  // NAME=value, added to ours
  unsigned timeout_s = 300;              // then SIGKILL
  bool close_stdout_early = false;       // closes the reading end after the first byte
  unsigned interrupt_after_ms = 0;  // sends SIGINT once, this long after the first byte on stdout
  bool interrupt_from_start = false;  // the time counts from the start instead
};

ProcessResult run_process(const std::vector<std::string>& command,
                          const ProcessOptions& options = {});

/// Path of a program of this build.
std::string built_program(const std::string& name);

/// A folder of its own that vanishes with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace cyb::test
