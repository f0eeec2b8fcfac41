// Who may ask: Host and Origin (a web page must not reach a server on loopback), keys, content
// type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "server/api_error.hpp"
#include "server/http/message.hpp"

namespace cyb::server {

struct AccessOptions {
  std::string host;                     // that the server listens on
  std::vector<std::string> more_hosts;  // further names that clients reach it by
  std::vector<Digest> keys;             // of keys; empty: none is needed
  std::vector<Digest> admin_keys{};     // those that may load and unload; they are `keys` too
};

/// Keys of a file: one a line, `#` begins a comment. Errors: InvalidInput for a file without keys,
/// a key shorter than 16 bytes or with white space. `path` names the file in errors alone.
Result<std::vector<Digest>> read_keys(std::string_view text, std::string_view path);

class Access {
 public:
  explicit Access(AccessOptions options) : options_(std::move(options)) {}

  /// The error that refuses a request, by its head alone. `open`: the route needs no key.
  std::optional<ApiError> check(const http::RequestHead& head, bool open) const;
  /// Number of the key that the request carries, from 1; 0 for none. In constant time.
  std::size_t key_number(const http::RequestHead& head) const;
  /// 403 `admin_key_required` where the request may not load and unload models: it needs an admin
  /// key where there are keys at all.
  std::optional<ApiError> check_admin(const http::RequestHead& head) const;

 private:
  /// Of the key that the request carries; nullopt where it carries none.
  static std::optional<Digest> given_key(const http::RequestHead& head);
  bool knows_host(std::string_view host, const http::RequestHead& head) const;
  std::optional<ApiError> check_host(const http::RequestHead& head) const;
  std::optional<ApiError> check_origin(const http::RequestHead& head) const;

  AccessOptions options_;
};

}  // namespace cyb::server
