// A request of another API, said as the chat request that means the same: one reader of messages,
// sampling and constraints serves them all.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "server/completion_request.hpp"

namespace cyb::server {

class TranslatedRequest {
 public:
  /// The chat field `name`, which stands for the client's `own`.
  void set(std::string_view name, std::string_view own, ChatValue value);
  /// The client's field as the chat field `name`, where it is given. `where` ("options.") stands
  /// before the client's name in errors.
  void copy(const Fields& from, std::string_view own, std::string_view name,
            std::string_view where = {});
  void copy(const Fields& from, std::string_view name) { copy(from, name, name); }

  /// Errors: as read_chat_request() and read_completion_request(), with the client's names.
  ApiResult<CompletionRequest> read_chat(const Served& served) const;
  ApiResult<CompletionRequest> read_completion(const Served& served) const;

 private:
  ApiResult<CompletionRequest> named(ApiResult<CompletionRequest> result) const;

  ChatValue body_ = ChatValue::object();
  std::vector<std::pair<std::string, std::string>> names_;  // chat's, the client's
};

/// An object of a message: {"role", "content"}.
ChatValue plain_message(std::string_view role, ChatValue content);

}  // namespace cyb::server
