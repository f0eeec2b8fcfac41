// Written by hand in key order: floats with the shortest digits that read back equal.
#include "api/answer_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/json_text.hpp"

namespace cyb::api {
namespace {

/// JSON has no infinity: a probability of 0 is null.
template <class T>
std::string number(T value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

void append_logprobs(std::string& out, const std::vector<TokenReport>& reports) {
  out += R"(,"logprobs":[)";
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const TokenReport& report = reports[i];
    fmt::format_to(std::back_inserter(out), R"({}{{"id":{},"token":{},"logprob":{},"top":[)",
                   i == 0 ? "" : ",", report.id, json_quote(report.token), number(report.logprob));
    for (std::size_t k = 0; k < report.top.size(); ++k) {
      fmt::format_to(std::back_inserter(out), "{}[{},{}]", k == 0 ? "" : ",", report.top[k].id,
                     number(report.top[k].logprob));
    }
    out += "]}";
  }
  out += ']';
}

std::string timings_json(const GenerateTimings& t) {
  return fmt::format(
      R"({{"load_ms":{},"prefill_ms":{},"prefill_tps":{},"decode_tps":{},"token_ms_mean":{},"token_ms_p95":{},"peak_bytes":{}}})",
      number(t.load_ms), number(t.prefill_ms), number(t.prefill_tps), number(t.decode_tps),
      number(t.token_ms_mean), number(t.token_ms_p95), t.peak_bytes);
}

std::string memory_part(const MemoryPools& memory) {
  std::string out = R"("memory":{)";
  for (const MemoryPool& pool : memory_pools(memory)) {
    out += fmt::format(R"("{}":{},)", pool.name, pool.bytes);
  }
  return out + fmt::format(R"("total":{}}})", memory.total());
}

/// Only where something else than the default was asked for.
std::string extras(const GenerateResult& answer) {
  std::string out;
  if (answer.reused_tokens > 0) out += fmt::format(R"(,"reused_tokens":{})", answer.reused_tokens);
  if (const OverflowReport& o = answer.overflow; o.mode != Overflow::kError) {
    out += fmt::format(
        R"(,"overflow":{{"mode":{},"dropped_prompt_tokens":{},"dropped_tokens":{},"shifts":{}}})",
        json_quote(overflow_name(o.mode)), o.dropped_prompt_tokens, o.dropped_tokens, o.shifts);
  }
  if (const SpeculationReport& s = answer.speculation; !s.kind.empty()) {
    const double share =
        s.drafted == 0 ? 0.0 : static_cast<double>(s.accepted) / static_cast<double>(s.drafted);
    out += fmt::format(
        R"(,"speculation":{{"kind":{},"max_tokens":{},"rounds":{},"drafted":{},"accepted":{},"acceptance":{}}})",
        json_quote(s.kind), s.max_tokens, s.rounds, s.drafted, s.accepted, number(share));
  }
  return out;
}

std::string run_part(const GenerateResult& answer) {
  return fmt::format(R"("path":{},"backend":{},"model_id":{},"seed":{},"fallback_steps":{})",
                     json_quote(answer.path), json_quote(answer.backend),
                     json_quote(answer.model_id), answer.seed, answer.n_fallback_steps);
}

}  // namespace

std::string answer_json(const GenerateResult& answer, bool with_logprobs) {
  std::string out =
      fmt::format(R"({{"text":{},"tokens":[{}],"prompt_tokens":{},"finish_reason":{})",
                  json_quote(answer.text), fmt::join(answer.tokens, ","), answer.prompt_tokens,
                  json_quote(finish_reason_name(answer.finish_reason)));
  if (with_logprobs) append_logprobs(out, answer.logprobs);
  return out + "," + run_part(answer) + extras(answer) + "," + memory_part(answer.memory) +
         R"(,"timings":)" + timings_json(answer.timings) + "}";
}

std::string answers_json(std::span<const GenerateResult> answers, bool with_logprobs) {
  std::string out = R"({"answers":[)";
  for (const GenerateResult& answer : answers) {
    fmt::format_to(
        std::back_inserter(out), R"({}{{"index":{},"text":{},"tokens":[{}],"finish_reason":{})",
        &answer == answers.data() ? "" : ",", answer.index, json_quote(answer.text),
        fmt::join(answer.tokens, ","), json_quote(finish_reason_name(answer.finish_reason)));
    if (with_logprobs) append_logprobs(out, answer.logprobs);
    out += R"(,"timings":)" + timings_json(answer.timings) + "}";
  }
  const GenerateResult& first = answers.front();
  const auto most = std::ranges::max_element(
      answers, {}, [](const GenerateResult& answer) { return answer.memory.total(); });
  return out + fmt::format(R"(],"prompt_tokens":{},)", first.prompt_tokens) + run_part(first) +
         extras(first) + "," + memory_part(most->memory) + "}";
}

}  // namespace cyb::api
