// Small look-ups; no parsing.
#include "server/http/message.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.hpp"

namespace cyb::http {
bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

std::string_view RequestHead::path() const noexcept {
  return std::string_view(target).substr(0, target.find_first_of("?#"));
}

std::vector<std::string_view> RequestHead::values(std::string_view name) const {
  std::vector<std::string_view> out;
  for (const Header& header : headers) {
    if (same_name(header.name, name)) out.emplace_back(header.value);
  }
  return out;
}

std::string_view status_text(unsigned status) noexcept {
  static constexpr std::pair<unsigned, std::string_view> kTexts[] = {
      {200, "OK"},
      {202, "Accepted"},
      {206, "Partial Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {507, "Insufficient Storage"},
  };
  for (const auto& [code, text] : kTexts) {
    if (code == status) return text;
  }
  return "";
}

std::string response_head(const Response& response, bool chunked, bool keep_alive) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, status_text(response.status));
  if (!response.content_type.empty()) out += "Content-Type: " + response.content_type + "\r\n";
  for (const Header& header : response.headers) out += header.name + ": " + header.value + "\r\n";
  if (chunked) out += "Transfer-Encoding: chunked\r\n";
  if (!keep_alive) out += "Connection: close\r\n";
  return out;
}

}  // namespace cyb::http
