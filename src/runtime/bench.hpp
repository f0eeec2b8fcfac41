// Bench: prefill and decode speed of one model. Pieces can be run one by one, so that two programs
// are measured in alternation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/engine.hpp"

namespace cyb {

/// One thing to measure: prefill of `n_prompt` tokens, or decode of `n_decode` tokens from an empty
/// context (one of the two is 0), for `batch` sequences in joint runs.
struct BenchCase {
  std::uint32_t n_prompt = 0, n_decode = 0;
  std::uint32_t batch = 1;
  unsigned n_threads = 0;
  std::string name() const;  // "pp512", "tg128 b8"
};

struct BenchRow {
  BenchCase what;
  std::vector<double> seconds;                      // one per repeat
  double tps_median = 0, tps_min = 0, tps_max = 0;  // tokens per second, all sequences together
  std::uint64_t peak_bytes = 0;                     // of the process, after this row
  MemoryPools memory;                               // of the engine, after this row
};

struct BenchOptions {
  EngineOptions engine;  // ctx_tokens, max_sequences and n_threads are set per case
  std::vector<std::uint32_t> prompts, decodes, batches{1};
  std::vector<unsigned> threads{0};
  std::uint32_t n_repeats = 5;
  std::stop_token stop;
  std::function<void(const BenchRow&)> on_row;  // as rows are finished; may be empty
};

/// An engine ready for the cases of one thread count; warmed up by one short run.
class Bench {
 public:
  /// `longest`: tokens of the longest case. Errors: as Engine::load.
  static Result<Bench> create(std::shared_ptr<const Model> model, const EngineOptions& options,
                              std::uint32_t longest, std::uint32_t max_batch);
  const Engine& engine() const noexcept { return *engine_; }
  /// Runs the case once; seconds. Errors: ContextOverflow, Cancelled, what the engine says.
  Result<double> run(const BenchCase& what, std::stop_token stop = {});

 private:
  explicit Bench(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  Result<void> prefill(const BenchCase& what, std::vector<Sequence>& sequences,
                       std::stop_token stop);
  Result<void> decode(const BenchCase& what, std::vector<Sequence>& sequences,
                      std::stop_token stop);
  std::shared_ptr<Engine> engine_;
};

/// All cases: for each thread count an engine, for each batch the prefills, then the decodes.
/// Errors: as Bench.
Result<std::vector<BenchRow>> run_bench(std::shared_ptr<const Model> model,
                                        const BenchOptions& options);

/// Fills medians and extremes from `seconds`.
void summarise(BenchRow& row);

}  // namespace cyb
