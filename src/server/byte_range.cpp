// Digits alone are numbers; one that is too large for 64 bits is behind every file's end.
#include "server/byte_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace cyb::server {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || !digits) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : std::numeric_limits<std::uint64_t>::max();
}

/// "5-9", "5-", "-5".
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1));
  if (dash == 0) {
    if (!last) return std::nullopt;
    const std::uint64_t n = std::min(*last, size);
    return ByteRange{n == 0 ? 416u : 206u, size - n, n};
  }
  const bool open = dash + 1 == text.size();
  if (!first || (!last && !open) || (last && *last < *first)) return std::nullopt;
  if (*first >= size) return ByteRange{416, 0, 0};
  const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
  return ByteRange{206, *first, end - *first + 1};
}

}  // namespace

ByteRange byte_range(const http::RequestHead& head, std::uint64_t size_bytes,
                     std::string_view etag) {
  constexpr std::string_view kUnit = "bytes=";
  const ByteRange whole{200, 0, size_bytes};
  const auto ranges = head.values("range");
  if (ranges.size() != 1 || !http::same_name(ranges[0].substr(0, kUnit.size()), kUnit))
    return whole;
  for (const std::string_view known : head.values("if-range"))
    if (known != etag) return whole;
  return parse_range(ranges[0].substr(kUnit.size()), size_bytes).value_or(whole);
}

std::string content_range(const ByteRange& range, std::uint64_t size_bytes) {
  if (range.status == 416) return fmt::format("bytes */{}", size_bytes);
  return fmt::format("bytes {}-{}/{}", range.first, range.first + range.size - 1, size_bytes);
}

}  // namespace cyb::server
