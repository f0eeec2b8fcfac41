// Draws "label [#####.....] 42 % what" over itself.
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/utf8.hpp"

namespace cyb::cli {
namespace {

std::size_t terminal_columns() {
  struct winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

/// At most `columns` characters; one code point counts as one column.
std::string clipped(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t n = 0; n < columns && at < text.size(); ++n) at += utf8_next(text, at).size;
  return std::string(text.substr(0, at));
}

}  // namespace

void Progress::update(std::uint64_t done, std::uint64_t total, std::string_view what) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (shown_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  const double part =
      total == 0 ? 0.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  constexpr std::size_t kWidth = 24;
  const auto filled = static_cast<std::size_t>(part * kWidth);
  const std::string line =
      fmt::format("{} [{}{}] {:3.0f} % {}", label_, std::string(filled, '#'),
                  std::string(kWidth - filled, '.'), part * 100, terminal_safe(what));
  output_.err("\r\x1b[K" + clipped(line, terminal_columns() - 1));
}

void Progress::clear() {
  if (shown_) output_.err("\r\x1b[K");
  shown_ = false;
}

}  // namespace cyb::cli
