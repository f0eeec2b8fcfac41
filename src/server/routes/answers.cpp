// POST /v1/chat/completions, /v1/completions and /v1/responses.
#include "server/answer_job.hpp"
#include "server/completion_fields.hpp"
#include "server/model_wait.hpp"
#include "server/openai_shape.hpp"
#include "server/responses_request.hpp"
#include "server/responses_shape.hpp"

namespace cyb::server {
namespace {

using Reader = ApiResult<CompletionRequest> (*)(const ChatValue&, const Served&);
using Go = void (*)(Service&, const std::shared_ptr<Call>&, const ChatValue&, Reader);

/// Goes on with `go` when the model that the body names is there.
void answer(Service& service, const std::shared_ptr<Call>& call, FieldTable table, Reader read,
            Go go) {
  auto parsed = parse_body(call->request().body);
  if (!parsed) return service.respond(*call, parsed.error());
  const auto body = std::make_shared<const ChatValue>(*std::move(parsed));
  // What is wrong must not cost a load.
  const auto fields = check_fields(*body, table());
  if (!fields) return service.respond(*call, fields.error());
  if (fields->is_true("stream")) {
    call->stream_error = [](const ApiError& error) { return openai_shape({})->error(error); };
  }
  with_model(service, call, fields->text("model").value_or(""), {},
             [&service, call, body, read, go] { go(service, call, *body, read); });
}

void complete(Service& service, const std::shared_ptr<Call>& call, const ChatValue& body,
              Reader read) {
  auto request = read(body, service.served(*call));
  if (!request) return service.respond(*call, request.error());
  auto shape =
      openai_shape(answer_frame(service, *call, *request, request->chat ? "chatcmpl-" : "cmpl-"));
  start_answer(service, call, *std::move(request), std::move(shape));
}

void respond_to(Service& service, const std::shared_ptr<Call>& call, const ChatValue& body,
                Reader) {
  auto request = read_responses_request(body, service.served(*call));
  if (!request) return service.respond(*call, request.error());
  auto shape =
      responses_shape(answer_frame(service, *call, request->completion, "resp_"), request->echo);
  start_answer(service, call, std::move(request->completion), std::move(shape));
}

}  // namespace

void chat_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, chat_fields, read_chat_request, complete);
}

void completions_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, completion_fields, read_completion_request, complete);
}

void responses_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, responses_fields, nullptr, respond_to);
}

}  // namespace cyb::server
