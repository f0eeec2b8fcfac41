// ApiError: what a client is told. Fixed texts: no paths, no addresses, nothing
// of a prompt.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "server/http/message.hpp"

namespace cyb::server {

struct ApiError {
  unsigned status = 400;
  std::string message;
  std::string code;     // stable
  std::string param{};  // the field at fault; empty: null
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> refuse(ApiError error) {
  return std::unexpected<ApiError>(std::move(error));
}

/// 400 `invalid_value` of a field.
ApiError bad_value(std::string_view field, std::string_view problem);
/// 400 `unsupported_parameter`: a field that is known and not built.
ApiError unsupported(std::string_view field, std::string_view note);
/// The error of field `from`, or of what is inside it, said of field `to`.
ApiError renamed(ApiError error, std::string_view from, std::string_view to);
/// What an Error of the layers below means to a client.
ApiError api_error(const Error& error);
/// How a body says it: OpenAI's {"error":{"message","type","param","code"}}, or Ollama's {"error":
/// message} with our "code" and "param" beside it.
enum class ErrorShape : std::uint8_t { kOpenAi, kOllama };
/// That of the clients of this path.
ErrorShape error_shape(std::string_view path) noexcept;
std::string error_json(const ApiError& error, ErrorShape shape = ErrorShape::kOpenAi);
/// With Retry-After where coming back later helps.
http::Response error_response(const ApiError& error, ErrorShape shape = ErrorShape::kOpenAi);

}  // namespace cyb::server

/// As CYB_TRY and CYB_ASSIGN, for ApiResult.
#define CYB_API_TRY(expr)                                          \
  do {                                                             \
    if (auto cyb_result = (expr); !cyb_result) {                   \
      return ::cyb::server::refuse(std::move(cyb_result).error()); \
    }                                                              \
  } while (false)
#define CYB_API_ASSIGN(decl, expr) CYB_API_ASSIGN_INNER(CYB_API_NAME(__LINE__), decl, expr)
#define CYB_API_NAME(line) CYB_API_JOIN(cyb_api_result_, line)
#define CYB_API_JOIN(a, b) a##b
#define CYB_API_ASSIGN_INNER(tmp, decl, expr)                     \
  auto tmp = (expr);                                              \
  if (!tmp) return ::cyb::server::refuse(std::move(tmp).error()); \
  decl = *std::move(tmp)
