// HttpServer: HTTP/1.1 on TCP or a Unix socket, with or without TLS. A few threads hold all
// connections; handlers run on workers and answer through Exchange. Slow and silent clients are cut
// off by limits and deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "server/http/message.hpp"
#include "server/http/request_reader.hpp"
#include "server/http/worker_pool.hpp"

namespace cyb::http {

struct HttpOptions {
  std::string host = "127.0.0.1";            // an address of this machine, or localhost
  std::uint16_t port = 0;                    // 0: any
  std::string unix_path{};                   // a Unix socket instead of host and port
  std::string tls_certificate{}, tls_key{};  // PEM files; empty: no TLS
  ReadLimits limits{};
  unsigned io_threads = 2;
  std::uint32_t max_connections = 4096;
  std::size_t max_pending_bytes = 256U << 10;  // of a stream whose client does not read
  int send_buffer_bytes = 0;                   // of the socket; 0: the system's
  std::chrono::milliseconds header_timeout{15000}, body_timeout{60000};
  std::chrono::milliseconds idle_timeout{75000};   // between requests
  std::chrono::milliseconds write_timeout{30000};  // without a byte taken by the client
};

struct HttpHooks {
  /// On a thread of the connections, before the body is read: an answer refuses the request, and
  /// the connection closes after it.
  std::function<std::optional<Response>(const RequestHead&)> check_head{};
  /// On a worker.
  std::function<void(std::shared_ptr<Exchange>)> handle{};
  /// An answer to what is no request at all: 400, 408, 413, 431, 500, 503. `why`: a sentence, or
  /// ""; `peer`: the client's address.
  std::function<Response(unsigned status, std::string_view why, std::string_view peer)> refuse{};
  /// A line for the log: what keeps connections from being taken.
  std::function<void(std::string_view)> trouble{};
};

class HttpServer {
 public:
  /// Listens. `workers` must outlive this. Errors: InvalidInput for a host that is no address, a
  /// socket path or certificates that cannot be taken; Busy for a path in use; Io.
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, HttpHooks hooks,
                                                   WorkerPool& workers);
  ~HttpServer();  // closes everything
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const noexcept;
  std::uint32_t n_connections() const noexcept;
  /// For connections from now on; PEM files. Nothing happens where the server has no TLS. Errors:
  /// as start(); then the old one stays.
  Result<void> renew_certificate(const std::string& certificate, const std::string& key);
  /// Takes no more connections; those that are open close after their answer, idle ones now.
  void close_listener();
  /// After close_listener(): until the last answer is out, or `most` is over.
  bool wait_closed(std::chrono::milliseconds most);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// 127.0.0.0/8, ::1 or "localhost".
bool is_loopback_host(const std::string& host);

}  // namespace cyb::http
