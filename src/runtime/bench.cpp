// Token ids are pseudo-random but fixed: speed must not depend on them, and every run sees the
// same.
#include "runtime/bench.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/philox.hpp"
#include "runtime/memory.hpp"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

std::int32_t some_id(std::uint32_t vocab, std::uint32_t position, std::uint32_t sequence) noexcept {
  return static_cast<std::int32_t>(philox4x32({position, sequence, 0, 0}, 1)[0] % vocab);
}

}  // namespace

std::string BenchCase::name() const {
  std::string out =
      n_prompt > 0 ? "pp" + std::to_string(n_prompt) : "tg" + std::to_string(n_decode);
  if (batch > 1) out += " b" + std::to_string(batch);
  return out;
}

void summarise(BenchRow& row) {
  if (row.seconds.empty()) return;
  std::vector<double> sorted = row.seconds;
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  const double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  const double tokens = static_cast<double>(row.what.n_prompt + row.what.n_decode) * row.what.batch;
  row.tps_median = tokens / median;
  row.tps_min = tokens / sorted.back();
  row.tps_max = tokens / sorted.front();
}

Result<Bench> Bench::create(std::shared_ptr<const Model> model, const EngineOptions& options,
                            std::uint32_t longest, std::uint32_t max_batch) {
  EngineOptions wanted = options;
  wanted.max_sequences = std::max(max_batch, std::uint32_t{1});
  wanted.ctx_tokens = longest;
  CYB_ASSIGN(std::shared_ptr<Engine> engine, Engine::load(std::move(model), wanted));
  Bench bench(std::move(engine));
  // Pages of the weights and of the buffers, clocks, and the threads' first wake-up.
  const std::uint32_t n = std::min(longest, bench.engine_->chunk_tokens());
  CYB_TRY(bench.run({.n_prompt = n}, options.stop));
  CYB_TRY(bench.run({.n_decode = std::min(longest, std::uint32_t{4})}, options.stop));
  return bench;
}

Result<void> Bench::prefill(const BenchCase& what, std::vector<Sequence>& sequences,
                            std::stop_token stop) {
  const std::uint32_t chunk = engine_->chunk_tokens(), vocab = engine_->vocab_size();
  std::vector<std::int32_t> ids(std::size_t{what.n_prompt} * what.batch);
  for (std::uint32_t b = 0; b < what.batch; ++b) {
    for (std::uint32_t i = 0; i < what.n_prompt; ++i) {
      ids[std::size_t{b} * what.n_prompt + i] = some_id(vocab, i, b);
    }
  }
  // Fill each run with as many rows as fit, whoever they belong to.
  std::vector<SequenceStep> steps;
  std::uint32_t rows = 0, outputs = 0;
  const auto flush = [&]() -> Result<void> {
    if (steps.empty()) return {};
    CYB_TRY(engine_->step(steps, {}, stop));
    steps.clear();
    rows = outputs = 0;
    return {};
  };
  for (std::uint32_t b = 0; b < what.batch; ++b) {
    std::span<const std::int32_t> rest(ids.data() + std::size_t{b} * what.n_prompt, what.n_prompt);
    while (!rest.empty()) {
      const std::size_t n = std::min<std::size_t>(rest.size(), chunk - rows);
      const bool last = n == rest.size();
      steps.push_back({&sequences[b], rest.first(n), last ? LogitRows::kLast : LogitRows::kNone,
                       what.n_prompt});
      rows += static_cast<std::uint32_t>(n);
      outputs += last ? 1 : 0;
      rest = rest.subspan(n);
      if (rows == chunk || outputs == engine_->max_outputs()) CYB_TRY(flush());
    }
  }
  return flush();
}

Result<void> Bench::decode(const BenchCase& what, std::vector<Sequence>& sequences,
                           std::stop_token stop) {
  std::vector<std::int32_t> ids(what.batch);
  std::vector<SequenceStep> steps(what.batch);
  for (std::uint32_t i = 0; i < what.n_decode; ++i) {
    for (std::uint32_t b = 0; b < what.batch; ++b) {
      ids[b] = some_id(engine_->vocab_size(), i, b);
      steps[b] = {&sequences[b], {&ids[b], 1}, LogitRows::kLast};
    }
    CYB_TRY(engine_->step(steps, {}, stop));
  }
  return {};
}

Result<double> Bench::run(const BenchCase& what, std::stop_token stop) {
  std::vector<Sequence> sequences;
  for (std::uint32_t b = 0; b < what.batch; ++b) sequences.push_back(engine_->new_sequence());
  const Clock::time_point start = Clock::now();
  if (what.n_prompt > 0) {
    CYB_TRY(prefill(what, sequences, stop));
  } else {
    CYB_TRY(decode(what, sequences, stop));
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {

std::vector<BenchCase> cases_of(const BenchOptions& options, unsigned threads) {
  std::vector<BenchCase> out;
  for (const std::uint32_t batch : options.batches) {
    for (const std::uint32_t n : options.prompts) out.push_back({n, 0, batch, threads});
    for (const std::uint32_t n : options.decodes) out.push_back({0, n, batch, threads});
  }
  return out;
}

}  // namespace

Result<std::vector<BenchRow>> run_bench(std::shared_ptr<const Model> model,
                                        const BenchOptions& options) {
  std::vector<BenchRow> rows;
  for (const unsigned threads : options.threads) {
    const std::vector<BenchCase> cases = cases_of(options, threads);
    std::uint32_t longest = 1, max_batch = 1;
    for (const BenchCase& what : cases) {
      if ((what.n_prompt == 0) == (what.n_decode == 0) || what.batch == 0) {
        return fail(invalid_input("a bench length or batch of 0"));
      }
      longest = std::max({longest, what.n_prompt, what.n_decode});
      max_batch = std::max(max_batch, what.batch);
    }
    EngineOptions engine = options.engine;
    engine.n_threads = threads;
    engine.stop = options.stop;
    CYB_ASSIGN(Bench bench, Bench::create(model, engine, longest, max_batch));
    for (const BenchCase& what : cases) {
      BenchRow row;
      row.what = what;
      for (std::uint32_t r = 0; r < std::max(options.n_repeats, std::uint32_t{1}); ++r) {
        CYB_ASSIGN(const double seconds, bench.run(what, options.stop));
        row.seconds.push_back(seconds);
      }
      summarise(row);
      row.peak_bytes = peak_resident_bytes();
      row.memory = bench.engine().memory();
      if (options.on_row) options.on_row(row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace cyb
