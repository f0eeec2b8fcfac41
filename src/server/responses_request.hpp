// POST /v1/responses: OpenAI's Responses API to what the scheduler takes.
#pragma once

#include <span>
#include <string>

#include "server/completion_request.hpp"

namespace cyb::server {

struct ResponsesRequest {
  CompletionRequest completion;
  std::string echo;  // members of the response that say what was asked for: "instructions":...
};

std::span<const Field> responses_fields();
/// `text`.
std::span<const Field> responses_text_fields();

/// Errors: 400 with the field ("input[1].content[0].type"), and as read_chat_request().
ApiResult<ResponsesRequest> read_responses_request(const ChatValue& body, const Served& served);

}  // namespace cyb::server
