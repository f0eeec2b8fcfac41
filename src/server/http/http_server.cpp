#include "server/http/http_server.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/connection.hpp"
#include "server/http/listener.hpp"

namespace cyb::http {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kAcceptPause{100};

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions options, HttpHooks hooks, WorkerPool& workers)
      : shared(std::make_shared<Shared>(std::move(options), std::move(hooks), workers)),
        pause(shared->io) {}
  ~Impl() {
    shared->closing = true;
    if (listener) asio::post(shared->io, [this] { stop_listening(); });
    close_connections(*shared, false);
    work.reset();
    threads.clear();  // joined: with every socket closed nothing is left to do
  }

  void stop_listening() {
    listener->close();
    pause.cancel();
  }
  void accept() {
    listener->accept([this](const Code& code, std::unique_ptr<Stream> stream, Ends ends) {
      if (code == asio::error::operation_aborted || shared->closing) return;
      if (!code && shared->n_connections < shared->options.max_connections) {
        start_connection(shared, std::move(stream), std::move(ends));
      } else {
        tell(code ? code.message() : "as many are open as the server takes");
      }
      if (!code) return accept();
      pause.expires_after(kAcceptPause);  // no file descriptors, as a rule
      pause.async_wait([this](const Code& late) {
        if (!late && !shared->closing) accept();
      });
    });
  }
  /// Once a minute at most.
  void tell(const std::string& what) {
    const auto now = std::chrono::steady_clock::now();
    if (!shared->hooks.trouble || now < next_told) return;
    next_told = now + std::chrono::minutes(1);
    shared->hooks.trouble("connections wait or are closed: " + what);
  }
  void run() {
    while (!shared->io.stopped()) {
      try {
        shared->io.run();
      } catch (const std::exception&) {
        // Out of memory for one connection: the others go on.
      }
    }
  }

  std::shared_ptr<Shared> shared;
  std::unique_ptr<Listener> listener;
  asio::steady_timer pause;
  std::chrono::steady_clock::time_point next_told{};  // of the accepting strand alone
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::vector<std::jthread> threads;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, HttpHooks hooks,
                                                      WorkerPool& workers) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(hooks), workers);
  CYB_ASSIGN(impl->listener, Listener::open(impl->shared->io, impl->shared->options));
  impl->work.emplace(impl->shared->io.get_executor());
  impl->accept();
  for (unsigned i = 0; i < impl->shared->options.io_threads; ++i) {
    impl->threads.emplace_back([raw = impl.get()] { raw->run(); });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::uint16_t HttpServer::port() const noexcept {
  return impl_->listener->port();
}

std::uint32_t HttpServer::n_connections() const noexcept {
  return impl_->shared->n_connections.load();
}

Result<void> HttpServer::renew_certificate(const std::string& certificate, const std::string& key) {
  return impl_->listener->renew_certificate(certificate, key);
}

void HttpServer::close_listener() {
  impl_->shared->closing = true;
  asio::post(impl_->shared->io, [impl = impl_.get()] { impl->stop_listening(); });
  close_connections(*impl_->shared, true);
}

bool HttpServer::wait_closed(Milliseconds most) {
  Shared& shared = *impl_->shared;
  std::unique_lock lock(shared.mutex);
  return shared.closed.wait_for(lock, most, [&] { return shared.n_exchanges == 0; });
}

bool is_loopback_host(const std::string& host) {
  Code code;
  const auto address = asio::ip::make_address(host, code);
  return code ? host == "localhost" : address.is_loopback();
}

}  // namespace cyb::http
