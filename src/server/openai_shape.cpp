// Written by hand: a chunk is made for every token of every stream.
#include "server/openai_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_text.hpp"
#include "server/openai_json.hpp"

namespace cyb::server {
namespace {

std::string event(const std::string& json) {
  return "data: " + json + "\n\n";
}

class OpenAiShape final : public AnswerShape {
 public:
  explicit OpenAiShape(AnswerFrame frame) : frame_(std::move(frame)) {
    choices_.resize(frame_.n_choices, Choice{LogprobsJson(frame_)});
  }

  std::string whole(std::span<const Answer> answers) override {
    std::string out = head(frame_.chat ? "chat.completion" : "text_completion");
    for (const Answer& answer : answers) {
      if (&answer != answers.data()) out += ',';
      out += choice_json(answer);
    }
    return out + R"(],"usage":)" + usage_json(answers) + R"(,"cyb_llm":)" +
           recipe_json(frame_, *answers.front().result) + "}";
  }

  std::string_view stream_type() const noexcept override { return "text/event-stream"; }
  std::string begin() override { return {}; }

  std::string piece(const AnswerPiece& piece) override {
    Choice& choice = choices_[std::min<std::size_t>(piece.index, choices_.size() - 1)];
    std::string out;
    if (frame_.chat && !choice.begun) {
      out = chunk(piece.index, R"("delta":{"role":"assistant","content":""})", "null");
    }
    choice.begun = true;
    if (piece.empty()) return out;
    const std::string logprobs = frame_.logprobs ? choice.logprobs.next(piece.tokens) : "null";
    const std::string member = frame_.chat ? R"("delta":{)" + delta_json(piece) + "}"
                                           : R"("text":)" + json_quote(piece.content);
    return out + chunk(piece.index, member, logprobs);
  }

  /// The last one of all carries the recipe, which comes with the end.
  std::string finish(const ChoiceEnd& end) override {
    if (++n_over_ < choices_.size()) return finish_chunk(end, {});
    last_ = end;
    return {};
  }

  std::string end(std::span<const Answer> answers) override {
    std::string out = finish_chunk(last_, recipe_json(frame_, *answers.front().result));
    if (frame_.usage_wanted) {
      out += event(head(object()) + R"(],"usage":)" + usage_json(answers) + "}");
    }
    return out + "data: [DONE]\n\n";
  }

  /// Without [DONE] after it.
  std::string error(const ApiError& error) override { return event(error_json(error)); }

 private:
  struct Choice {
    LogprobsJson logprobs;
    bool begun = false;
  };

  std::string_view object() const noexcept {
    return frame_.chat ? "chat.completion.chunk" : "text_completion";
  }

  std::string head(std::string_view object) const {
    return fmt::format(
        R"({{"id":{},"object":"{}","created":{},"model":{},"system_fingerprint":"{}","choices":[)",
        json_quote(frame_.id), object, frame_.created, json_quote(frame_.model),
        frame_.fingerprint);
  }

  std::string tail(const std::string& recipe) const {
    return fmt::format("]{}{}{}}}", frame_.usage_wanted ? R"(,"usage":null)" : "",
                       recipe.empty() ? "" : R"(,"cyb_llm":)", recipe);
  }

  static std::string delta_json(const AnswerPiece& piece) {
    std::string out;
    if (!piece.reasoning.empty()) out = R"("reasoning_content":)" + json_quote(piece.reasoning);
    if (!piece.content.empty() || (out.empty() && piece.tool_calls.empty())) {
      out += (out.empty() ? "" : ",") + (R"("content":)" + json_quote(piece.content));
    }
    if (piece.tool_calls.empty()) return out;
    out += (out.empty() ? "" : ",") + std::string(R"("tool_calls":[)");
    for (const ToolCallPiece& call : piece.tool_calls) {
      if (&call != piece.tool_calls.data()) out += ',';
      out += fmt::format(R"({{"index":{},)", call.index);
      if (!call.id.empty()) {
        out += fmt::format(R"("id":{},"type":"function","function":{{"name":{},"arguments":{}}}}})",
                           json_quote(call.id), json_quote(call.name), json_quote(call.arguments));
      } else {
        out += fmt::format(R"("function":{{"arguments":{}}}}})", json_quote(call.arguments));
      }
    }
    return out + "]";
  }

  static std::string message_json(const Answer& answer) {
    const bool none = answer.content.empty() && !answer.tool_calls.empty();
    std::string out = R"({"role":"assistant","content":)" +
                      (none ? std::string("null") : json_quote(answer.content));
    if (!answer.reasoning.empty()) {
      out += R"(,"reasoning_content":)" + json_quote(answer.reasoning);
    }
    for (const ToolCall& call : answer.tool_calls) {
      out += &call == answer.tool_calls.data() ? R"(,"tool_calls":[)" : ",";
      out += fmt::format(R"({{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}})",
                         json_quote(call.id), json_quote(call.name), json_quote(call.arguments));
    }
    return out + (answer.tool_calls.empty() ? "" : "]") + R"(,"refusal":null})";
  }

  static std::string_view end_text(FinishReason reason, bool calls) noexcept {
    return calls && reason == FinishReason::kStop ? "tool_calls" : reason_text(reason);
  }

  std::string choice_json(const Answer& answer) const {
    const std::string logprobs =
        frame_.logprobs ? LogprobsJson(frame_).next(answer.result->logprobs) : "null";
    return fmt::format(
        R"({{"index":{},{},"logprobs":{},"finish_reason":"{}"}})", answer.result->index,
        frame_.chat ? R"("message":)" + message_json(answer)
                    : R"("text":)" + json_quote(answer.content),
        logprobs, end_text(answer.result->finish_reason, !answer.tool_calls.empty()));
  }

  /// `member`: "delta" or "text" with its value.
  std::string chunk(std::uint32_t index, const std::string& member,
                    const std::string& logprobs) const {
    return event(head(object()) +
                 fmt::format(R"({{"index":{},{},"logprobs":{},"finish_reason":null}})", index,
                             member, logprobs) +
                 tail({}));
  }

  std::string finish_chunk(const ChoiceEnd& end, const std::string& recipe) const {
    return event(head(object()) +
                 fmt::format(R"({{"index":{},{},"logprobs":null,"finish_reason":"{}"}})", end.index,
                             frame_.chat ? R"("delta":{})" : R"("text":"")",
                             end_text(end.reason, end.tool_calls)) +
                 tail(recipe));
  }

  AnswerFrame frame_;
  std::vector<Choice> choices_;
  std::size_t n_over_ = 0;
  ChoiceEnd last_;
};

}  // namespace

std::unique_ptr<AnswerShape> openai_shape(AnswerFrame frame) {
  return std::make_unique<OpenAiShape>(std::move(frame));
}

}  // namespace cyb::server
