// AnswerJob: one request of the scheduler on its way out, streamed or whole.
#pragma once

#include <memory>

#include "server/completion_request.hpp"
#include "server/service.hpp"

namespace cyb::server {

/// Submits the request and answers `call`, now or as the answer grows. A client that goes away
/// cancels it.
void start_answer(Service& service, const std::shared_ptr<Call>& call, CompletionRequest request);

}  // namespace cyb::server
