#include "server/http/stream.hpp"

#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace cyb::http {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;

class PlainStream final : public Stream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}
  void begin(Begun done) override { done({}); }
  void read_some(asio::mutable_buffer to, Moved done) override {
    socket_.async_read_some(to, std::move(done));
  }
  void write_some(asio::const_buffer from, Moved done) override {
    socket_.async_write_some(from, std::move(done));
  }
  void end_of_output(std::shared_ptr<void>) override {
    Code code;
    socket_.shutdown(Socket::shutdown_send, code);
  }

 private:
  Socket& socket() override { return socket_; }
  Socket socket_;
};

class TlsStream final : public Stream {
 public:
  TlsStream(Socket socket, asio::ssl::context& tls) : tls_(std::move(socket), tls) {}
  void begin(Begun done) override {
    tls_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void read_some(asio::mutable_buffer to, Moved done) override {
    tls_.async_read_some(to, std::move(done));
  }
  void write_some(asio::const_buffer from, Moved done) override {
    tls_.async_write_some(from, std::move(done));
  }
  void end_of_output(std::shared_ptr<void> owner) override {
    tls_.async_shutdown([this, owner = std::move(owner)](const Code&) {
      Code code;
      socket().shutdown(Socket::shutdown_send, code);
    });
  }

 private:
  Socket& socket() override { return tls_.next_layer(); }
  asio::ssl::stream<Socket> tls_;
};

}  // namespace

void Stream::wait_broken(Begun done) {
  socket().async_wait(Socket::wait_error, std::move(done));
}

void Stream::close() {
  Code code;
  socket().close(code);
}

std::unique_ptr<Stream> make_stream(Socket socket, asio::ssl::context* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(std::move(socket));
  return std::make_unique<TlsStream>(std::move(socket), *tls);
}

}  // namespace cyb::http
