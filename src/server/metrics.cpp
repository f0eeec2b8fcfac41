// https://prometheus.io/docs/instrumenting/exposition_formats/
#include "server/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json_text.hpp"

namespace cyb::server {
namespace {

template <class T>
void write_one(std::string& out, std::string_view name, std::string_view type,
               std::string_view help, T value) {
  fmt::format_to(std::back_inserter(out),
                 "# HELP cyb_llm_{0} {1}\n# TYPE cyb_llm_{0} {2}\ncyb_llm_{0} {3}\n", name, help,
                 type, value);
}

}  // namespace

void Metrics::Histogram::add(double seconds, std::uint64_t n) noexcept {
  const auto at = std::ranges::lower_bound(kBounds, seconds);
  counts[static_cast<std::size_t>(at - kBounds.begin())] += n;
  sum += seconds * static_cast<double>(n);
}

void Metrics::Histogram::write(std::string& out, std::string_view name,
                               std::string_view help) const {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "# HELP cyb_llm_{0} {1}\n# TYPE cyb_llm_{0} histogram\n", name, help);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    total += counts[i];
    fmt::format_to(to, "cyb_llm_{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], total);
  }
  total += counts.back();
  fmt::format_to(
      to, "cyb_llm_{0}_bucket{{le=\"+Inf\"}} {1}\ncyb_llm_{0}_sum {2}\ncyb_llm_{0}_count {1}\n",
      name, total, sum);
}

void Metrics::count_request(std::string_view route, unsigned status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
}

void Metrics::observe_first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds, 1);
}

void Metrics::observe_tokens(double seconds, std::uint32_t n) {
  if (n == 0) return;
  const std::lock_guard lock(mutex_);
  between_tokens_.add(seconds / n, n);
}

std::string Metrics::text(const SchedulerStats& s, std::uint32_t n_connections,
                          std::string_view model) const {
  std::string out =
      "# HELP cyb_llm_model_info The model that answers.\n# TYPE cyb_llm_model_info gauge\n";
  out += "cyb_llm_model_info{model=" + json_quote(model) + "} 1\n";
  write_one(out, "connections", "gauge", "Open connections.", n_connections);
  write_one(out, "requests_waiting", "gauge", "Requests in the queue.", s.waiting);
  write_one(out, "answers_running", "gauge", "Answers that grow.", s.running);
  write_one(out, "kv_pages_used", "gauge", "Pages of keys and values in use.", s.pages_used);
  write_one(out, "kv_pages", "gauge", "Pages of keys and values.", s.pages_total);
  write_one(out, "prefixes_kept", "gauge", "Sequences kept for prompts to come.", s.kept_prefixes);
  write_one(out, "answers_submitted_total", "counter", "Requests for answers.", s.submitted);
  write_one(out, "answers_finished_total", "counter", "Of them, finished.", s.finished);
  write_one(out, "answers_cancelled_total", "counter", "Of them, cancelled.", s.cancelled);
  write_one(out, "answers_failed_total", "counter", "Of them, failed.", s.failed);
  write_one(out, "answers_refused_total", "counter", "Refused: the queue was full.", s.refused);
  write_one(out, "prompt_tokens_total", "counter", "Tokens of prompts.", s.prompt_tokens);
  write_one(out, "prompt_tokens_reused_total", "counter", "Of them, found in kept prefixes.",
            s.reused_tokens);
  write_one(out, "answer_tokens_total", "counter", "Tokens of answers.", s.answer_tokens);
  write_one(out, "runs_total", "counter", "Runs of the model.", s.runs);
  write_one(out, "run_tokens_total", "counter", "Tokens of these runs.", s.run_tokens);
  write_one(out, "preempted_total", "counter", "Answers that gave their pages back for a while.",
            s.preempted);
  write_one(out, "prefixes_evicted_total", "counter", "Kept prefixes that made room.",
            s.evicted_prefixes);
  const std::lock_guard lock(mutex_);
  out += "# HELP cyb_llm_requests_total HTTP requests.\n# TYPE cyb_llm_requests_total counter\n";
  for (const auto& [key, count] : requests_) {
    out += fmt::format("cyb_llm_requests_total{{route=\"{}\",code=\"{}\"}} {}\n", key.first,
                       key.second, count);
  }
  first_token_.write(out, "time_to_first_token_seconds", "From the request to its first text.");
  between_tokens_.write(out, "inter_token_seconds", "Between the tokens of an answer.");
  return out;
}

}  // namespace cyb::server
