// Beast's parser does the work; what it accepts beyond need (upgrades, trailers, codings that it
// does not decode) is refused or unused. See https://www.rfc-editor.org/rfc/rfc9112.
#include "server/http/request_reader.hpp"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace cyb::http {

namespace beast = boost::beast::http;

namespace {

constexpr std::size_t kLastChunkBytes = 5;  // 0 CR LF CR LF

/// One framing, so that nobody in front of this server sees another end of the body (RFC 9112,
/// 6.3): a length, or chunks and no other coding, or neither.
bool one_framing(const RequestHead& head) {
  const auto lengths = head.values("content-length");
  const auto codings = head.values("transfer-encoding");
  if (lengths.size() + codings.size() > 1) return false;
  if (!lengths.empty() && lengths[0].find_first_not_of("0123456789") != std::string_view::npos) {
    return false;  // "3, 3"
  }
  return codings.empty() || (head.version == 11 && same_name(codings[0], "chunked"));
}

}  // namespace

struct RequestReader::Parser {
  beast::request_parser<beast::string_body> inner;
};

RequestReader::RequestReader(const ReadLimits& limits) : limits_(limits) {
  begin();
}

RequestReader::~RequestReader() = default;

void RequestReader::begin() {
  parser_ = std::make_unique<Parser>();
  parser_->inner.header_limit(limits_.header_bytes);
  parser_->inner.body_limit(limits_.body_bytes);
  parser_->inner.eager(false);
  request_ = {};
  state_ = State::kHead;
  status_ = 0;
}

void RequestReader::fail(unsigned status) noexcept {
  state_ = State::kBad;
  status_ = status;
}

void RequestReader::read_head() {
  const auto& message = parser_->inner.get();
  const auto text = [](auto view) { return std::string(view.data(), view.size()); };
  request_.method = text(message.method_string());
  request_.target = text(message.target());
  request_.version = message.version();
  request_.keep_alive = parser_->inner.keep_alive();
  for (const auto& field : message) {
    request_.headers.push_back({text(field.name_string()), text(field.value())});
  }
  const bool known = request_.version == 10 || request_.version == 11;
  if (!known || parser_->inner.upgrade() || request_.method == "CONNECT") return fail(400);
  if (!one_framing(request_)) return fail(400);
  const auto length = parser_->inner.content_length();
  if (length && *length > limits_.body_bytes) return fail(413);
  state_ = State::kHeadDone;
}

std::size_t RequestReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && (state_ == State::kHead || state_ == State::kBody)) {
    boost::beast::error_code code;
    auto& parser = parser_->inner;
    const std::string_view rest = bytes.substr(taken);
    // A chunked body never ends in fewer bytes, and the parser, which waits for the end of a
    // trailer, does not expect to see fewer again.
    if (state_ == State::kBody && parser.chunked() && rest.size() < kLastChunkBytes) break;
    taken += parser.put(boost::asio::const_buffer(rest.data(), rest.size()), code);
    if (code == beast::error::need_more) break;
    if (code) {
      const bool large = code == beast::error::body_limit;
      fail(large ? 413 : code == beast::error::header_limit ? 431 : 400);
      break;
    }
    if (state_ == State::kHead && parser.is_header_done()) {
      read_head();
    } else if (parser.is_done()) {
      state_ = State::kDone;
    }
  }
  if (state_ == State::kHead && bytes.size() > limits_.header_bytes) fail(431);
  // In a body only the line of a chunk and the trailer wait for their ends.
  if (state_ == State::kBody && bytes.size() - taken > limits_.header_bytes) fail(400);
  return taken;
}

bool RequestReader::expects_continue() const noexcept {
  for (const Header& header : request_.headers) {
    if (same_name(header.name, "expect") && same_name(header.value, "100-continue")) return true;
  }
  return false;
}

void RequestReader::accept_body() {
  if (state_ != State::kHeadDone) return;
  parser_->inner.eager(true);
  state_ = parser_->inner.is_done() ? State::kDone : State::kBody;
}

Request RequestReader::take() {
  request_.body = std::move(parser_->inner.get().body());
  Request out = std::move(request_);
  begin();
  return out;
}

}  // namespace cyb::http
