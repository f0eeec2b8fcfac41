// fork, exec and poll: stdin, stdout and stderr are served together, so that no pipe can fill up
// and block.
#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace cyb::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  ~Pipe() {
    close(read);
    close(write);
  }
  static void close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

[[noreturn]] void exec_child(const std::vector<std::string>& command, const ProcessOptions& options,
                             const Pipe& in, const Pipe& out, const Pipe& err) {
  ::dup2(in.read, 0);
  ::dup2(out.write, 1);
  ::dup2(err.write, 2);
  for (const std::string& entry : options.environment) {
    const std::size_t at = entry.find('=');
    ::setenv(entry.substr(0, at).c_str(), entry.substr(at + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

/// Appends what can be read; closes at the end of the stream.
void drain(int& fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EINTR) {
    Pipe::close(fd);
  }
}

void feed(int& fd, const std::string& text, std::size_t& done) {
  const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
  if (n > 0) done += static_cast<std::size_t>(n);
  if (done == text.size() || (n < 0 && errno != EINTR && errno != EAGAIN)) Pipe::close(fd);
}

class Pump {
 public:
  Pump(pid_t child, const ProcessOptions& options, Pipe& in, Pipe& out, Pipe& err)
      : child_(child), options_(options), in_(in), out_(out), err_(err) {}

  void run(ProcessResult& result) {
    const auto deadline = Clock::now() + std::chrono::seconds(options_.timeout_s);
    if (options_.input.empty()) Pipe::close(in_.write);
    while (out_.read >= 0 || err_.read >= 0) {
      if (Clock::now() > deadline) ::kill(child_, SIGKILL);
      std::array<pollfd, 3> polled = {pollfd{out_.read, POLLIN, 0}, pollfd{err_.read, POLLIN, 0},
                                      pollfd{in_.write, POLLOUT, 0}};
      ::poll(polled.data(), polled.size(), 20);
      if (polled[0].revents != 0) drain(out_.read, result.out);
      if (polled[1].revents != 0) drain(err_.read, result.err);
      if (polled[2].revents != 0) feed(in_.write, options_.input, fed_);
      after_first_byte(result);
    }
  }

 private:
  void after_first_byte(const ProcessResult& result) {
    if (result.out.empty() && !options_.interrupt_from_start) return;
    if (first_byte_ == Clock::time_point{}) first_byte_ = Clock::now();
    if (options_.close_stdout_early && out_.read >= 0) Pipe::close(out_.read);
    const auto wait = std::chrono::milliseconds(options_.interrupt_after_ms);
    if (wait.count() == 0 || interrupted_ || Clock::now() < first_byte_ + wait) return;
    ::kill(child_, SIGINT);
    interrupted_ = true;
  }

  pid_t child_;
  const ProcessOptions& options_;
  Pipe &in_, &out_, &err_;
  std::size_t fed_ = 0;
  Clock::time_point first_byte_{};
  bool interrupted_ = false;
};

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  ProcessResult result;
  Pipe in, out, err;
  const pid_t child = ::fork();
  if (child < 0) return result;
  if (child == 0) exec_child(command, options, in, out, err);
  Pipe::close(in.read);
  Pipe::close(out.write);
  Pipe::close(err.write);
  ::fcntl(in.write, F_SETFL, O_NONBLOCK);
  Pump(child, options, in, out, err).run(result);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string built_program(const std::string& name) {
  return std::string(CYB_BINARY_DIR) + "/" + name;
}

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "cyb-test-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) path_.clear();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace cyb::test
