// Written by hand in key order: floats with the shortest digits that read back equal.
#include "api/answer_json.hpp"

#include <fmt/format.h>

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

}  // namespace

std::string answer_json(const GenerateResult& answer, bool with_logprobs) {
  std::string out =
      fmt::format(R"({{"text":{},"tokens":[{}],"prompt_tokens":{},"finish_reason":{})",
                  json_quote(answer.text), fmt::join(answer.tokens, ","), answer.prompt_tokens,
                  json_quote(finish_reason_name(answer.finish_reason)));
  if (with_logprobs) append_logprobs(out, answer.logprobs);
  fmt::format_to(
      std::back_inserter(out),
      R"(,"path":{},"backend":{},"model_id":{},"seed":{},"fallback_steps":{},"timings":{}}})",
      json_quote(answer.path), json_quote(answer.backend), json_quote(answer.model_id), answer.seed,
      answer.n_fallback_steps, timings_json(answer.timings));
  return out;
}

}  // namespace cyb::api
