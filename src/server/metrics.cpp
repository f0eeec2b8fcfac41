// https://prometheus.io/docs/instrumenting/exposition_formats/
#include "server/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

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

using Views = std::vector<ShelfView>;

/// One line for each model; `value`: a member of a view, or what a function makes of it.
template <class F>
void write_each(std::string& out, std::string_view name, std::string_view type,
                std::string_view help, const Views& views, const F& value) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "# HELP cyb_llm_{0} {1}\n# TYPE cyb_llm_{0} {2}\n", name, help, type);
  for (const ShelfView& view : views) {
    fmt::format_to(to, "cyb_llm_{}{{model={}}} {}\n", name, json_quote(view.name), value(view));
  }
}

void write_models(std::string& out, const Views& views) {
  write_each(out, "model_info", "gauge", "A model that is served.", views,
             [](const ShelfView&) { return 1; });
  write_each(out, "model_loaded", "gauge", "1 where it is loaded.", views,
             [](const ShelfView& v) { return v.state == ShelfState::kLoaded ? 1 : 0; });
  write_each(out, "model_memory_bytes", "gauge", "What it takes when it is loaded.", views,
             [](const ShelfView& v) { return v.memory_bytes; });
  write_each(out, "model_loads_total", "counter", "Loads.", views,
             [](const ShelfView& v) { return v.loads; });
  write_each(out, "model_failed_loads_total", "counter", "Loads that failed.", views,
             [](const ShelfView& v) { return v.failed_loads; });
  write_each(out, "model_unloads_total", "counter", "Unloads.", views,
             [](const ShelfView& v) { return v.unloads; });
}

void write_schedulers(std::string& out, const Views& views) {
  struct Counter {
    std::uint64_t SchedulerStats::* member;
    std::string_view name, help;
  };
  struct Gauge {
    std::uint32_t SchedulerStats::* member;
    std::string_view name, help;
  };
  static constexpr Gauge kGauges[] = {
      {&SchedulerStats::waiting, "requests_waiting", "Requests in the queue."},
      {&SchedulerStats::running, "answers_running", "Answers that grow."},
      {&SchedulerStats::pages_used, "kv_pages_used", "Pages of keys and values in use."},
      {&SchedulerStats::pages_total, "kv_pages", "Pages of keys and values."},
      {&SchedulerStats::kept_prefixes, "prefixes_kept", "Sequences kept for prompts to come."}};
  static constexpr Counter kCounters[] = {
      {&SchedulerStats::submitted, "answers_submitted_total", "Requests for answers."},
      {&SchedulerStats::finished, "answers_finished_total", "Of them, finished."},
      {&SchedulerStats::cancelled, "answers_cancelled_total", "Of them, cancelled."},
      {&SchedulerStats::failed, "answers_failed_total", "Of them, failed."},
      {&SchedulerStats::refused, "answers_refused_total", "Refused: the queue was full."},
      {&SchedulerStats::prompt_tokens, "prompt_tokens_total", "Tokens of prompts."},
      {&SchedulerStats::reused_tokens, "prompt_tokens_reused_total",
       "Of them, found in kept prefixes."},
      {&SchedulerStats::answer_tokens, "answer_tokens_total", "Tokens of answers."},
      {&SchedulerStats::runs, "runs_total", "Runs of the model."},
      {&SchedulerStats::run_tokens, "run_tokens_total", "Tokens of these runs."},
      {&SchedulerStats::preempted, "preempted_total",
       "Answers that gave their pages back for a while."},
      {&SchedulerStats::evicted_prefixes, "prefixes_evicted_total",
       "Kept prefixes that made room."}};
  for (const Gauge& gauge : kGauges) {
    write_each(out, gauge.name, "gauge", gauge.help, views,
               [&](const ShelfView& v) { return v.stats.*gauge.member; });
  }
  for (const Counter& counter : kCounters) {
    write_each(out, counter.name, "counter", counter.help, views,
               [&](const ShelfView& v) { return v.stats.*counter.member; });
  }
}

}  // namespace

void Metrics::Histogram::add(double seconds, std::uint64_t n) noexcept {
  const auto at = std::ranges::lower_bound(kBounds, seconds);
  counts[static_cast<std::size_t>(at - kBounds.begin())] += n;
  sum += seconds * static_cast<double>(n);
}

void Metrics::Histogram::write(std::string& out, std::string_view name,
                               std::string_view model) const {
  const auto to = std::back_inserter(out);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    total += counts[i];
    fmt::format_to(to, "cyb_llm_{}_bucket{{model={},le=\"{}\"}} {}\n", name, model, kBounds[i],
                   total);
  }
  total += counts.back();
  fmt::format_to(to,
                 "cyb_llm_{0}_bucket{{model={3},le=\"+Inf\"}} {1}\ncyb_llm_{0}_sum{{model={3}}} "
                 "{2}\ncyb_llm_{0}_count{{model={3}}} {1}\n",
                 name, total, sum, model);
}

void Metrics::write_all(std::string& out, std::string_view name, std::string_view help,
                        const Histograms& all) {
  fmt::format_to(std::back_inserter(out), "# HELP cyb_llm_{0} {1}\n# TYPE cyb_llm_{0} histogram\n",
                 name, help);
  for (const auto& [model, histogram] : all) histogram.write(out, name, json_quote(model));
}

void Metrics::count_request(std::string_view route, unsigned status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
}

void Metrics::observe_first_token(const std::string& model, double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_[model].add(seconds, 1);
}

void Metrics::observe_tokens(const std::string& model, double seconds, std::uint32_t n) {
  if (n == 0) return;
  const std::lock_guard lock(mutex_);
  between_tokens_[model].add(seconds / n, n);
}

std::string Metrics::text(const ModelShelf& shelf, std::uint32_t n_connections) const {
  const Views views = shelf.views();
  std::string out;
  write_models(out, views);
  write_one(out, "connections", "gauge", "Open connections.", n_connections);
  write_one(out, "memory_used_bytes", "gauge", "What all loaded models take.", shelf.used_bytes());
  write_one(out, "memory_budget_bytes", "gauge", "What they may take; 0: any.",
            shelf.options().memory_bytes);
  write_schedulers(out, views);
  const std::lock_guard lock(mutex_);
  out += "# HELP cyb_llm_requests_total HTTP requests.\n# TYPE cyb_llm_requests_total counter\n";
  for (const auto& [key, count] : requests_) {
    out += fmt::format("cyb_llm_requests_total{{route=\"{}\",code=\"{}\"}} {}\n", key.first,
                       key.second, count);
  }
  write_all(out, "time_to_first_token_seconds", "From the request to its first text.",
            first_token_);
  write_all(out, "inter_token_seconds", "Between the tokens of an answer.", between_tokens_);
  return out;
}

}  // namespace cyb::server
