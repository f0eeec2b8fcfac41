// Waiting for a model: a call goes on when its model is loaded. No thread waits meanwhile; a client
// that goes away stops waiting.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/fields.hpp"
#include "server/service.hpp"

namespace cyb::server {

/// The model of that name or content id; "": the first. Errors: 404 `model_not_found`.
ApiResult<std::size_t> find_model(Service& service, std::string_view name);
/// What a shelf's Error means to a client: the details of a failed load stay in the log.
ApiError shelf_error(const Error& error);
/// Seconds, or a text as "5m" or "1h30m"; negative: for ever. Errors: 400 of `keep_alive`.
ApiResult<std::optional<KeepAlive>> read_keep_alive(const Fields& fields);
/// The same of a text; nullopt for what is none.
std::optional<KeepAlive> parse_keep_alive(std::string_view text);

/// Runs `ready` with call->model: now where the model is loaded, else on a worker once it is. An
/// error is answered. Where the call has a stream_error, comments are streamed while it waits.
void with_model(Service& service, const std::shared_ptr<Call>& call, std::size_t model,
                std::optional<KeepAlive> keep, std::function<void()> ready);
/// find_model(), then with_model().
void with_model(Service& service, const std::shared_ptr<Call>& call, std::string_view name,
                std::optional<KeepAlive> keep, std::function<void()> ready);
/// Runs `done` on a worker once nobody uses the model any more and it is unloaded. An error is
/// answered.
void without_model(Service& service, const std::shared_ptr<Call>& call, std::size_t model,
                   std::function<void()> done);

/// The head and the first of a stream; where the head is out already, the first alone.
void begin_stream(Call& call, std::string_view type, std::string text);

}  // namespace cyb::server
