// Ollama's /api/chat and /api/generate to what the scheduler takes.
#pragma once

#include <span>

#include "server/completion_request.hpp"

namespace cyb::server {

std::span<const Field> ollama_chat_fields();
std::span<const Field> ollama_generate_fields();
/// `options` of both, an element of `messages`.
std::span<const Field> ollama_option_fields();
std::span<const Field> ollama_message_fields();
/// A call in a message, and its function.
std::span<const Field> ollama_call_fields();
std::span<const Field> ollama_function_fields();
/// POST /api/show.
std::span<const Field> ollama_show_fields();

/// Errors: 400 with the field ("options.top_k"), and as read_chat_request().
ApiResult<CompletionRequest> read_ollama_chat(const Fields& fields, const Served& served);
/// With the model's template around `prompt`, or without with `raw`.
ApiResult<CompletionRequest> read_ollama_generate(const Fields& fields, const Served& served);
/// No prompt, or no messages: the client wants to know that the model is loaded.
bool asks_for_load(const Fields& fields);
/// A name as these clients write it: "NAME:latest" is NAME.
std::string_view ollama_model_name(std::string_view name) noexcept;

}  // namespace cyb::server
