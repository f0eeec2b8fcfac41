// Who may ask: Host and Origin (a web page must not reach a server on loopback), keys, content
// type.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// Thread-safe.
class Access {
 public:
  explicit Access(AccessOptions options);

  /// Further names and keys from now on, instead of those before; the host stays. A key that stays
  /// keeps its number, and no number is given twice.
  void renew(AccessOptions options);
  bool has_keys() const { return !rules()->keys.empty(); }
  /// The error that refuses a request, by its head alone. `open`: the route needs no key.
  std::optional<ApiError> check(const http::RequestHead& head, bool open) const;
  /// 401 where keys are needed and the request has none that counts now.
  std::optional<ApiError> check_key(const http::RequestHead& head, bool open) const;
  /// Number of the key that the request carries, from 1; 0 for none. In constant time.
  std::size_t key_number(const http::RequestHead& head) const;
  /// 403 `admin_key_required` where the request may not load and unload models or go before others:
  /// it needs an admin key where there are keys at all.
  std::optional<ApiError> check_admin(const http::RequestHead& head) const;

 private:
  /// Of the key that the request carries; nullopt where it carries none.
  static std::optional<Digest> given_key(const http::RequestHead& head);
  struct Rules {
    std::string host;
    std::vector<std::string> more_hosts;
    std::vector<std::pair<Digest, std::size_t>> keys;  // with their numbers
    std::vector<Digest> admin_keys;
  };
  static std::optional<ApiError> check_key(const Rules& rules, const http::RequestHead& head,
                                           bool open);
  static std::size_t key_number(const Rules& rules, const http::RequestHead& head);
  static bool knows_host(const Rules& rules, std::string_view host, const http::RequestHead& head);
  static std::optional<ApiError> check_host(const Rules& rules, const http::RequestHead& head);
  static std::optional<ApiError> check_origin(const http::RequestHead& head);
  std::shared_ptr<const Rules> rules() const;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Rules> rules_;
  std::vector<Digest> known_;  // keys that have a number
};

}  // namespace cyb::server
