// Requests of a connection: however the bytes are cut, the same requests come out; what was taken
// as one request has one framing, and nothing is held without a bound.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/request_reader.hpp"

namespace {

using namespace cyb::http;

constexpr ReadLimits kLimits{.header_bytes = 1024, .body_bytes = 4096};

struct Outcome {
  std::vector<Request> requests;
  bool bad = false;
  unsigned status = 0;
};

void need(bool condition) {
  if (!condition) std::abort();
}

/// No bare CR or LF and nothing after the empty line.
void check_head_bytes(std::string_view head) {
  need(head.ends_with("\r\n\r\n") && head.find("\r\n\r\n") == head.size() - 4);
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '\n') need(i > 0 && head[i - 1] == '\r');
    if (head[i] == '\r') need(i + 1 < head.size() && head[i + 1] == '\n');
  }
}

void check_request(const Request& request) {
  need(!request.method.empty() && !request.target.empty());
  need(request.body.size() <= kLimits.body_bytes);
  for (const Header& header : request.headers) {
    need(!header.name.empty() && header.name.find_first_of(" \t\r\n:") == std::string::npos);
    need(header.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  }
  const auto lengths = request.values("content-length");
  const auto codings = request.values("transfer-encoding");
  need(lengths.size() + codings.size() <= 1);
  if (!codings.empty()) need(same_name(codings[0], "chunked") && request.version == 11);
  if (lengths.empty() && codings.empty()) need(request.body.empty());
  if (lengths.empty()) return;
  need(!lengths[0].empty() && lengths[0].find_first_not_of("0123456789") == lengths[0].npos);
  need(std::strtoull(std::string(lengths[0]).c_str(), nullptr, 10) == request.body.size());
}

/// As a connection does it. `piece`: bytes that come at a time.
Outcome read_all(std::string_view bytes, std::size_t piece) {
  Outcome out;
  RequestReader reader(kLimits);
  std::string input, head;
  for (std::size_t at = 0; at < bytes.size() && !out.bad; at += piece) {
    input += bytes.substr(at, piece);
    while (true) {
      const bool in_head = reader.state() == RequestReader::State::kHead;
      const std::size_t taken = reader.feed(input);
      if (in_head) head += input.substr(0, taken);
      input.erase(0, taken);
      if (reader.state() == RequestReader::State::kHeadDone) {
        check_head_bytes(head);
        head.clear();
        reader.accept_body();
      } else if (reader.state() == RequestReader::State::kDone) {
        out.requests.push_back(reader.take());
        check_request(out.requests.back());
      } else {
        break;
      }
    }
    out.bad = reader.state() == RequestReader::State::kBad;
    if (!out.bad) need(input.size() <= kLimits.header_bytes);
  }
  out.status = out.bad ? reader.status() : 0;
  if (out.bad) need(out.status == 400 || out.status == 413 || out.status == 431);
  return out;
}

bool same(const Request& a, const Request& b) {
  const auto equal = [](const Header& x, const Header& y) {
    return x.name == y.name && x.value == y.value;
  };
  return a.method == b.method && a.target == b.target && a.version == b.version &&
         a.keep_alive == b.keep_alive && a.body == b.body &&
         std::ranges::equal(a.headers, b.headers, equal);
}

}  // namespace

/// The first byte says how the rest is cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = read_all(bytes, bytes.size() + 1);
  const Outcome cut = read_all(bytes, 1 + data[0] % 32U);
  // What is no head may be seen early or never end; what is too long where it waits for its end is
  // refused where it comes slowly.
  const auto n = static_cast<std::ptrdiff_t>(std::min(whole.requests.size(), cut.requests.size()));
  need(std::equal(whole.requests.begin(), whole.requests.begin() + n, cut.requests.begin(), same));
  need(whole.requests.size() == cut.requests.size() ||
       (whole.requests.size() > cut.requests.size() ? cut : whole).bad);
  return 0;
}
