// RunBatch: answers that share one run of the engine.
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "runtime/answer_run.hpp"

namespace cyb {

class RunBatch {
 public:
  struct Member {
    AnswerRun* run;
    std::uint32_t n_tokens;
    Result<void> outcome;  // what sampling said, after run()
  };

  explicit RunBatch(Engine& engine) : engine_(&engine) { clear(); }

  void clear();
  /// The next step of `run`, inside `most`. False: nothing of it fits any more.
  /// Errors: as AnswerRun::next(); the batch is as before.
  Result<bool> add(AnswerRun& run, RunBudget most = {UINT32_MAX, UINT32_MAX});
  bool empty() const noexcept { return members_.empty(); }
  std::size_t size() const noexcept { return members_.size(); }
  std::uint32_t n_tokens() const noexcept { return n_tokens_; }
  const RunBudget& left() const noexcept { return left_; }
  std::span<Member> members() noexcept { return members_; }
  /// Runs all of it and hands each member its logits. Errors: the engine's, and then no sequence
  /// and no answer has changed.
  Result<void> run(std::stop_token stop = {});

 private:
  Engine* engine_;
  std::vector<Member> members_;
  std::vector<SequenceStep> steps_;
  RunBudget left_;
  std::uint32_t n_tokens_ = 0;
};

/// Runs all of them to their ends; cancelled ones are over, which is no error. Errors: the
/// engine's, sampling's.
Result<void> run_to_end(Engine& engine, std::span<AnswerRun* const> runs, std::stop_token stop);

}  // namespace cyb
