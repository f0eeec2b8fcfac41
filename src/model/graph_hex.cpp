// Hex text of a graph part: lower case, 64 bytes a line; white space is ignored when read.
#include <fmt/format.h>

#include "model/graph_names.hpp"

namespace cyb {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

std::string graph_to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::size_t kPerLine = 64;
  std::string out;
  out.reserve(2 * bytes.size() + bytes.size() / kPerLine + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = static_cast<unsigned>(bytes[i]);
    out += kDigits[value >> 4];
    out += kDigits[value & 15];
    if (i % kPerLine == kPerLine - 1 || i + 1 == bytes.size()) out += '\n';
  }
  return out;
}

Result<std::vector<std::byte>> graph_from_hex(std::string_view text) {
  std::vector<std::byte> out;
  out.reserve(text.size() / 2);
  int high = -1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_space(text[i])) continue;
    const int digit = hex_value(text[i]);
    if (digit < 0) {
      return fail(
          graph_error("G01", fmt::format("not a CYIR v1 graph: no hex digit at byte {}", i)));
    }
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<std::byte>(high << 4 | digit));
      high = -1;
    }
  }
  if (high >= 0) return fail(graph_error("G02", fmt::format("truncated at byte {}", out.size())));
  return out;
}

}  // namespace cyb
