// Answers in the shapes of OpenAI's chat and completion API, whole and in chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/generation.hpp"

namespace cyb {
class Tokenizer;
}

namespace cyb::server {

/// What all objects of one request share.
struct AnswerFrame {
  bool chat = false;
  std::string id, model, fingerprint;
  std::int64_t created = 0;    // seconds since 1970
  bool usage_to_come = false;  // chunks say "usage": null
  bool logprobs = false;
  const Tokenizer* tokenizer = nullptr;  // may be null
};

/// Tokens of an answer as the API counts and shows them.
class LogprobsJson {
 public:
  explicit LogprobsJson(const AnswerFrame& frame) : frame_(&frame) {}
  /// The object for `tokens`, which follow those of the call before (text_offset of completions).
  std::string next(std::span<const TokenReport> tokens);

 private:
  std::string chat_object(std::span<const TokenReport> tokens) const;
  std::string completion_object(std::span<const TokenReport> tokens);

  const AnswerFrame* frame_;
  std::uint64_t offset_ = 0;  // characters
};

/// The body of an answer that is not streamed. `results` is not empty.
std::string answer_object(const AnswerFrame& frame, std::span<const GenerateResult> results);

/// Chunks: JSON objects. `logprobs`: of LogprobsJson::next(), or empty.
std::string role_chunk(const AnswerFrame& frame, std::uint32_t index);
std::string text_chunk(const AnswerFrame& frame, std::uint32_t index, std::string_view text,
                       const std::string& logprobs);
/// `recipe`: of recipe_json(), in the last one of a request, or empty.
std::string finish_chunk(const AnswerFrame& frame, std::uint32_t index, FinishReason reason,
                         const std::string& recipe);
std::string usage_chunk(const AnswerFrame& frame, std::span<const GenerateResult> results);

/// {"seed","model_id","path","backend"} and what was left out of the context, where it was.
std::string recipe_json(const GenerateResult& result);

}  // namespace cyb::server
