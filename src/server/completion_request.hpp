// A checked body becomes what the scheduler takes: prompt ids and options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/engine.hpp"
#include "runtime/scheduler.hpp"
#include "server/fields.hpp"
#include "text/tools/answer_splitter.hpp"

namespace cyb::server {

class GrammarCache;

/// The model that a server answers with.
struct Served {
  const Engine& engine;
  std::string_view name;  // as clients call it; its id is a name too
  std::uint32_t slots;    // answers that grow at the same time
  GrammarCache* grammars = nullptr;
};

struct CompletionRequest {
  GenerateRequest generate;  // with a seed that is not 0
  bool chat = false, stream = false, include_usage = false, logprobs = false;
  std::string_view prompt_field = "prompt";  // the one that errors of the prompt name
  std::string user;
  SplitOptions split{};          // of a chat: how the answer's text is read
  std::string constraint_key{};  // all that the grammar depends on; empty: none
};

/// Errors: 400 with the field, 404 `model_not_found`, what template and tokenizer say.
ApiResult<CompletionRequest> read_chat_request(const ChatValue& body, const Served& served);
ApiResult<CompletionRequest> read_completion_request(const ChatValue& body, const Served& served);

/// `messages` and `chat_template_kwargs` as a template sees them: contents that are lists of texts
/// become one text. Errors: 400 naming message and member.
ApiResult<ChatInput> read_messages(const Fields& fields, const Engine& engine);
/// 404 where `name` is another model's.
ApiResult<void> check_model_name(std::string_view name, const Served& served);
/// 404 where `model` is given and is another one.
ApiResult<void> check_model(const Fields& fields, const Served& served);
/// What submit() says, with both numbers where the prompt, which `field` gave, is too long.
ApiError submit_error(const Error& error, std::size_t n_prompt, const Served& served,
                      std::string_view field);

}  // namespace cyb::server
