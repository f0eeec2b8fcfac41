// Parts that the objects of OpenAI's APIs have in common.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/answer_shape.hpp"

namespace cyb::server {

/// [{"token","logprob","bytes","top_logprobs"}] without the brackets.
std::string token_objects(const Tokenizer* tokenizer, std::span<const TokenReport> tokens);

/// Tokens of an answer as the API counts and shows them.
class LogprobsJson {
 public:
  explicit LogprobsJson(const AnswerFrame& frame) : frame_(&frame) {}
  /// The object for `tokens`, which follow those of the call before (text_offset of completions).
  std::string next(std::span<const TokenReport> tokens);

 private:
  std::string completion_object(std::span<const TokenReport> tokens);

  const AnswerFrame* frame_;
  std::uint64_t offset_ = 0;  // characters
};

/// "length", or "stop".
std::string_view reason_text(FinishReason reason) noexcept;
/// {"prompt_tokens", ...} of all choices together; `answers` is not empty.
std::string usage_json(std::span<const Answer> answers);
/// {"seed","model_id","path","backend"}, the frame's recipe, and what was left out of the context,
/// where it was.
std::string recipe_json(const AnswerFrame& frame, const GenerateResult& result);

}  // namespace cyb::server
