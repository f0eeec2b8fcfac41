// Requests, responses and the exchange that answers one: what routes see of HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cyb::http {

struct Header {
  std::string name, value;
};

/// What comes before the body.
struct RequestHead {
  std::string method, target;
  std::vector<Header> headers;
  unsigned version = 11;      // 10 or 11
  std::string local_address;  // that the connection came in on, without port
  std::string peer;           // the client's address, without port; "" on a Unix socket
  bool keep_alive = true;

  /// The path, without the query.
  std::string_view path() const noexcept;
  /// Values of the header (any case), in order.
  std::vector<std::string_view> values(std::string_view name) const;
};

struct Request : RequestHead {
  std::string body;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<Header> headers{};
};

/// "Not Found" of 404; "" of a status that the server never sends.
std::string_view status_text(unsigned status) noexcept;
/// Status line and headers, without Content-Length and the empty line.
std::string response_head(const Response& response, bool chunked, bool keep_alive);
/// ASCII, any case.
bool same_name(std::string_view a, std::string_view b) noexcept;

/// One request to be answered, by any thread: either respond(), or begin(), any number of write()
/// and end(). Dropped without an answer it becomes a 500. Nothing here waits.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const noexcept = 0;
  virtual void respond(Response response) = 0;
  /// The head of an answer whose body follows in pieces; `head.body` is the first piece.
  virtual void begin(Response head) = 0;
  /// False: nobody reads this any more, or so slowly that the bounded buffer is full; the
  /// connection is closed then.
  virtual bool write(std::string_view piece) = 0;
  virtual void end() = 0;
  /// begin() of an answer whose `size_bytes` are known: exactly so many are written before end(),
  /// none to HEAD.
  virtual void begin_sized(Response head, std::uint64_t size_bytes) {
    head.headers.push_back({"Content-Length", std::to_string(size_bytes)});
    begin(std::move(head));
  }
  /// Called once, as soon as all that was written is on its way to the client (at once where it
  /// is): the writer of a large body goes on then. Dropped where the client is gone.
  virtual void on_drained(std::function<void()> callback) { callback(); }
  /// Gives up in the middle: the connection closes and the client sees that the body is not whole.
  virtual void cut_off() = 0;
  /// Called once, from any thread, as soon as the client is gone before the answer is complete; at
  /// once where it is gone already. An empty one takes it back: it does not run after that. It must
  /// not call the exchange.
  virtual void on_gone(std::function<void()> callback) = 0;
};

}  // namespace cyb::http
