// One session per thread count: a first run plans and warms up, then every repeat is one run.
#include "cli/commands/bench_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/commands/given_tensors.hpp"
#include "cli/json.hpp"
#include "cli/memory_text.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Row {
  unsigned n_threads = 0;
  double first_ms = 0;  // the run that plans
  std::vector<double> ms;
  std::uint32_t n_fallback_steps = 0;
  MemoryPools memory{};

  double median() const {
    std::vector<double> sorted = ms;
    std::ranges::sort(sorted);
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  Json json() const {
    return {{"threads", n_threads},
            {"ms_median", median()},
            {"ms_min", *std::ranges::min_element(ms)},
            {"ms_max", *std::ranges::max_element(ms)},
            {"ms", ms},
            {"first_ms", first_ms},
            {"fallback_steps", n_fallback_steps},
            {"memory", memory_json(memory)}};
  }
  std::string text() const {
    return fmt::format(
        "{} thread{}  {:>9.3f} ms a run  ({:.3f} .. {:.3f}, {} run{}; the first, with planning, "
        "{:.1f})  {} step{} on the reference",
        n_threads, n_threads == 1 ? " " : "s", median(), *std::ranges::min_element(ms),
        *std::ranges::max_element(ms), ms.size(), ms.size() == 1 ? "" : "s", first_ms,
        n_fallback_steps, n_fallback_steps == 1 ? "" : "s");
  }
};

}  // namespace

Result<int> bench_tensors(Context& context, std::shared_ptr<const Model> model,
                          const TensorBench& what) {
  CYB_ASSIGN(const Digest id, model->model_id());
  Json rows = Json::array();
  for (const unsigned n_threads : what.threads) {
    EngineOptions options = what.engine;
    options.n_threads = n_threads;
    CYB_ASSIGN(const std::unique_ptr<TensorSession> session, TensorSession::open(model, options));
    CYB_ASSIGN(const GivenTensors given,
               read_tensors(what.inputs, MediaFlags(), *session, context.output));
    Row row{.n_threads = n_threads, .ms = {}};
    const Clock::time_point start = Clock::now();
    CYB_TRY(session->run(given.tensors, what.stop));
    row.first_ms = ms_since(start);
    for (std::uint64_t i = 0; i < what.n_repeats; ++i) {
      const Clock::time_point begin = Clock::now();
      CYB_TRY(session->run(given.tensors, what.stop));
      row.ms.push_back(ms_since(begin));
    }
    row.n_fallback_steps = session->n_fallback_steps();
    row.memory = session->memory();
    if (what.json) {
      rows.push_back(row.json());
    } else if (!context.output.line(row.text())) {
      return kExitOk;
    }
  }
  if (what.json) {
    context.output.line(Json{
        {"model", json_text(model->name())},
        {"model_id", digest_text(id)},
        {"rows",
         std::move(rows)}}.dump());
  }
  return kExitOk;
}

}  // namespace cyb::cli
