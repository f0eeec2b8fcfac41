// Addresses: http and https only, cut into what decides where a token may go.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::net {

struct Url {
  std::string scheme, host;  // lower case
  unsigned port = 0;         // the scheme's own where none is written
  std::string path;          // as written, with its '/'
  std::string text;          // the whole, without a fragment

  std::string origin() const;  // scheme://host:port
  bool is_secure() const { return scheme == "https"; }
  /// 127.0.0.0/8, [::1] or localhost: what never leaves the machine.
  bool is_loopback() const;
  /// Without query: what may be shown and kept.
  std::string shown() const;
};

/// Errors: InvalidInput for another scheme, a user name or password, control characters, a syntax
/// error, more than kMaxUrlBytes.
Result<Url> parse_url(std::string_view text);
/// What a Location header means at `base`. Errors: N04.
Result<Url> resolve_url(const Url& base, std::string_view location);
/// Bytes but A-Z a-z 0-9 - . _ ~ and those of `keep` as %XX.
std::string escape_url(std::string_view text, std::string_view keep = "");
/// %XX as the byte; what is no escape stays.
std::string unescape_url(std::string_view text);

}  // namespace cyb::net
