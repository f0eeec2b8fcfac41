// Reads wait in poll(), so that Ctrl-C ends the wait for a pipe that says nothing.
#include "cli/text_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

#include "api/text_check.hpp"
#include "base/limits.hpp"
#include "cli/options.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

/// Errors: Cancelled.
Result<void> wait_for(int fd, int wake_fd) {
  std::array<pollfd, 2> ready = {pollfd{fd, POLLIN, 0}, pollfd{wake_fd, POLLIN, 0}};
  while (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
  }
  if (ready[1].revents != 0) return fail(cancelled(0));
  return {};
}

/// To the end. `name`: for messages.
Result<std::string> read_all(int fd, std::string_view name, int wake_fd) {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    CYB_TRY(wait_for(fd, wake_fd));
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return fail(io_errno(name, "read", errno));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxPromptBytes) {
      return fail(usage_error(fmt::format("{} is longer than {} bytes", name, kMaxPromptBytes)));
    }
  }
}

/// Regular files, pipes and devices; a pipe whose writers have gone is at its end.
Result<std::string> read_file(const std::string& path, int wake_fd) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(io_errno(path, "open", errno));
  struct stat info{};
  const bool is_folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  Result<std::string> text =
      is_folder ? fail(io_errno(path, "read", EISDIR)) : read_all(fd, path, wake_fd);
  ::close(fd);
  return text;
}

bool is_space(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

Result<std::int32_t> parse_id(std::string_view item) {
  const auto value = parse_integer(item);
  if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    return fail(invalid_input(fmt::format("\"{}\" is not a token id", item)));
  }
  return static_cast<std::int32_t>(*value);
}

/// The numbers between two commas: one, or several with spaces between them.
Result<void> append_ids(std::string_view part, std::vector<std::int32_t>& ids) {
  while (!part.empty()) {
    std::size_t end = 0;
    while (end < part.size() && !is_space(part[end])) ++end;
    CYB_ASSIGN(const std::int32_t id, parse_id(part.substr(0, end)));
    ids.push_back(id);
    part = trimmed(part.substr(end));
  }
  return {};
}

}  // namespace

bool stdin_is_terminal() noexcept {
  return ::isatty(STDIN_FILENO) == 1;
}

void warn_if_open_to_others(Output& output, const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || (info.st_mode & 0077) == 0)
    return;
  output.warning(fmt::format("{}: others can read or write it: chmod 600", terminal_safe(path)));
}

Result<std::string> read_text(const std::string& path, int wake_fd) {
  return path == "-" ? read_all(STDIN_FILENO, "standard input", wake_fd) : read_file(path, wake_fd);
}

Result<std::string> text_argument(const std::optional<std::string>& argument,
                                  const std::optional<std::string>& file, const TextWanted& wanted,
                                  int wake_fd) {
  if (argument && file) {
    return fail(
        usage_error(fmt::format("{} is given twice: as argument and as file", wanted.what)));
  }
  std::string text;
  if (argument) {
    text = *argument;
  } else if (file) {
    CYB_ASSIGN(text, read_text(*file, wake_fd));
  } else if (!stdin_is_terminal()) {
    CYB_ASSIGN(text, read_text("-", wake_fd));
  } else {
    return fail(usage_error(
        fmt::format("{} is missing: give it {} or through a pipe", wanted.what, wanted.how)));
  }
  CYB_TRY(api::check_utf8(text, wanted.what));
  return text;
}

Result<std::vector<std::int32_t>> parse_ids(std::string_view text) {
  std::vector<std::int32_t> ids;
  std::string_view list = trimmed(text);
  if (list.starts_with('[') && list.ends_with(']') && list.size() >= 2) {
    list = trimmed(list.substr(1, list.size() - 2));
  }
  if (list.empty()) return fail(invalid_input("no token ids"));
  const std::vector<std::string_view> parts = split_list(list);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = trimmed(parts[i]);
    if (part.empty()) {
      return fail(invalid_input(fmt::format("element {} of the token ids is empty", i + 1)));
    }
    CYB_TRY(append_ids(part, ids));
  }
  return ids;
}

}  // namespace cyb::cli
