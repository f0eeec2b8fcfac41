// forkpty and poll.
#include "support/terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace cyb::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void exec_child(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment) {
  ::setenv("TERM", "xterm", 1);
  for (const std::string& entry : environment) {
    const std::size_t at = entry.find('=');
    ::setenv(entry.substr(0, at).c_str(), entry.substr(at + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Terminal::Terminal(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment) {
  winsize size{};
  size.ws_row = 40;
  size.ws_col = 120;
  child_ = ::forkpty(&fd_, nullptr, nullptr, &size);
  if (child_ == 0) exec_child(command, environment);
}

Terminal::~Terminal() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  if (fd_ >= 0) ::close(fd_);
}

void Terminal::type(const std::string& keys) {
  [[maybe_unused]] const ssize_t n = ::write(fd_, keys.data(), keys.size());
}

bool Terminal::read_some(int wait_ms) {
  pollfd ready{fd_, POLLIN, 0};
  if (::poll(&ready, 1, wait_ms) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
  if (n <= 0) return false;  // EIO: the program has closed the terminal
  screen_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

bool Terminal::wait_for(const std::string& text, unsigned timeout_s) {
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_s);
  bool open = true;
  while (true) {
    const std::size_t at = screen_.find(text, seen_);
    if (at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (!open || Clock::now() > deadline) return false;
    open = read_some(50);
  }
}

int Terminal::finish(unsigned timeout_s) {
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_s);
  while (Clock::now() < deadline && read_some(50)) {
  }
  int status = 0;
  while (Clock::now() < deadline) {
    if (::waitpid(child_, &status, WNOHANG) == child_) {
      child_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    ::usleep(20'000);
  }
  return -1;
}

}  // namespace cyb::test
