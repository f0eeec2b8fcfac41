// Beast's parser does the work; what it accepts beyond need (trailers, codings that it does not
// decode) is refused or unused; an offer to upgrade is not taken up (RFC 9110, 7.8). See
// https://www.rfc-editor.org/rfc/rfc9112.
#include "server/http/request_reader.hpp"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <utility>

namespace cyb::http {

namespace beast = boost::beast::http;

namespace {

constexpr std::size_t kLastChunkBytes = 5;  // 0 CR LF CR LF

/// One framing, so that nobody in front of this server sees another end of the body (RFC 9112,
/// 6.3): a length, or chunks and no other coding, or neither.
std::string_view framing_fault(const RequestHead& head) {
  const auto lengths = head.values("content-length");
  const auto codings = head.values("transfer-encoding");
  if (lengths.size() + codings.size() > 1)
    return "A request has one framing: one Content-Length, or Transfer-Encoding: chunked.";
  if (!lengths.empty() && lengths[0].find_first_not_of("0123456789") != std::string_view::npos)
    return "Content-Length must be digits.";  // "3, 3"
  if (codings.empty() || (head.version == 11 && same_name(codings[0], "chunked"))) return {};
  return "Transfer-Encoding must be chunked, in HTTP/1.1.";
}

/// "" where nothing is wrong.
std::string_view head_fault(const RequestHead& head) {
  if (head.version != 10 && head.version != 11) return "HTTP/1.1 and HTTP/1.0 are understood.";
  if (head.method == "CONNECT") return "This server is no proxy: CONNECT is not taken.";
  return framing_fault(head);
}

/// What the parser found; "" where its words would say no more than the status.
std::string_view parser_fault(const boost::beast::error_code& code) {
  static constexpr std::pair<beast::error, std::string_view> kFaults[] = {
      {beast::error::bad_content_length, "Content-Length is malformed, or not the only framing."},
      {beast::error::multiple_content_length, "There is more than one Content-Length."},
      {beast::error::bad_transfer_encoding,
       "Transfer-Encoding is malformed, or not the only framing."},
      {beast::error::bad_chunk, "A chunk of the body is malformed."},
      {beast::error::bad_chunk_extension, "A chunk of the body is malformed."},
      {beast::error::bad_version, "HTTP/1.1 and HTTP/1.0 are understood."},
      {beast::error::bad_target, "The path of the request is malformed."},
      {beast::error::bad_field, "The name of a header is malformed."},
      {beast::error::bad_value, "The value of a header is malformed."}};
  for (const auto& [fault, text] : kFaults) {
    if (code == fault) return text;
  }
  return {};
}

/// "http://host/path" as "/path": every server takes the absolute form (RFC 9112, 3.2.2). The Host
/// header says what is asked for.
std::string origin_form(std::string target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(std::string_view(target).substr(0, scheme.size()), scheme)) continue;
    const std::size_t path = target.find_first_of("/?#", scheme.size());
    if (path == std::string::npos) return "/";
    return target[path] == '/' ? target.substr(path) : "/" + target.substr(path);
  }
  return target;
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

void RequestReader::fail(unsigned status, std::string_view why) noexcept {
  state_ = State::kBad;
  status_ = status;
  why_ = why;
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
  request_.target = origin_form(request_.target);
  if (const std::string_view why = head_fault(request_); !why.empty()) return fail(400, why);
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
      fail(large ? 413 : code == beast::error::header_limit ? 431 : 400, parser_fault(code));
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
