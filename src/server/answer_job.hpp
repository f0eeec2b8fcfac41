// AnswerJob: one request of the scheduler on its way out, streamed or whole.
#pragma once

#include <memory>

#include "server/answer_shape.hpp"
#include "server/completion_request.hpp"
#include "server/service.hpp"

namespace cyb::server {

/// Submits the request to the model of the call and answers `call` in the shape, now or as the answer grows. A client that
/// goes away cancels it.
void start_answer(Service& service, const std::shared_ptr<Call>& call, CompletionRequest request,
                  std::unique_ptr<AnswerShape> shape);

/// Of an answer to `request`; its id begins with `id_prefix`.
AnswerFrame answer_frame(Service& service, const Call& call, const CompletionRequest& request,
                         std::string_view id_prefix);

}  // namespace cyb::server
