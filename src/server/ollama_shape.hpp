// The shapes of Ollama's /api/chat and /api/generate: an object, or one object a line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/answer_shape.hpp"

namespace cyb::server {

/// `chat`: of /api/chat, else of /api/generate. Durations count from now on.
std::unique_ptr<AnswerShape> ollama_shape(AnswerFrame frame, bool chat);

/// The answer to a request without a prompt. `reason`: "load" or "unload".
std::string ollama_loaded(std::string_view model, bool chat, std::string_view reason);

/// "2025-01-31T12:00:00Z".
std::string rfc3339(std::int64_t unix_seconds);

}  // namespace cyb::server
