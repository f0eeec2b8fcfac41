// Listener: where connections come in, on TCP or a Unix socket, with or without TLS. Internal to
// this folder.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "server/http/http_server.hpp"
#include "server/http/stream.hpp"

namespace cyb::http {

/// Addresses of a connection without ports: of this machine, of the client; "" on a Unix socket.
struct Ends {
  std::string local, peer;
};

class Listener {
 public:
  /// Where the code is set there is no stream.
  using Accepted =
      std::function<void(const boost::system::error_code&, std::unique_ptr<Stream>, Ends ends)>;

  /// Errors: InvalidInput for a host that is no address, a path that is too long or no socket,
  /// certificates that are none; Busy where another process listens; Io.
  static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& io,
                                                const HttpOptions& options);
  virtual ~Listener() = default;
  /// The next connection.
  virtual void accept(Accepted done) = 0;
  virtual void close() = 0;
  virtual std::uint16_t port() const noexcept { return 0; }
  /// From any thread, while connections come in.
  virtual Result<void> renew_certificate(const std::string& certificate,
                                         const std::string& key) = 0;
};

}  // namespace cyb::http
