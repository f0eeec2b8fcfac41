// An answer is a list of items: reasoning, a message, calls. At most one is open; it ends where
// another one begins or the answer is over. The whole answer is what the stream's pieces build.
#include "server/responses_shape.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/json_text.hpp"
#include "server/openai_json.hpp"
#include "server/service.hpp"

namespace cyb::server {
namespace {

enum class ItemKind : std::uint8_t { kNone, kReasoning, kMessage, kCall };

struct Item {
  ItemKind kind = ItemKind::kNone;
  std::string id, text{};         // text: of a call, its arguments
  std::string logprobs{};         // objects, without brackets
  std::string call_id{}, name{};  // of a call
  std::uint32_t call_index = 0;
};

std::string joined(std::string list, const std::string& more) {
  if (!list.empty() && !more.empty()) list += ',';
  return list += more;
}

std::string part_json(const Item& item) {
  if (item.kind == ItemKind::kReasoning) {
    return R"({"type":"reasoning_text","text":)" + json_quote(item.text) + "}";
  }
  return R"({"type":"output_text","annotations":[],"logprobs":[)" + item.logprobs + R"(],"text":)" +
         json_quote(item.text) + "}";
}

/// `with_part`: false while the item has none yet.
std::string item_json(const Item& item, std::string_view status, bool with_part) {
  const std::string head = fmt::format(R"({{"id":{},"status":"{}",)", json_quote(item.id), status);
  const std::string content = with_part ? part_json(item) : "";
  switch (item.kind) {
    case ItemKind::kReasoning:
      return head + R"("type":"reasoning","summary":[],"content":[)" + content + "]}";
    case ItemKind::kCall:
      return head + fmt::format(R"("type":"function_call","call_id":{},"name":{},"arguments":{}}})",
                                json_quote(item.call_id), json_quote(item.name),
                                json_quote(item.text));
    default:
      return head + R"("type":"message","role":"assistant","content":[)" + content + "]}";
  }
}

class ResponsesShape final : public AnswerShape {
 public:
  ResponsesShape(AnswerFrame frame, std::string echo)
      : frame_(std::move(frame)), echo_(std::move(echo)) {}

  std::string whole(std::span<const Answer> answers) override {
    const Answer& answer = answers.front();
    // Where the answer has no message, its tokens are those of reasoning and calls.
    const bool message = !answer.content.empty() || answer.tool_calls.empty();
    piece({.content = answer.content,
           .reasoning = answer.reasoning,
           .tokens = message ? answer.result->logprobs : std::span<const TokenReport>()});
    std::uint32_t index = 0;
    for (const ToolCall& call : answer.tool_calls) {
      const ToolCallPiece whole{index++, call.id, call.name, call.arguments};
      piece({.tool_calls = {&whole, 1}});
    }
    finish({.reason = answer.result->finish_reason});
    return response(answers);
  }

  std::string_view stream_type() const noexcept override { return "text/event-stream"; }

  std::string begin() override {
    const std::string object = R"("response":)" + response("in_progress", "null", "");
    std::string out = event("response.created", object);
    return out += event("response.in_progress", object);
  }

  std::string piece(const AnswerPiece& piece) override {
    std::string out;
    if (!piece.reasoning.empty()) {
      out += open(ItemKind::kReasoning);
      out += text_delta("response.reasoning_text.delta", piece.reasoning, "");
    }
    // Tokens without text end no other item: they are those of reasoning or of a call, or wait for
    // the item that begins with them.
    const bool other = !piece.reasoning.empty() || !piece.tool_calls.empty() ||
                       open_.kind == ItemKind::kReasoning || open_.kind == ItemKind::kCall;
    std::string logprobs = frame_.logprobs ? token_objects(frame_.tokenizer, piece.tokens) : "";
    if (!piece.content.empty() || (!logprobs.empty() && open_.kind == ItemKind::kMessage)) {
      out += open(ItemKind::kMessage);
      out += text_delta("response.output_text.delta", piece.content,
                        joined(std::exchange(waiting_, {}), logprobs));
    } else if (other) {
      waiting_.clear();
    } else {
      waiting_ = joined(std::move(waiting_), logprobs);
    }
    for (const ToolCallPiece& call : piece.tool_calls) out += call_piece(call);
    return out;
  }

  std::string finish(const ChoiceEnd& end) override {
    incomplete_ = end.reason == FinishReason::kLength;
    std::string out;
    if (items_.empty() && open_.kind == ItemKind::kNone) {
      out += open(ItemKind::kMessage);
      if (!waiting_.empty()) out += text_delta("response.output_text.delta", "", waiting_);
    }
    return out += close(incomplete_ ? "incomplete" : "completed");
  }

  std::string end(std::span<const Answer> answers) override {
    return event(incomplete_ ? "response.incomplete" : "response.completed",
                 R"("response":)" + response(answers));
  }

  std::string error(const ApiError& error) override {
    close("incomplete");
    const std::string object = fmt::format(R"({{"code":{},"message":{}}})", json_quote(error.code),
                                           json_quote(error.message));
    return event("response.failed", R"("response":)" + response("failed", object, ""));
  }

 private:
  /// `members`: of the event, without braces.
  std::string event(std::string_view name, const std::string& members) {
    return fmt::format("event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},{2}}}\n\n",
                       name, n_events_++, members);
  }

  std::string item_id(std::string_view prefix) const {
    const std::size_t at = frame_.id.find('_');
    return fmt::format("{}{}_{}", prefix, frame_.id.substr(at), items_.size());
  }

  /// Where an event belongs.
  std::string place(bool in_part) const {
    return fmt::format(R"("item_id":{},"output_index":{}{})", json_quote(open_.id), items_.size(),
                       in_part ? R"(,"content_index":0)" : "");
  }

  std::string added(const Item& item) {
    open_ = item;
    return event("response.output_item.added",
                 fmt::format(R"("output_index":{},"item":{})", items_.size(),
                             item_json(open_, "in_progress", false)));
  }

  /// Nothing where an item of this kind is open.
  std::string open(ItemKind kind) {
    if (open_.kind == kind) return {};
    std::string out = close("completed");
    out += added({kind, item_id(kind == ItemKind::kReasoning ? "rs" : "msg")});
    return out +=
           event("response.content_part.added", place(true) + R"(,"part":)" + part_json(open_));
  }

  std::string text_delta(std::string_view name, std::string_view text,
                         const std::string& logprobs) {
    open_.text += text;
    open_.logprobs = joined(std::move(open_.logprobs), logprobs);
    std::string members = place(true) + R"(,"delta":)" + json_quote(text);
    if (open_.kind == ItemKind::kMessage) members += R"(,"logprobs":[)" + logprobs + "]";
    return event(name, members);
  }

  std::string call_piece(const ToolCallPiece& call) {
    std::string out;
    if (open_.kind != ItemKind::kCall || open_.call_index != call.index) {
      out += close("completed");
      out += added({.kind = ItemKind::kCall,
                    .id = item_id("fc"),
                    .call_id = std::string(call.id),
                    .name = std::string(call.name),
                    .call_index = call.index});
    }
    if (call.arguments.empty()) return out;
    open_.text += call.arguments;
    return out += event("response.function_call_arguments.delta",
                        place(false) + R"(,"delta":)" + json_quote(call.arguments));
  }

  /// Ends the open item, where there is one.
  std::string close(std::string_view status) {
    if (open_.kind == ItemKind::kNone) return {};
    std::string out;
    if (open_.kind == ItemKind::kCall) {
      out = event("response.function_call_arguments.done",
                  place(false) + fmt::format(R"(,"name":{},"arguments":{})", json_quote(open_.name),
                                             json_quote(open_.text)));
    } else {
      const bool message = open_.kind == ItemKind::kMessage;
      std::string members = place(true) + R"(,"text":)" + json_quote(open_.text);
      if (message) members += R"(,"logprobs":[)" + open_.logprobs + "]";
      out = event(message ? "response.output_text.done" : "response.reasoning_text.done", members);
      out += event("response.content_part.done", place(true) + R"(,"part":)" + part_json(open_));
    }
    std::string item = item_json(open_, status, true);
    out += event("response.output_item.done",
                 fmt::format(R"("output_index":{},"item":{})", items_.size(), item));
    items_.push_back(std::move(item));
    open_ = Item{};
    return out;
  }

  std::string response(std::span<const Answer> answers) const {
    const GenerateResult& result = *answers.front().result;
    return response(
        incomplete_ ? "incomplete" : "completed", "null",
        fmt::format(
            R"(,"usage":{{"input_tokens":{0},"input_tokens_details":{{"cached_tokens":{1},"cache_write_tokens":0}},"output_tokens":{2},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{3}}},"cyb_llm":{4})",
            result.prompt_tokens, result.reused_tokens, result.tokens.size(),
            result.prompt_tokens + result.tokens.size(), recipe_json(frame_, result)));
  }

  /// `rest`: further members with their comma.
  std::string response(std::string_view status, const std::string& error,
                       const std::string& rest) const {
    const bool over = status == "completed" || status == "incomplete";
    return fmt::format(
        R"({{"id":{},"object":"response","created_at":{},"completed_at":{},"status":"{}","error":{},"incomplete_details":{},"model":{},"output":[{}],)"
        R"("background":false,"max_tool_calls":null,"metadata":{{}},"previous_response_id":null,"reasoning":{{"effort":null,"summary":null}},"service_tier":"default","store":false,)"
        R"({}{}}})",
        json_quote(frame_.id), frame_.created, over ? std::to_string(unix_time()) : "null", status,
        error, status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null",
        json_quote(frame_.model), fmt::join(items_, ","), echo_,
        rest.empty() ? R"(,"usage":null)" : rest);
  }

  AnswerFrame frame_;
  std::string echo_;
  std::vector<std::string> items_;  // closed ones
  Item open_;
  std::string waiting_;  // log-probabilities of tokens that are no item's yet
  std::uint64_t n_events_ = 0;
  bool incomplete_ = false;
};

}  // namespace

std::unique_ptr<AnswerShape> responses_shape(AnswerFrame frame, std::string echo) {
  return std::make_unique<ResponsesShape>(std::move(frame), std::move(echo));
}

}  // namespace cyb::server
