// Stream: the bytes of a connection, over TCP or a Unix socket, in the clear or in TLS. Internal to
// this folder.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <functional>
#include <memory>

namespace cyb::http {

using Socket = boost::asio::generic::stream_protocol::socket;

/// Belongs to its executor, a strand. At most one read and one write at a time. Handlers run on the
/// executor.
class Stream {
 public:
  using Code = boost::system::error_code;
  using Begun = std::move_only_function<void(const Code&)>;
  using Moved = std::move_only_function<void(const Code&, std::size_t)>;

  virtual ~Stream() = default;
  boost::asio::any_io_executor executor() { return socket().get_executor(); }
  /// Before anything else: the handshake, where there is one.
  virtual void begin(Begun done) = 0;
  virtual void read_some(boost::asio::mutable_buffer to, Moved done) = 0;
  virtual void write_some(boost::asio::const_buffer from, Moved done) = 0;
  /// Tells the other side that nothing more is sent; `owner` lives until that is out.
  virtual void end_of_output(std::shared_ptr<void> owner) = 0;
  /// Without a code: the connection broke, in both directions. It may have before.
  void wait_broken(Begun done);
  /// Reads, writes and waits under way end with an error.
  void close();

 protected:
  virtual Socket& socket() = 0;
};

/// `tls` null: in the clear. The stream shares OpenSSL's own context, so `tls` itself may go.
std::unique_ptr<Stream> make_stream(Socket socket, boost::asio::ssl::context* tls);

}  // namespace cyb::http
