// On curl's own parser, so that what is checked here is what is connected to.
#include "net/url.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "base/ascii.hpp"
#include "base/transfer_limits.hpp"
#include "net/net_error.hpp"

namespace cyb::net {
namespace {

using Handle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part(const Handle& handle, CURLUPart what, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle.get(), what, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

bool is_clean(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return false;
  return !text.empty() && text.size() <= kMaxUrlBytes;
}

Result<Url> read(const Handle& handle) {
  Url url;
  url.scheme = ascii_lower(part(handle, CURLUPART_SCHEME));
  url.host = ascii_lower(part(handle, CURLUPART_HOST));
  if (url.scheme != "http" && url.scheme != "https")
    return fail(invalid_input("the address is neither http nor https"));
  if (url.host.empty()) return fail(invalid_input("the address has no host"));
  if (!part(handle, CURLUPART_USER).empty() || !part(handle, CURLUPART_PASSWORD).empty())
    return fail(invalid_input("the address holds a user name or password"));
  const std::string port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), url.port);
  url.path = part(handle, CURLUPART_PATH);
  curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0);
  url.text = part(handle, CURLUPART_URL);
  return url;
}

}  // namespace

std::string Url::origin() const {
  return fmt::format("{}://{}:{}", scheme, host, port);
}

bool Url::is_loopback() const {
  const bool digits = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "[::1]" || (digits && host.starts_with("127."));
}

std::string Url::shown() const {
  return text.substr(0, text.find('?'));
}

Result<Url> parse_url(std::string_view text) {
  if (!is_clean(text)) return fail(invalid_input("the address is empty, too long or has spaces"));
  const Handle handle(curl_url(), &curl_url_cleanup);
  if (curl_url_set(handle.get(), CURLUPART_URL, std::string(text).c_str(),
                   CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return fail(invalid_input(fmt::format("\"{}\" is no address", text.substr(0, 200))));
  return read(handle);
}

Result<Url> resolve_url(const Url& base, std::string_view location) {
  const auto refused = [&](std::string_view why) {
    return fail(net_error(kRedirect, fmt::format("{}: redirect refused: {}", base.shown(), why)));
  };
  if (!is_clean(location)) return refused("its address is empty, too long or has spaces");
  const Handle handle(curl_url(), &curl_url_cleanup);
  if (curl_url_set(handle.get(), CURLUPART_URL, base.text.c_str(), 0) != CURLUE_OK ||
      curl_url_set(handle.get(), CURLUPART_URL, std::string(location).c_str(),
                   CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return refused("its address cannot be read");
  auto url = read(handle);
  if (!url) return refused(url.error().message());
  if (base.is_secure() && !url->is_secure()) return refused("from https to http");
  return url;
}

std::string escape_url(std::string_view text, std::string_view keep) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       keep.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string unescape_url(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size();
    if (escape && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace cyb::net
