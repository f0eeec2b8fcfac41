// The order of the members is that in which they were added.
#include "runtime/run_batch.hpp"

#include <algorithm>
#include <utility>

namespace cyb {

void RunBatch::clear() {
  members_.clear();
  steps_.clear();
  left_ = {engine_->chunk_tokens(), engine_->max_outputs()};
  n_tokens_ = 0;
}

Result<bool> RunBatch::add(AnswerRun& run, RunBudget most) {
  const RunBudget budget{std::min(left_.tokens, most.tokens),
                         std::min(left_.outputs, most.outputs)};
  CYB_ASSIGN(const SequenceStep step, run.next(budget));
  if (step.ids.empty()) return false;
  steps_.push_back(step);
  const auto n = static_cast<std::uint32_t>(step.ids.size());
  members_.push_back({&run, n, {}});
  n_tokens_ += n;
  left_.tokens -= n;
  left_.outputs -= step.rows == LogitRows::kAll ? n : step.rows == LogitRows::kLast ? 1 : 0;
  return true;
}

Result<void> RunBatch::run(std::stop_token stop) {
  const LogitsSink sink = [this](std::size_t i, std::span<const float> rows) {
    members_[i].outcome = members_[i].run->took(rows);
  };
  CYB_TRY(engine_->step(steps_, sink, std::move(stop)));
  // The engine hands out nothing for steps without logits.
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].rows == LogitRows::kNone) members_[i].outcome = members_[i].run->took({});
  }
  return {};
}

Result<void> run_to_end(Engine& engine, std::span<AnswerRun* const> runs, std::stop_token stop) {
  RunBatch batch(engine);
  const auto cancelled = [&](const Result<void>& done) {
    if (done || done.error().kind() != ErrorKind::kCancelled) return false;
    for (AnswerRun* run : runs) {
      if (!run->over()) run->cancel();
    }
    return true;
  };
  std::size_t first = 0;  // where not all fit, the others are next
  while (true) {
    batch.clear();
    std::size_t n_over = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      AnswerRun& run = *runs[(first + i) % runs.size()];
      if (run.over() || !run.begun()) {
        n_over += run.over() ? 1 : 0;
        continue;
      }
      auto added = batch.add(run);
      if (!added) {
        Result<void> failed = fail(std::move(added).error());
        if (cancelled(failed)) return {};
        return failed;
      }
      if (!*added) break;
    }
    if (n_over == runs.size()) return {};
    first = (first + batch.size()) % runs.size();
    Result<void> done = batch.run(stop);
    if (cancelled(done)) return {};
    CYB_TRY(std::move(done));
    for (RunBatch::Member& member : batch.members()) CYB_TRY(std::move(member.outcome));
  }
}

}  // namespace cyb
