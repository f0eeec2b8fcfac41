// The order of the end matters: workers first (they use all else), then the models (their events
// use the connections), then the connections.
#include "server/server.hpp"

#include <fmt/format.h>

#include <utility>

namespace cyb::server {
namespace {

constexpr std::size_t kMaxWork = 1024;  // requests that wait for a worker
constexpr std::chrono::seconds kLastAnswers{30};

Result<void> check_reach(const ServerOptions& options) {
  const bool open = options.service.access.keys.empty();
  const bool reached = options.http.unix_path.empty() && !http::is_loopback_host(options.http.host);
  if (!open || !reached) return {};
  return fail(invalid_input(fmt::format(
      "others reach this server at \"{}\": it needs keys (--api-key-file), or a loopback host",
      options.http.host)));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(std::shared_ptr<Engine> engine,
                                              ServerOptions options) {
  auto shelf =
      ModelShelf::of(std::move(engine), options.service.model_name, options.service.scheduler);
  return start(std::move(shelf), std::move(options));
}

Result<std::unique_ptr<Server>> Server::start(std::unique_ptr<ModelShelf> shelf,
                                              ServerOptions options) {
  CYB_TRY(check_reach(options));
  std::unique_ptr<Server> out(new Server());
  out->host_ = options.http.host;
  out->unix_path_ = options.http.unix_path;
  out->tls_ = !options.http.tls_certificate.empty();
  options.service.access.host = options.http.host;
  out->workers_ = std::make_unique<http::WorkerPool>(options.workers, kMaxWork);
  out->service_ =
      std::make_unique<Service>(std::move(shelf), std::move(options.service), *out->workers_);
  Service& service = *out->service_;
  http::HttpHooks hooks{
      [&service](const http::RequestHead& head) { return service.check_head(head); },
      [&service](const std::shared_ptr<http::Exchange>& exchange) { service.handle(exchange); },
      [&service](unsigned status, std::string_view why, std::string_view peer) {
        return service.refuse(status, why, peer);
      },
      [&service](std::string_view line) { service.log(line); }};
  CYB_ASSIGN(out->http_,
             http::HttpServer::start(std::move(options.http), std::move(hooks), *out->workers_));
  service.set_connections([raw = out->http_.get()] { return raw->n_connections(); });
  service.set_ready(true);
  return out;
}

Server::~Server() {
  if (workers_) workers_->stop();
  if (service_) service_->stop();
  http_.reset();
}

std::string Server::address() const {
  const bool v6 = host_.find(':') != std::string::npos;
  if (!unix_path_.empty()) return "unix:" + unix_path_;
  return fmt::format("{}://{}{}{}:{}", tls_ ? "https" : "http", v6 ? "[" : "", host_, v6 ? "]" : "",
                     port());
}

Result<void> Server::renew(const ServerOptions& options) {
  CYB_TRY(check_reach(options));
  if (options.service.access.keys.empty() && service_->access().has_keys()) {
    return fail(
        invalid_input("no keys are left: a server that asks for keys is opened to everybody by a "
                      "new start alone"));
  }
  CYB_TRY(http_->renew_certificate(options.http.tls_certificate, options.http.tls_key));
  service_->access().renew(options.service.access);
  return {};
}

bool Server::drain(std::stop_token stop) {
  service_->set_ready(false);
  http_->close_listener();
  service_->end_transfers();
  return service_->shelf().drain(stop) && http_->wait_closed(kLastAnswers);
}

}  // namespace cyb::server
