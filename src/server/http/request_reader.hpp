// RequestReader: bytes of a connection to requests, cut anywhere, several behind one another. Knows
// no socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "server/http/message.hpp"

namespace cyb::http {

struct ReadLimits {
  std::uint32_t header_bytes = 32U << 10;
  std::uint64_t body_bytes = 10U << 20;
};

class RequestReader {
 public:
  enum class State : std::uint8_t {
    kHead,      // the head is not complete
    kHeadDone,  // it is: look at head(), then accept_body()
    kBody,
    kDone,  // take()
    kBad,   // status() says why; the connection cannot go on
  };

  explicit RequestReader(const ReadLimits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  /// Number of bytes taken from the front; less than all of them where the state must be looked at
  /// first. What is not taken must be given again, with more behind it.
  std::size_t feed(std::string_view bytes);
  State state() const noexcept { return state_; }
  const RequestHead& head() const noexcept { return request_; }
  /// "Expect: 100-continue": the client waits with the body.
  bool expects_continue() const noexcept;
  void accept_body();
  /// 400, 413 or 431.
  unsigned status() const noexcept { return status_; }
  /// A sentence for the client; "" where the status says it all.
  std::string_view why() const noexcept { return why_; }
  /// The request; ready for the next one.
  Request take();

 private:
  struct Parser;
  void begin();
  void fail(unsigned status, std::string_view why = {}) noexcept;
  void read_head();

  ReadLimits limits_;
  std::unique_ptr<Parser> parser_;
  Request request_;
  State state_ = State::kHead;
  unsigned status_ = 0;
  std::string_view why_;  // a literal
};

}  // namespace cyb::http
