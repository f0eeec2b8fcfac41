// AnswerShape: what an answer looks like in one API, whole and as a stream, with the framing of the
// stream's events. The answer job drives it; it knows neither the scheduler nor the connection.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/generation.hpp"
#include "server/api_error.hpp"

namespace cyb {
class Tokenizer;
}

namespace cyb::server {

/// What all objects of one request share.
struct AnswerFrame {
  bool chat = false;
  std::string id{}, model{}, fingerprint{};
  std::string recipe{};         // members of `cyb_llm` that are the request's
  std::int64_t created = 0;     // seconds since 1970
  std::uint32_t n_choices = 1;  // answers of the request
  bool usage_wanted = false;    // a stream ends with the numbers of tokens
  bool logprobs = false;
  const Tokenizer* tokenizer = nullptr;  // may be null
};

/// What a tool call has grown by. The first piece of an index has id and name; all arguments
/// together are one JSON text.
struct ToolCallPiece {
  std::uint32_t index = 0;  // within the choice
  std::string_view id{}, name{}, arguments{};
};

/// What a choice has grown by; all of it may be empty while text is held back.
struct AnswerPiece {
  std::uint32_t index = 0;  // the choice
  std::string_view content{}, reasoning{};
  std::span<const ToolCallPiece> tool_calls{};
  std::span<const TokenReport> tokens{};  // where log-probabilities are asked for
  bool empty() const noexcept {
    return content.empty() && reasoning.empty() && tool_calls.empty() && tokens.empty();
  }
};

struct ChoiceEnd {
  std::uint32_t index = 0;
  FinishReason reason = FinishReason::kStop;
  bool tool_calls = false;  // the choice ended with calls
};

struct ToolCall {
  std::string id, name, arguments;  // arguments: a JSON text
};

/// A choice that is over, as a whole. `result` has tokens, timings, log-probabilities.
struct Answer {
  const GenerateResult* result = nullptr;
  std::string content{}, reasoning{};
  std::vector<ToolCall> tool_calls{};
};

/// Made for one request. Never called from two threads at once. Every text is bytes of the body:
/// whole events; empty where there is nothing to say yet.
class AnswerShape {
 public:
  virtual ~AnswerShape() = default;

  /// The body of an answer that is not streamed. `answers`: all choices, in order.
  virtual std::string whole(std::span<const Answer> answers) = 0;

  virtual std::string_view stream_type() const noexcept = 0;  // Content-Type
  /// Comes before the first piece.
  virtual std::string begin() = 0;
  virtual std::string piece(const AnswerPiece& piece) = 0;
  /// Nothing follows for this choice.
  virtual std::string finish(const ChoiceEnd& end) = 0;
  /// After the finish of every choice: the end of the stream.
  virtual std::string end(std::span<const Answer> answers) = 0;
  /// The last event of a stream that fails in the middle.
  virtual std::string error(const ApiError& error) = 0;
};

}  // namespace cyb::server
