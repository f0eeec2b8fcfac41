// POST /v1/chat/completions, /v1/completions and /v1/responses.
#include "server/answer_job.hpp"
#include "server/openai_shape.hpp"
#include "server/responses_request.hpp"
#include "server/responses_shape.hpp"

namespace cyb::server {
namespace {

using Reader = ApiResult<CompletionRequest> (*)(const ChatValue&, const Served&);

void answer(Service& service, const std::shared_ptr<Call>& call, Reader read) {
  const auto body = parse_body(call->request().body);
  if (!body) return service.respond(*call, body.error());
  auto request = read(*body, service.served());
  if (!request) return service.respond(*call, request.error());
  auto shape = openai_shape(answer_frame(service, *request, request->chat ? "chatcmpl-" : "cmpl-"));
  start_answer(service, call, *std::move(request), std::move(shape));
}

}  // namespace

void chat_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, read_chat_request);
}

void completions_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, read_completion_request);
}

void responses_route(Service& service, const std::shared_ptr<Call>& call) {
  const auto body = parse_body(call->request().body);
  if (!body) return service.respond(*call, body.error());
  auto request = read_responses_request(*body, service.served());
  if (!request) return service.respond(*call, request.error());
  auto shape =
      responses_shape(answer_frame(service, request->completion, "resp_"), request->echo);
  start_answer(service, call, std::move(request->completion), std::move(shape));
}

}  // namespace cyb::server
