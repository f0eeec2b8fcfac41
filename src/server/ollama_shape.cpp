// Calls of tools are one object each there: their pieces are kept until the choice is over.
#include "server/ollama_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.hpp"
#include "server/openai_json.hpp"
#include "server/service.hpp"

namespace cyb::server {
namespace {

std::int64_t nanoseconds(double ms) noexcept {
  return std::isfinite(ms) && ms > 0 ? static_cast<std::int64_t>(ms * 1e6) : 0;
}

/// A call that was cut off has no whole object to show: it is left out, done_reason says "length".
std::string calls_json(std::span<const ToolCall> calls) {
  std::string out;
  for (const ToolCall& call : calls) {
    if (!call.arguments.empty() && !nlohmann::json::accept(call.arguments)) continue;
    out += fmt::format(R"({}{{"function":{{"name":{},"arguments":{}}}}})", out.empty() ? "" : ",",
                       json_quote(call.name), call.arguments.empty() ? "{}" : call.arguments);
  }
  return out;
}

class OllamaShape final : public AnswerShape {
 public:
  OllamaShape(AnswerFrame frame, bool chat) : frame_(std::move(frame)), chat_(chat) {}

  std::string whole(std::span<const Answer> answers) override {
    const Answer& answer = answers.front();
    return head(answer.content, answer.reasoning, answer.tool_calls) +
           logprobs(answer.result->logprobs) + last_members(*answer.result) + "}";
  }

  std::string_view stream_type() const noexcept override { return "application/x-ndjson"; }
  std::string begin() override { return {}; }

  std::string piece(const AnswerPiece& piece) override {
    for (const ToolCallPiece& call : piece.tool_calls) {
      if (call.index >= calls_.size()) {
        calls_.push_back({std::string(call.id), std::string(call.name), {}});
      }
      calls_.back().arguments += call.arguments;
    }
    if (piece.content.empty() && piece.reasoning.empty() && piece.tokens.empty()) return {};
    return head(piece.content, piece.reasoning, {}) + logprobs(piece.tokens) + ",\"done\":false}\n";
  }

  std::string finish(const ChoiceEnd&) override {
    return calls_.empty() ? "" : head("", "", calls_) + ",\"done\":false}\n";
  }

  std::string end(std::span<const Answer> answers) override {
    return head("", "", {}) + last_members(*answers.front().result) + "}\n";
  }

  std::string error(const ApiError& error) override {
    return error_json(error, ErrorShape::kOllama) + "\n";
  }

 private:
  std::string head(std::string_view content, std::string_view reasoning,
                   std::span<const ToolCall> calls) const {
    std::string out = fmt::format(R"({{"model":{},"created_at":"{}",)", json_quote(frame_.model),
                                  rfc3339(unix_time()));
    out += chat_ ? R"("message":{"role":"assistant","content":)" : R"("response":)";
    out += json_quote(content);
    if (!reasoning.empty()) out += R"(,"thinking":)" + json_quote(reasoning);
    const std::string shown = calls_json(calls);
    if (!shown.empty()) out += R"(,"tool_calls":[)" + shown + "]";
    return chat_ ? out + "}" : out;
  }

  std::string logprobs(std::span<const TokenReport> tokens) const {
    if (!frame_.logprobs || tokens.empty()) return {};
    return R"(,"logprobs":[)" + token_objects(frame_.tokenizer, tokens) + "]";
  }

  std::string last_members(const GenerateResult& result) const {
    const double total = std::chrono::duration<double, std::milli>(Clock::now() - began_).count();
    const auto n_tokens = result.tokens.size();
    // The first token comes with the prompt.
    const double eval_ms =
        result.timings.token_ms_mean * static_cast<double>(std::max<std::size_t>(n_tokens, 1) - 1);
    return fmt::format(
        R"(,"done":true,"done_reason":"{}","total_duration":{},"load_duration":0,"prompt_eval_count":{},"prompt_eval_duration":{},"eval_count":{},"eval_duration":{},"cyb_llm":{})",
        reason_text(result.finish_reason), nanoseconds(total), result.prompt_tokens,
        nanoseconds(result.timings.prefill_ms), n_tokens, nanoseconds(eval_ms),
        recipe_json(frame_, result));
  }

  using Clock = std::chrono::steady_clock;

  AnswerFrame frame_;
  bool chat_;
  Clock::time_point began_ = Clock::now();
  std::vector<ToolCall> calls_;
};

}  // namespace

std::unique_ptr<AnswerShape> ollama_shape(AnswerFrame frame, bool chat) {
  return std::make_unique<OllamaShape>(std::move(frame), chat);
}

std::string ollama_loaded(std::string_view model, bool chat, std::string_view reason) {
  return fmt::format(R"({{"model":{},"created_at":"{}",{},"done":true,"done_reason":"{}"}})",
                     json_quote(model), rfc3339(unix_time()),
                     chat ? R"("message":{"role":"assistant","content":""})" : R"("response":"")",
                     reason);
}

std::string rfc3339(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace cyb::server
