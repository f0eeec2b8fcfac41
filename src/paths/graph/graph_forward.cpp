// One plan for runs of as many rows with up to so many past positions. The logits of all rows exist
// at once, so runs are short.
#include "paths/graph/graph_forward.hpp"

#include <algorithm>

namespace cyb {
namespace {

constexpr std::uint32_t kMaxRows = 64;
constexpr std::uint32_t kPastUnit = 64;         // plans are for multiples of it
constexpr std::size_t kMaxKept = 4;             // plans
constexpr std::uint32_t kMaxLogits = 8u << 20;  // values of [S, V] in one run

}  // namespace

GraphForward::GraphForward(GraphProgram program, WeightTable& weights, std::uint32_t max_positions,
                           const ForwardOptions& options)
    : program_(std::move(program)),
      weights_(weights),
      max_outputs_(options.max_outputs),
      max_positions_(max_positions) {
  const std::uint32_t by_memory =
      std::clamp(kMaxLogits / std::max(program_.vocab_size(), 1u), 1u, kMaxRows);
  max_tokens_ = std::min(by_memory, options.max_tokens);
}

Result<void> GraphForward::run(const StepParams& params, std::stop_token stop) {
  if (params.n_tokens() > max_tokens_ || params.output_rows.size() > max_outputs_) {
    return fail(internal_error("run larger than the graph forward was built for"));
  }
  logits_.clear();
  logits_.reserve(std::size_t{max_outputs_} * vocab_size());
  for (const SequenceSpan& sequence : params.sequences)
    CYB_TRY(run_sequence(params, sequence, stop));
  return {};
}

std::uint32_t GraphForward::max_past_for(std::uint32_t n_past) const noexcept {
  return program_.takes_any_past() ? (n_past + kPastUnit - 1) / kPastUnit * kPastUnit : n_past;
}

std::uint64_t GraphForward::logits_bytes() const noexcept {
  return std::uint64_t{max_outputs_} * vocab_size() * sizeof(float);
}

Result<std::unique_ptr<Executable>> GraphForward::compile(std::uint32_t n_new,
                                                          std::uint32_t max_past) const {
  CYB_ASSIGN(Plan plan, program_.plan(n_new, max_past));
  return weights_.backend().compile(std::move(plan));
}

/// Plans grow with the past: the last ones of the longest prompt are the largest that are kept.
Result<std::uint64_t> GraphForward::most_bytes(const RunLimits& limits) {
  std::uint64_t total = logits_bytes();
  const std::uint32_t longest = limits.sequence_tokens, n_new = std::min(max_tokens_, longest);
  if (n_new == 0) return total;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;  // rows, past
  for (std::uint32_t end = longest; end > 0 && seen.size() < kMaxKept;) {
    const std::uint32_t past = (end - 1) / n_new * n_new;
    const std::pair key(end - past, max_past_for(past));
    if (std::ranges::find(seen, key) == seen.end()) {
      CYB_ASSIGN(const std::unique_ptr<Executable> executable, compile(key.first, key.second));
      total += executable->most_bytes({limits.kv_pages, end});
      seen.push_back(key);
    }
    end = past;
  }
  return total;
}

Result<Executable*> GraphForward::executable_for(std::uint32_t n_new, std::uint32_t n_past) {
  const std::uint32_t max_past = max_past_for(n_past);
  ++n_runs_;
  for (Kept& kept : kept_) {
    if (kept.n_new != n_new || kept.max_past != max_past) continue;
    kept.used = n_runs_;
    return kept.executable.get();
  }
  // The oldest goes first: the memory of both at once is not needed.
  if (kept_.size() == kMaxKept) kept_.erase(std::ranges::min_element(kept_, {}, &Kept::used));
  CYB_ASSIGN(std::unique_ptr<Executable> executable, compile(n_new, max_past));
  kept_.push_back({n_new, max_past, n_runs_, std::move(executable)});
  return kept_.back().executable.get();
}

Result<void> GraphForward::run_sequence(const StepParams& params, const SequenceSpan& sequence,
                                        const std::stop_token& stop) {
  CYB_ASSIGN(Executable * executable, executable_for(sequence.n_rows, sequence.past_tokens));
  SequenceSpan alone = sequence;
  alone.row_begin = 0;
  const StepParams one{
      .ids = params.ids.subspan(sequence.row_begin, sequence.n_rows),
      .positions = params.positions.subspan(sequence.row_begin, sequence.n_rows),
      .output_rows = {},
      .sequences = std::span(&alone, 1),
      .kv = params.kv,
  };
  CYB_TRY(executable->submit(one));
  CYB_TRY(executable->sync(stop));
  std::uint64_t bytes = logits_bytes();
  for (const Kept& kept : kept_) bytes += kept.executable->own_bytes();
  peak_bytes_ = std::max(peak_bytes_, bytes);
  n_fallback_steps_ = executable->n_fallback_steps();
  CYB_ASSIGN(const std::span<const float> all, executable->output(0));
  const std::size_t v = vocab_size();
  for (const std::int32_t row : params.output_rows) {
    const std::int64_t local = std::int64_t{row} - sequence.row_begin;
    if (local < 0 || local >= sequence.n_rows) continue;
    const auto begin =
        all.begin() + static_cast<std::ptrdiff_t>(local * static_cast<std::int64_t>(v));
    logits_.insert(logits_.end(), begin, begin + static_cast<std::ptrdiff_t>(v));
  }
  return {};
}

}  // namespace cyb
