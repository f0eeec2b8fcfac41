#include "server/split_choice.hpp"

#include <fmt/format.h>

#include <utility>

namespace cyb::server {
namespace {

constexpr std::size_t kShortId = 9;  // letters and digits, as Mistral's templates want them

CallIds ids_of(const SplitOptions& options) {
  return options.format == nullptr ? CallIds::kLong : options.format->ids;
}

std::string call_id(const SplitChoice::NewId& new_id, CallIds ids, std::string_view name,
                    std::size_t index) {
  if (ids == CallIds::kNamed) return fmt::format("functions.{}:{}", name, index);
  return ids == CallIds::kLong ? new_id("call_") : new_id("").substr(0, kShortId);
}

}  // namespace

SplitChoice::SplitChoice(const SplitOptions& options, NewId new_id)
    : ids_(ids_of(options)), new_id_(std::move(new_id)), splitter_(options) {}

void SplitChoice::push(std::string_view text, bool over, FinishReason reason) {
  parts_.clear();
  splitter_.push(text, parts_);
  if (over) splitter_.finish(reason == FinishReason::kStop, parts_);
}

void SplitChoice::visit(const std::function<void(AnswerPiece)>& visit) {
  if (parts_.empty()) return visit({});
  for (const AnswerPart& part : parts_) {
    ToolCallPiece call{.index = part.call};
    std::string id;
    AnswerPiece piece;
    switch (part.kind) {
      case AnswerPart::Kind::kContent:
        piece.content = part.text;
        break;
      case AnswerPart::Kind::kReasoning:
        piece.reasoning = part.text;
        break;
      case AnswerPart::Kind::kCall:
        id = call_id(new_id_, ids_, part.text, part.call);
        call.index = part.call;
        call.id = id;
        call.name = part.text;
        piece.tool_calls = {&call, 1};
        break;
      case AnswerPart::Kind::kArguments:
        call.arguments = part.text;
        piece.tool_calls = {&call, 1};
        break;
    }
    visit(piece);
  }
}

Answer split_answer(const SplitOptions& options, const SplitChoice::NewId& new_id,
                    const GenerateResult& result) {
  Answer out{.result = &result};
  if (options.nothing()) {
    out.content = result.text;
    return out;
  }
  AnswerSplitter splitter(options);
  std::vector<AnswerPart> parts;
  splitter.push(result.text, parts);
  splitter.finish(result.finish_reason == FinishReason::kStop, parts);
  SplitAnswer split = join_parts(parts);
  out.content = std::move(split.content);
  out.reasoning = std::move(split.reasoning);
  for (SplitAnswer::Call& call : split.calls) {
    std::string id = call_id(new_id, ids_of(options), call.name, out.tool_calls.size());
    out.tool_calls.push_back({std::move(id), std::move(call.name), std::move(call.arguments)});
  }
  return out;
}

}  // namespace cyb::server
