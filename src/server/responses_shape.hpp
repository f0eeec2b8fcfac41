// The shape of OpenAI's Responses API: one response object of items, and a stream of named,
// numbered server-sent events that builds it.
#pragma once

#include <memory>
#include <string>

#include "server/answer_shape.hpp"

namespace cyb::server {

/// `echo`: ResponsesRequest::echo.
std::unique_ptr<AnswerShape> responses_shape(AnswerFrame frame, std::string echo);

}  // namespace cyb::server
