// RequestRecipe: what decides the bits of an answer, as every answer names it, and one hash of all
// of it. docs/http-api.md defines the text that is hashed. Neither holds text of the prompt.
#pragma once

#include <string>

#include "server/completion_request.hpp"

namespace cyb::server {

/// The text that the hash is of. `request` has its seed (read_chat_request() and the like).
/// Errors: as Scheduler::submit() for values of samplers.
Result<std::string> canonical_request(const Engine& engine, const CompletionRequest& request);

/// Members of `cyb_llm` that are known before the answer, without braces: "request_hash",
/// "numerics", "kv", "context_tokens", "template", "sampler". Empty where submit() will refuse the
/// request.
std::string request_recipe(const Engine& engine, const CompletionRequest& request);

}  // namespace cyb::server
