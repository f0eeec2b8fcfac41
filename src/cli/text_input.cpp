// Reading is bounded by the limit on prompts.
#include "cli/text_input.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

#include "base/file.hpp"
#include "base/limits.hpp"
#include "cli/options.hpp"

namespace cyb::cli {
namespace {

Result<std::string> read_stdin() {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_errno("standard input", "read", errno));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxPromptBytes) {
      return fail(
          invalid_input(fmt::format("standard input is longer than {} bytes", kMaxPromptBytes)));
    }
  }
}

}  // namespace

bool stdin_is_terminal() noexcept {
  return ::isatty(STDIN_FILENO) == 1;
}

Result<std::string> read_text(const std::string& path) {
  return path == "-" ? read_stdin() : read_text_file(path, kMaxPromptBytes);
}

Result<std::string> text_argument(const std::optional<std::string>& argument,
                                  const std::optional<std::string>& file, std::string_view what) {
  if (argument && file)
    return fail(invalid_input(fmt::format("{} is given twice: as argument and as file", what)));
  if (argument) return *argument;
  if (file) return read_text(*file);
  if (!stdin_is_terminal()) return read_stdin();
  return fail(invalid_input(
      fmt::format("{} is missing: give it as argument, as file or through a pipe", what)));
}

Result<std::vector<std::int32_t>> parse_ids(std::string_view text) {
  std::vector<std::int32_t> ids;
  const auto is_gap = [](char c) {
    return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '[' || c == ']';
  };
  for (std::size_t at = 0; at < text.size();) {
    if (is_gap(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_gap(text[end])) ++end;
    const std::string_view item = text.substr(at, end - at);
    const auto value = parse_integer(item);
    if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      return fail(invalid_input(fmt::format("\"{}\" is not a token id", item)));
    }
    ids.push_back(static_cast<std::int32_t>(*value));
    at = end;
  }
  if (ids.empty()) return fail(invalid_input("no token ids"));
  return ids;
}

}  // namespace cyb::cli
