// Server: models on a port. Starts, serves until drain(), and loses no answer that was begun.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.hpp"
#include "runtime/engine.hpp"
#include "server/http/http_server.hpp"
#include "server/service.hpp"

namespace cyb::server {

struct ServerOptions {
  http::HttpOptions http{};
  ServiceOptions service{};
  unsigned workers = 2;
};

class Server {
 public:
  /// Errors: InvalidInput for a host that others reach while there are no keys, or that is no
  /// address; Io where it cannot listen.
  static Result<std::unique_ptr<Server>> start(std::unique_ptr<ModelShelf> shelf,
                                               ServerOptions options);
  /// The same with one model that is loaded and stays.
  static Result<std::unique_ptr<Server>> start(std::shared_ptr<Engine> engine,
                                               ServerOptions options);
  ~Server();  // cancels what is left

  std::uint16_t port() const noexcept { return http_->port(); }
  /// "http://127.0.0.1:8080", "unix:/run/cyb-llm.sock"
  std::string address() const;
  /// Keys, further hosts and the TLS certificate of `options` for what comes from now on; nothing
  /// else of them is looked at, and no connection ends. Errors: as start(); then all is as before.
  Result<void> renew(const ServerOptions& options);
  Service& service() noexcept { return *service_; }
  /// Takes no more requests and returns when the last answer is out; false where `stop` was asked
  /// for first, or a client did not read.
  bool drain(std::stop_token stop = {});

 private:
  Server() = default;

  std::string host_, unix_path_;
  bool tls_ = false;
  std::unique_ptr<http::WorkerPool> workers_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<http::HttpServer> http_;
};

}  // namespace cyb::server
