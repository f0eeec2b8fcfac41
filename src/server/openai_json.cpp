// Written by hand: log-probabilities are made for every token of every stream.
#include "server/openai_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json_text.hpp"
#include "base/utf8.hpp"
#include "text/tokenizer.hpp"

namespace cyb::server {
namespace {

constexpr double kNever = -9999.0;  // what the API writes for a probability of 0

double shown(float logprob) noexcept {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kNever;
}

/// Control tokens have a name and no text.
std::string token_bytes(const Tokenizer* tokenizer, std::int32_t id) {
  if (tokenizer == nullptr) return std::to_string(id);
  if (tokenizer->is_control(id) && tokenizer->vocabulary().contains(id)) {
    return std::string(tokenizer->vocabulary().text(id));
  }
  return std::string(tokenizer->piece(id));
}

std::string chat_token(const std::string& bytes, float logprob) {
  std::string list;
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(list), "{}{}", list.empty() ? "" : ",",
                   static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return fmt::format(R"("token":{},"logprob":{},"bytes":[{}])", json_quote(bytes), shown(logprob),
                     list);
}

/// A token that is no whole text is named by its bytes.
std::string completion_token(const std::string& bytes) {
  if (utf8_find_invalid(bytes) == std::string_view::npos) return json_quote(bytes);
  std::string out = "bytes:";
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                   static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return json_quote(out);
}

std::uint64_t n_characters(std::string_view bytes) noexcept {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string token_objects(const Tokenizer* tokenizer, std::span<const TokenReport> tokens) {
  std::string out;
  for (const TokenReport& token : tokens) {
    if (&token != tokens.data()) out += ',';
    out +=
        '{' + chat_token(token_bytes(tokenizer, token.id), token.logprob) + R"(,"top_logprobs":[)";
    for (const TokenLogprob& rival : token.top) {
      if (&rival != token.top.data()) out += ',';
      out += '{' + chat_token(token_bytes(tokenizer, rival.id), rival.logprob) + '}';
    }
    out += "]}";
  }
  return out;
}

std::string LogprobsJson::completion_object(std::span<const TokenReport> tokens) {
  std::string texts, values, tops, offsets;
  for (const TokenReport& token : tokens) {
    const char* comma = &token == tokens.data() ? "" : ",";
    const std::string bytes = token_bytes(frame_->tokenizer, token.id);
    texts += comma + completion_token(bytes);
    values += fmt::format("{}{}", comma, shown(token.logprob));
    offsets += fmt::format("{}{}", comma, offset_);
    std::string top;
    for (const TokenLogprob& rival : token.top) {
      top += fmt::format("{}{}:{}", top.empty() ? "" : ",",
                         completion_token(token_bytes(frame_->tokenizer, rival.id)),
                         shown(rival.logprob));
    }
    tops += fmt::format("{}{{{}}}", comma, top);
    offset_ += n_characters(token.token);
  }
  return fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", texts,
      values, tops, offsets);
}

std::string LogprobsJson::next(std::span<const TokenReport> tokens) {
  if (!frame_->chat) return completion_object(tokens);
  return R"({"content":[)" + token_objects(frame_->tokenizer, tokens) + R"(],"refusal":null})";
}

std::string_view reason_text(FinishReason reason) noexcept {
  return reason == FinishReason::kLength ? "length" : "stop";
}

std::string usage_json(std::span<const Answer> answers) {
  std::size_t n_answer = 0;
  std::uint64_t drafted = 0, accepted = 0;
  for (const Answer& answer : answers) {
    n_answer += answer.result->tokens.size();
    drafted += answer.result->speculation.drafted;
    accepted += answer.result->speculation.accepted;
  }
  const GenerateResult& first = *answers.front().result;
  std::string out = fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}})",
      first.prompt_tokens, n_answer, first.prompt_tokens + n_answer, first.reused_tokens);
  if (!first.speculation.kind.empty()) {
    out += fmt::format(
        R"(,"completion_tokens_details":{{"accepted_prediction_tokens":{},"rejected_prediction_tokens":{}}})",
        accepted, drafted - accepted);
  }
  return out + '}';
}

std::string recipe_json(const AnswerFrame& frame, const GenerateResult& result) {
  std::string out =
      fmt::format(R"({{"seed":{},"model_id":{},"path":{},"backend":{})", result.seed,
                  json_quote(result.model_id), json_quote(result.path), json_quote(result.backend));
  if (!frame.recipe.empty()) out += ',' + frame.recipe;
  if (const OverflowReport& o = result.overflow; o.mode != Overflow::kError) {
    out += fmt::format(
        R"(,"overflow":{{"mode":{},"dropped_prompt_tokens":{},"dropped_tokens":{},"shifts":{}}})",
        json_quote(overflow_name(o.mode)), o.dropped_prompt_tokens, o.dropped_tokens, o.shifts);
  }
  return out + "}";
}

}  // namespace cyb::server
