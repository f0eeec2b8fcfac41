// Routing, and the one way out of a request: every answer has an id, a count and a line in the log.
#include "server/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "runtime/sampling.hpp"

namespace cyb::server {
namespace {

constexpr Route kRoutes[] = {
#define CYB_ROUTE(name, method, path, open) {#name, method, path, open, name##_route},
#include "server/route_list.inc"
#undef CYB_ROUTE
};

bool matches(const Route& route, std::string_view path) {
  if (route.path.ends_with('/') && route.path != "/") {
    return path.size() > route.path.size() && path.starts_with(route.path);
  }
  return route.path == path;
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

struct Found {
  const Route* route = nullptr;
  std::string allowed;  // methods, where the path is known and the method is another
};

Found find_route(const http::RequestHead& head) {
  Found out;
  for (const Route& route : kRoutes) {
    if (!matches(route, head.path())) continue;
    if (takes(route, head.method)) {
      out.route = &route;
      return out;
    }
    out.allowed += (out.allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  return out;
}

ApiError nothing_at(const http::RequestHead& head) {
  std::string message = "There is nothing at this path.";
  http::RequestHead below;
  below.method = head.method;
  below.target = "/v1" + head.target;
  if (find_route(below).route != nullptr) {
    message += " The API is below /v1: the base URL of clients ends with it.";
  } else if (head.path().starts_with("/api/")) {
    message += " Of Ollama's API there are chat, generate, show, tags, ps, embed and version.";
  }
  return {404, message, "not_found"};
}

ApiError no_request(unsigned status, std::string_view why) {
  switch (status) {
    case 408:
      return {408, "The request did not come in time.", "request_timeout"};
    case 413:
      return {413, "The body is larger than 10 MiB.", "body_too_large"};
    case 431:
      return {431, "The header is too large.", "header_too_large"};
    case 500:
      return {500, "The server failed to answer this request.", "internal_error"};
    case 503:
      return {503, "The server has too much to do; try again later.", "overloaded"};
    default:
      return {400, std::string(why.empty() ? "This is no HTTP/1.1 request." : why), "bad_request"};
  }
}

}  // namespace

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string fingerprint(const Engine& engine) {
  return "fp_" + hex(blake3(engine.model_id() + " " + engine.numerics())).substr(0, 16);
}

Service::Service(std::unique_ptr<ModelShelf> shelf, ServiceOptions options,
                 http::WorkerPool& workers)
    : options_(std::move(options)),
      workers_(workers),
      access_(options_.access),
      started_(unix_time()),
      id_base_(system_seed()),
      shelf_(std::move(shelf)) {
  if (options_.share_models) registry_ = std::make_unique<Registry>(*shelf_);
  if (options_.puller) pulls_ = std::make_unique<PullDesk>(options_.puller);
}

void Service::end_transfers() {
  if (registry_) registry_->close();
  if (pulls_) pulls_->close();
}

/// The registry itself stays: downloads that end with their connections leave it.
void Service::stop() {
  if (registry_) registry_->stop();
  if (pulls_) pulls_->stop();
  shelf_.reset();
}

std::string Service::new_id(std::string_view prefix) {
  const Digest digest = blake3(fmt::format("{} {}", id_base_, ++last_id_));
  return std::string(prefix) + hex(digest).substr(0, 24);
}

std::optional<http::Response> Service::check_head(const http::RequestHead& head) {
  const Found found = find_route(head);
  std::optional<ApiError> error = access_.check(head, found.route != nullptr && found.route->open);
  // What is not there is said before what its body must be.
  if (found.route == nullptr && (!error || error->status == 415)) {
    error = found.allowed.empty()
                ? nothing_at(head)
                : ApiError{405, "This path takes another method.", "method_not_allowed"};
  }
  if (!error) return std::nullopt;
  http::Response out = error_response(*error, error_shape(head.path()));
  if (error->status == 405) out.headers.push_back({"Allow", found.allowed});
  Call call{nullptr, found.route, new_id("req-")};
  call.peer = head.peer;
  out.headers.push_back({"X-Request-Id", call.id});
  record(call, error->status);
  return out;
}

http::Response Service::refuse(unsigned status, std::string_view why, std::string_view peer) {
  Call call{nullptr, nullptr, new_id("req-")};
  call.peer = peer;
  http::Response out = error_response(no_request(status, why));
  out.headers.push_back({"X-Request-Id", call.id});
  record(call, status);
  return out;
}

void Service::handle(const std::shared_ptr<http::Exchange>& exchange) {
  auto call = std::make_shared<Call>();
  call->exchange = exchange;
  call->id = new_id("req-");
  call->peer = exchange->request().peer;
  call->route = find_route(exchange->request()).route;
  call->key_number = access_.key_number(exchange->request());
  if (call->route == nullptr) return;  // check_head() has refused it
  // A key that was taken back while the body came.
  if (auto error = access_.check_key(exchange->request(), call->route->open)) {
    return respond(*call, *error);
  }
  call->route->handler(*this, call);
}

void Service::respond(Call& call, http::Response response) {
  call.model.reset();
  response.headers.push_back({"X-Request-Id", call.id});
  const unsigned status = response.status;
  call.exchange->respond(std::move(response));
  record(call, status);
}

void Service::respond(Call& call, const ApiError& error) {
  if (!call.stream_begun) {
    return respond(call, error_response(error, error_shape(call.request().path())));
  }
  call.model.reset();
  call.exchange->write(call.stream_error(error));
  call.exchange->end();
  record(call, error.status);
}

void Service::record(const Call& call, unsigned status) {
  const std::string_view name = call.route == nullptr ? "other" : call.route->name;
  metrics_.count_request(name, status);
  if (!options_.log) return;
  std::string line = fmt::format("{} {} {:.0f} ms", name, status, call.seconds() * 1e3);
  if (call.prompt_tokens > 0) {
    line += fmt::format(", {} + {} tokens", call.prompt_tokens, call.answer_tokens);
  }
  if (call.first_token_ms > 0) line += fmt::format(", first after {:.0f} ms", call.first_token_ms);
  if (call.key_number > 0) line += fmt::format(", key {}", call.key_number);
  if (!call.peer.empty()) line += ", from " + call.peer;
  if (!call.user.empty()) line += ", user " + json_quote(call.user.substr(0, 64));
  options_.log(line + ", " + call.id);
}

}  // namespace cyb::server
