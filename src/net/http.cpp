// A multi handle of its own for each connection: between its polls of at most 200 ms a stop is
// seen. curl's callbacks only note what is wrong; the error is made when the transfer has ended.
#include "net/http.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/transfer_limits.hpp"
#include "net/net_error.hpp"

namespace cyb::net {
namespace {

constexpr long kLeastBytesPerSecond = 512;
constexpr unsigned kMaxRetryAfterS = 300;
constexpr std::size_t kMaxDiscardedBytes = 16384;

struct Headers {
  curl_slist* list = nullptr;
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Where the bytes of one request go.
struct Transfer {
  const HttpReceiver& receiver;
  CURL* easy;
  HttpHead head;
  std::size_t header_bytes = 0;
  bool head_told = false, unread = false;
  std::size_t discarded = 0;
  std::optional<Error> error;

  bool is_redirect() const {
    return head.status >= 300 && head.status < 400 && !head.field("location").empty();
  }

  void header_line(std::string_view line) {
    header_bytes += line.size();
    if (header_bytes > kMaxAnswerHeadBytes) {
      error = net_error(kLies, fmt::format("{}: more than {} bytes of headers", head.url.shown(),
                                           kMaxAnswerHeadBytes));
      return;
    }
    if (line.starts_with("HTTP/")) head.fields.clear();  // after a 1xx answer
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.starts_with("HTTP/")) return;
    std::string name(line.substr(0, colon));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    head.fields[name] = std::string(trimmed(line.substr(colon + 1)));
  }

  /// Before the body, or at the end of an answer without one.
  void tell_head() {
    if (std::exchange(head_told, true)) return;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    head.status = static_cast<unsigned>(status);
    if (is_redirect()) {
      unread = true;
      return;
    }
    const std::string& coding = head.field("content-encoding");
    if (!coding.empty() && coding != "identity") {
      error = net_error(kLies, fmt::format("{}: a body in the coding {} that was not asked for",
                                           head.url.shown(), coding));
      return;
    }
    auto wanted = receiver.head(head);
    if (!wanted) error = std::move(wanted).error();
    if (wanted && !*wanted) unread = true;
  }
};

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.header_line({data, size});
  return transfer.error ? 0 : size;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.tell_head();
  if (transfer.error) return CURL_WRITEFUNC_ERROR;
  if (transfer.unread) {  // a little is read so that the connection can be used again
    transfer.discarded += size;
    return transfer.discarded <= kMaxDiscardedBytes ? size : CURL_WRITEFUNC_ERROR;
  }
  auto taken = transfer.receiver.body(std::as_bytes(std::span(data, size)));
  if (!taken) transfer.error = std::move(taken).error();
  return taken ? size : CURL_WRITEFUNC_ERROR;
}

/// The one that the curl program would use where a variable names it; "": curl's own.
std::string certificates() {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

Error failure(CURLcode code, const HttpHead& head, const char* detail) {
  const bool begun = code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR ||
                     code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING ||
                     code == CURLE_OPERATION_TIMEDOUT || code == CURLE_HTTP2 ||
                     code == CURLE_HTTP2_STREAM;
  const std::string text =
      fmt::format("{}: {}", head.url.shown(), *detail != '\0' ? detail : curl_easy_strerror(code));
  if (begun) return net_error(kBrokenLink, text);
  const bool lies = code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL ||
                    code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY;
  return net_error(lies ? kLies : kNoConnection, text);
}

}  // namespace

struct Connection::Impl {
  HttpOptions options;
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  std::string ca_file;
  char detail[CURL_ERROR_SIZE] = {};

  ~Impl() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }

  void prepare(const HttpRequest& request, Headers& headers, Transfer& transfer) {
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, request.url.text.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "cyb-llm");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.connect_s));
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_s));
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (!ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file.c_str());
    headers.add("Accept-Encoding: identity");
    if (options.token && request.url.origin() == options.token->origin)
      headers.add("Authorization: Bearer " + options.token->text);
    if (request.range)
      headers.add(fmt::format("Range: bytes={}-{}", request.range->first, request.range->last));
    if (request.range && !request.if_range.empty()) headers.add("If-Range: " + request.if_range);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.list);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    detail[0] = '\0';
  }

  /// Nothing: stopped.
  std::optional<CURLcode> perform(const std::stop_token& stop) {
    int running = 1;
    std::optional<CURLcode> result;
    curl_multi_add_handle(multi, easy);
    while (running != 0 && !stop.stop_requested()) {
      if (curl_multi_perform(multi, &running) != CURLM_OK) break;
      if (running != 0) curl_multi_poll(multi, nullptr, 0, 200, nullptr);
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left))
      if (message->msg == CURLMSG_DONE) result = message->data.result;
    curl_multi_remove_handle(multi, easy);
    if (!result && !stop.stop_requested()) return CURLE_FAILED_INIT;
    return result;
  }

  Result<HttpHead> get_once(const HttpRequest& request, const HttpReceiver& receiver,
                            const std::stop_token& stop) {
    Transfer transfer{.receiver = receiver, .easy = easy, .head = {}, .error = {}};
    transfer.head.url = request.url;
    Headers headers;
    prepare(request, headers, transfer);
    const std::optional<CURLcode> code = perform(stop);
    if (!code) return fail(cancelled(0));
    if (*code == CURLE_OK) transfer.tell_head();
    if (transfer.error) return fail(*std::move(transfer.error));
    if (*code != CURLE_OK && !transfer.unread) return fail(failure(*code, transfer.head, detail));
    return std::move(transfer.head);
  }
};

Result<std::shared_ptr<const Token>> make_token(const Url& url, const std::string& text) {
  if (text.empty()) return std::shared_ptr<const Token>();
  for (const char c : text)
    if (c <= ' ' || c >= '\x7f')
      return fail(invalid_input("the token has a character that no token has"));
  if (!url.is_secure() && !url.is_loopback())
    return fail(
        net_error(kRedirect, fmt::format("{}: a token is not sent over http", url.shown())));
  return std::make_shared<const Token>(Token{text, url.origin()});
}

const std::string& HttpHead::field(const std::string& name) const {
  static const std::string kNone;
  const auto at = fields.find(name);
  return at == fields.end() ? kNone : at->second;
}

std::optional<std::uint64_t> HttpHead::length() const {
  return number(field("content-length"));
}

unsigned HttpHead::retry_after_s() const {
  const auto seconds = number(field("retry-after"));
  if (seconds) return static_cast<unsigned>(std::min<std::uint64_t>(*seconds, kMaxRetryAfterS));
  const time_t date = curl_getdate(field("retry-after").c_str(), nullptr);
  const double wait = date < 0 ? 0 : std::difftime(date, std::time(nullptr));
  return wait <= 0 ? 0 : static_cast<unsigned>(std::min<double>(wait, kMaxRetryAfterS));
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection::~Connection() = default;

Result<Connection> Connection::create(HttpOptions options) {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->easy = curl_easy_init();
  impl->multi = curl_multi_init();
  impl->ca_file = certificates();
  if (kStarted != CURLE_OK || impl->easy == nullptr || impl->multi == nullptr)
    return fail(net_error(kNoConnection, "libcurl cannot start"));
  return Connection(std::move(impl));
}

Result<HttpHead> Connection::get(const HttpRequest& request, const HttpReceiver& receiver,
                                 std::stop_token stop) {
  HttpRequest at = request;
  for (std::uint64_t n = 0; n <= kMaxRedirects; ++n) {
    const auto& origins = impl_->options.origins;
    if (origins && std::ranges::find(*origins, at.url.origin()) == origins->end())
      return fail(net_error(kRedirect, fmt::format("{}: the origin {} is not one of those allowed",
                                                   request.url.shown(), at.url.origin())));
    CYB_ASSIGN(HttpHead head, impl_->get_once(at, receiver, stop));
    const std::string& location = head.field("location");
    if (head.status < 300 || head.status >= 400 || location.empty()) return head;
    CYB_ASSIGN(at.url, resolve_url(at.url, location));
  }
  return fail(net_error(
      kRedirect, fmt::format("{}: more than {} redirects", request.url.shown(), kMaxRedirects)));
}

Result<std::string> get_text(Connection& connection, const Url& url, std::size_t limit_bytes,
                             std::stop_token stop, HttpHead* head_out) {
  std::string text;
  HttpReceiver receiver;
  receiver.head = [](const HttpHead& head) { return Result<bool>(head.status == 200); };
  receiver.body = [&](std::span<const std::byte> bytes) -> Result<void> {
    if (bytes.size() > limit_bytes - text.size())
      return fail(
          net_error(kLies, fmt::format("{}: more than {} bytes", url.shown(), limit_bytes)));
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  };
  CYB_ASSIGN(HttpHead head,
             connection.get({.url = url, .range = {}, .if_range = {}}, receiver, stop));
  if (head.status != 200) return fail(status_error(head));
  if (head_out != nullptr) *head_out = std::move(head);
  return text;
}

Error status_error(const HttpHead& head) {
  std::string_view what = "an error of the server";
  if (head.status == 401 || head.status == 403)
    what =
        "not allowed: it needs a token (--token-file), or its owner's consent; or there is no such "
        "name";
  if (head.status == 404 || head.status == 410) what = "not found";
  if (head.status == 429) what = "too many requests: try again later";
  if (head.status >= 300 && head.status < 400) what = "a redirect to nowhere";
  return net_error(kStatus, fmt::format("{}: the server answers {} ({})", head.url.shown(),
                                        head.status, what))
      .with("status", std::to_string(head.status));
}

bool is_retried_status(unsigned status) noexcept {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

}  // namespace cyb::net
