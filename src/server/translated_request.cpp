// The client's table has checked types and ranges before; chat's own checks come on top.
#include "server/translated_request.hpp"

namespace cyb::server {

void TranslatedRequest::set(std::string_view name, std::string_view own, ChatValue value) {
  body_.members.emplace_back(name, std::move(value));
  names_.emplace_back(name, own);
}

void TranslatedRequest::copy(const Fields& from, std::string_view own, std::string_view name,
                             std::string_view where) {
  if (const ChatValue* value = from.find(own)) {
    set(name, std::string(where) + std::string(own), *value);
  }
}

ApiResult<CompletionRequest> TranslatedRequest::named(ApiResult<CompletionRequest> result) const {
  if (result) return result;
  for (const auto& [name, own] : names_) {
    ApiError error = renamed(result.error(), name, own);
    if (error.param != result.error().param) return refuse(std::move(error));
  }
  return result;
}

ApiResult<CompletionRequest> TranslatedRequest::read_chat(const Served& served) const {
  return named(read_chat_request(body_, served));
}

ApiResult<CompletionRequest> TranslatedRequest::read_completion(const Served& served) const {
  return named(read_completion_request(body_, served));
}

ChatValue plain_message(std::string_view role, ChatValue content) {
  ChatValue out = ChatValue::object();
  out.members.emplace_back("role", ChatValue::of(role));
  out.members.emplace_back("content", std::move(content));
  return out;
}

}  // namespace cyb::server
