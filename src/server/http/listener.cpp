#include "server/http/listener.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <optional>
#include <utility>

namespace cyb::http {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
using Tls = asio::ssl::context;

constexpr std::size_t kMaxUnixPath = 107;  // bytes of sockaddr_un::sun_path, without the zero

/// Null where no certificate is named.
Result<std::unique_ptr<Tls>> make_tls(const std::string& certificate, const std::string& key) {
  if (certificate.empty()) return std::unique_ptr<Tls>();
  auto tls = std::make_unique<Tls>(Tls::tls_server);
  ::SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
  Code code;
  tls->use_certificate_chain_file(certificate, code);
  if (code) {
    return fail(invalid_input(
        fmt::format("\"{}\" holds no certificate chain in PEM: {}", certificate, code.message())));
  }
  tls->use_private_key_file(key, Tls::pem, code);
  if (code) {
    return fail(invalid_input(fmt::format("\"{}\" holds no private key of \"{}\" in PEM: {}", key,
                                          certificate, code.message())));
  }
  return tls;
}

class TlsListener : public Listener {
 public:
  explicit TlsListener(std::unique_ptr<Tls> tls) : tls_(std::move(tls)) {}
  Result<void> renew_certificate(const std::string& certificate, const std::string& key) override {
    const std::lock_guard lock(mutex_);
    if (tls_ == nullptr) return {};
    CYB_ASSIGN(std::unique_ptr<Tls> tls, make_tls(certificate, key));
    if (tls == nullptr) return fail(invalid_input("a server with TLS needs a certificate"));
    tls_ = std::move(tls);
    return {};
  }

 protected:
  /// A stream counts as an owner of the certificate that it began with.
  std::unique_ptr<Stream> stream(Socket socket) {
    const std::lock_guard lock(mutex_);
    return make_stream(std::move(socket), tls_.get());
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<Tls> tls_;
};

class TcpListener final : public TlsListener {
 public:
  TcpListener(asio::io_context& io, std::unique_ptr<Tls> tls, int send_buffer_bytes)
      : TlsListener(std::move(tls)),
        io_(io),
        acceptor_(io),
        send_buffer_bytes_(send_buffer_bytes) {}

  Result<void> listen(const HttpOptions& options) {
    Code code;
    const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
    const auto address = asio::ip::make_address(host, code);
    if (code) return fail(invalid_input("the host \"" + options.host + "\" is no IP address"));
    const Tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), code);
    if (!code) acceptor_.set_option(asio::socket_base::reuse_address(true), code);
    if (!code) acceptor_.bind(endpoint, code);
    if (!code) acceptor_.listen(asio::socket_base::max_listen_connections, code);
    if (!code) port_ = acceptor_.local_endpoint(code).port();
    if (!code) return {};
    return fail(
        io_error(fmt::format("{} port {}", options.host, options.port), "listen", code.message()));
  }
  void accept(Accepted done) override {
    acceptor_.async_accept(asio::make_strand(io_), [this, done = std::move(done)](
                                                       const Code& code, Tcp::socket socket) {
      if (code) return done(code, nullptr, {});
      Code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      if (send_buffer_bytes_ > 0) {
        socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes_), ignored);
      }
      Ends ends;
      const auto local = socket.local_endpoint(ignored);
      if (!ignored) ends.local = local.address().to_string();
      const auto peer = socket.remote_endpoint(ignored);
      if (!ignored) ends.peer = peer.address().to_string();
      done({}, stream(Socket(std::move(socket))), std::move(ends));
    });
  }
  void close() override {
    Code code;
    acceptor_.close(code);
  }
  std::uint16_t port() const noexcept override { return port_; }

 private:
  asio::io_context& io_;
  Tcp::acceptor acceptor_;
  int send_buffer_bytes_;
  std::uint16_t port_ = 0;
};

/// A socket that nobody listens on is the rest of a process that was killed.
Result<void> clear_path(asio::io_context& io, const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return fail(invalid_input("\"" + path + "\" is there and is no socket; name another path"));
  }
  Local::socket probe(io);
  Code code;
  probe.connect(Local::endpoint(path), code);
  if (!code) return fail(busy("the Unix socket \"" + path + "\""));
  if (code != asio::error::connection_refused)
    return fail(io_error(path, "connect", code.message()));
  if (::unlink(path.c_str()) != 0) return fail(io_error(path, "remove", "the old socket stays"));
  return {};
}

class UnixListener final : public TlsListener {
 public:
  UnixListener(asio::io_context& io, std::unique_ptr<Tls> tls)
      : TlsListener(std::move(tls)), io_(io), acceptor_(io) {}
  ~UnixListener() override { close(); }
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  Result<void> listen(const std::string& path) {
    if (path.size() > kMaxUnixPath) {
      return fail(invalid_input(fmt::format(
          "the path of a Unix socket has at most {} bytes: \"{}\"", kMaxUnixPath, path)));
    }
    CYB_TRY(clear_path(io_, path));
    const Local::endpoint endpoint(path);
    Code code;
    acceptor_.open(endpoint.protocol(), code);
    // Nobody else gets in between: the file has its rights from the start.
    const mode_t before = ::umask(0177);
    if (!code) acceptor_.bind(endpoint, code);
    ::umask(before);
    if (!code) path_ = path;
    if (!code) acceptor_.listen(asio::socket_base::max_listen_connections, code);
    if (!code) return {};
    return fail(io_error(path, "listen", code.message()));
  }
  void accept(Accepted done) override {
    acceptor_.async_accept(asio::make_strand(io_),
                           [this, done = std::move(done)](const Code& code, Local::socket socket) {
                             if (code) return done(code, nullptr, {});
                             done({}, stream(Socket(std::move(socket))), {});
                           });
  }
  void close() override {
    Code code;
    acceptor_.close(code);
    if (!path_.empty()) ::unlink(std::exchange(path_, {}).c_str());
  }

 private:
  asio::io_context& io_;
  Local::acceptor acceptor_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& io, const HttpOptions& options) {
  CYB_ASSIGN(std::unique_ptr<Tls> tls, make_tls(options.tls_certificate, options.tls_key));
  if (!options.unix_path.empty()) {
    auto out = std::make_unique<UnixListener>(io, std::move(tls));
    CYB_TRY(out->listen(options.unix_path));
    return std::unique_ptr<Listener>(std::move(out));
  }
  auto out = std::make_unique<TcpListener>(io, std::move(tls), options.send_buffer_bytes);
  CYB_TRY(out->listen(options));
  return std::unique_ptr<Listener>(std::move(out));
}

}  // namespace cyb::http
