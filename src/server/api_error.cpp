// One place decides which status and code a failure has.
#include "server/api_error.hpp"

#include <fmt/format.h>

#include "base/json_text.hpp"

namespace cyb::server {
namespace {

std::string_view type_of(unsigned status) noexcept {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

ApiError busy_error(const Error& error) {
  const std::string& text = error.message();
  if (text.starts_with("tenant")) {
    return {429, "This key has too many requests open; try again later.", "too_many_requests"};
  }
  if (text.starts_with("shutdown")) {
    return {503, "The server is shutting down.", "shutting_down"};
  }
  return {503, "The queue is full; try again later.", "queue_full"};
}

}  // namespace

ApiError bad_value(std::string_view field, std::string_view problem) {
  return {400, fmt::format("'{}' {}.", field, problem), "invalid_value", std::string(field)};
}

ApiError unsupported(std::string_view field, std::string_view note) {
  return {400, fmt::format("'{}' is not supported{}{}.", field, note.empty() ? "" : ": ", note),
          "unsupported_parameter", std::string(field)};
}

ApiError renamed(ApiError error, std::string_view from, std::string_view to) {
  if (!error.param.starts_with(from)) return error;
  const std::string_view rest = std::string_view(error.param).substr(from.size());
  if (!rest.empty() && rest.front() != '.' && rest.front() != '[') return error;
  std::string name = std::string(to) + std::string(rest);
  const std::string quoted = "'" + error.param + "'";
  if (const auto at = error.message.find(quoted); at != std::string::npos) {
    error.message.replace(at, quoted.size(), "'" + name + "'");
  }
  error.param = std::move(name);
  return error;
}

ApiError api_error(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kBusy:
      return busy_error(error);
    case ErrorKind::kContextOverflow:
      return {400, error.message(), "context_length_exceeded", "messages"};
    case ErrorKind::kTemplate:
      return {400, error.message(),
              error.code() == "no_chat_template" ? "no_chat_template" : "template_error",
              "messages"};
    case ErrorKind::kTokenizer:
      return {400, error.message(), "tokenizer_error"};
    case ErrorKind::kInvalidInput:
    case ErrorKind::kInvalidConfig:
      return {400, error.message(), "invalid_value"};
    case ErrorKind::kOutOfMemory:
      return {503, "Memory is short; try again later.", "out_of_memory"};
    case ErrorKind::kCancelled:
      return {503, "The request was cancelled.", "cancelled"};
    case ErrorKind::kNotBuilt:
      return {501, "This is not built.", "not_built"};
    default:
      return {500, "The server failed to answer this request.", "internal_error"};
  }
}

ErrorShape error_shape(std::string_view path) noexcept {
  return path.starts_with("/api/") ? ErrorShape::kOllama : ErrorShape::kOpenAi;
}

std::string error_json(const ApiError& error, ErrorShape shape) {
  const std::string param = error.param.empty() ? "null" : json_quote(error.param);
  if (shape == ErrorShape::kOllama) {
    return fmt::format(R"({{"error":{},"code":{},"param":{}}})", json_quote(error.message),
                       json_quote(error.code), param);
  }
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})",
                     json_quote(error.message), type_of(error.status), param,
                     json_quote(error.code));
}

http::Response error_response(const ApiError& error, ErrorShape shape) {
  http::Response out{error.status, "application/json", error_json(error, shape)};
  if (error.status == 429 || error.status == 503) out.headers.push_back({"Retry-After", "1"});
  if (error.status == 401) out.headers.push_back({"WWW-Authenticate", "Bearer"});
  return out;
}

}  // namespace cyb::server
