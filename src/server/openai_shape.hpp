// The shapes of OpenAI's chat and completion API: objects, and chunks as server-sent events.
#pragma once

#include <memory>

#include "server/answer_shape.hpp"

namespace cyb::server {

/// By `frame.chat` one or the other.
std::unique_ptr<AnswerShape> openai_shape(AnswerFrame frame);

}  // namespace cyb::server
