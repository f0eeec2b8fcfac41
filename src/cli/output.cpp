// Unbuffered writes: an answer streams, so each piece is written as it comes.
#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/utf8.hpp"

namespace cyb::cli {
namespace {

/// errno of the failure, 0: all written.
int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // another program has made the stream non-blocking
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

bool is_control(char32_t c) noexcept {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
}

}  // namespace

std::string terminal_safe(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_next(text, i);
    if (!c.valid || is_control(c.code_point)) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(i, c.size);
    }
    i += c.size;
  }
  return out;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Output::Output()
    : out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Output::reserve_streams() noexcept {
  // The wrong direction, so that reading or writing still fails with EBADF.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened < 0 || opened == fd) continue;
    ::dup2(opened, fd);
    ::close(opened);
  }
}

bool Output::print(std::string_view text) {
  if (closed_ || write_errno_ != 0) return false;
  const int error = out_is_terminal_ ? write_all(STDOUT_FILENO, terminal_safe(text))
                                     : write_all(STDOUT_FILENO, text);
  if (error == EPIPE) closed_ = true;
  if (error != 0 && error != EPIPE) write_errno_ = error;
  return error == 0;
}

Result<void> Output::check_writable() {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return {};
  return fail(io_errno("standard output", "write", EBADF));
}

Result<void> Output::result() const {
  if (write_errno_ != 0) return fail(io_errno("standard output", "write", write_errno_));
  return {};
}

void Output::note(std::string_view text) {
  if (!quiet_) err(terminal_safe(text) + "\n");
}

void Output::warning(std::string_view text) {
  err("warning: " + terminal_safe(text) + "\n");
}

void Output::error(std::string_view text, std::string_view hint) {
  err("error: " + terminal_safe(text) + "\n");
  if (!hint.empty()) err(terminal_safe(hint) + "\n");
}

void Output::err(std::string_view text) {
  write_all(STDERR_FILENO, text);
}

}  // namespace cyb::cli
