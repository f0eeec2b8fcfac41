// HTTP GET on libcurl: one Connection a thread, kept open between requests. Redirects are followed
// here, not by curl: at most kMaxRedirects, never from https to http, and with the token only where
// the origin is the token's. Proxies as curl's variables say; certificates are always checked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/url.hpp"

namespace cyb::net {

/// A bearer token and the one origin that may see it.
struct Token {
  std::string text, origin;
};

/// `text` for the origin of `url`; null where it is "". Errors: InvalidInput for characters that no
/// token has, N04 over http to another machine.
Result<std::shared_ptr<const Token>> make_token(const Url& url, const std::string& text);

struct HttpOptions {
  unsigned connect_s = 20;  // name, connection and TLS
  unsigned stall_s = 30;    // fewer than 512 bytes a second for so long: N02
  std::shared_ptr<const Token> token;
  /// Origins that may be asked, also behind a redirect; null: all.
  std::shared_ptr<const std::vector<std::string>> origins;
};

/// Bytes first to last, both included.
struct ByteRange {
  std::uint64_t first = 0, last = 0;
};

struct HttpRequest {
  Url url;
  std::optional<ByteRange> range;
  std::string if_range;  // validator; "": none
};

struct HttpHead {
  unsigned status = 0;
  std::map<std::string, std::string> fields;  // names in lower case; a repeated one: the last
  Url url;                                    // that answered, after redirects

  const std::string& field(const std::string& name) const;
  /// Content-Length, where it is a number.
  std::optional<std::uint64_t> length() const;
  /// Retry-After in seconds, at most 300; 0 where there is none.
  unsigned retry_after_s() const;
};

/// What becomes of an answer. `head` is called once before the first byte of the body: false leaves
/// the body unread. `body` is called for each piece.
struct HttpReceiver {
  std::function<Result<bool>(const HttpHead&)> head;
  std::function<Result<void>(std::span<const std::byte>)> body;
};

class Connection {
 public:
  /// Errors: N01 where curl cannot start.
  static Result<Connection> create(HttpOptions options);
  Connection(Connection&&) noexcept;
  ~Connection();

  /// Any status is an answer. Errors: N01, N02, N04, N05, Cancelled within a quarter of a second of
  /// a stop, and what the receiver returns.
  Result<HttpHead> get(const HttpRequest& request, const HttpReceiver& receiver,
                       std::stop_token stop);

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whole body as text. Errors: as get, N03 for a status but 200, N05 above `limit_bytes`. `head`:
/// may be null.
Result<std::string> get_text(Connection& connection, const Url& url, std::size_t limit_bytes,
                             std::stop_token stop, HttpHead* head = nullptr);

/// N03: "<address>: the server answers 404 (...)".
Error status_error(const HttpHead& head);
/// 408, 429, 500, 502, 503, 504: trying again later may help.
bool is_retried_status(unsigned status) noexcept;

}  // namespace cyb::net
