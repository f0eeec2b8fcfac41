// AnswerRun: one answer on one sequence as a machine that says what the model must run next and
// takes the logits. Whoever drives it joins as many as it likes into one run; what an answer says
// never depends on that.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/answer.hpp"
#include "runtime/overflow.hpp"
#include "runtime/speculation.hpp"

namespace cyb {

/// What is left of one run of the engine: rows of tokens, rows of logits.
struct RunBudget {
  std::uint32_t tokens = 0, outputs = 0;
};

class AnswerRun {
 public:
  /// `engine` and `options` must outlive this. Errors: as generate() before anything runs.
  static Result<AnswerRun> create(Engine& engine, const GenerateOptions& options, TextSink sink);

  /// The prompt, cut where GenerateOptions::overflow asks for it. What `sequence` holds of it is
  /// kept, the rest rolled back. `sequence` must outlive this. Errors: InvalidInput,
  /// ContextOverflow.
  Result<void> begin(Sequence& sequence, ContextCut prompt) {
    return begin_at(sequence, std::move(prompt), 1);
  }
  /// The same on a sequence of its own.
  Result<void> begin(Sequence&& sequence, ContextCut prompt);
  /// Once this prompt is complete, `other` goes on from a fork of its sequence as if it had begun
  /// with the same prompt. Both stay where they are in memory from now on.
  void lead(AnswerRun& other) { followers_.push_back(&other); }
  /// The sequence was lost: the next steps compute what it held again, on `sequence`. No token of
  /// the answer changes.
  void restart(Sequence&& sequence);

  /// What to run next, inside the budget; empty ids where nothing of it fits. Not after over().
  /// The span is valid until the next call here. Errors: what a draft model's engine says.
  Result<SequenceStep> next(RunBudget budget);
  /// The logits that the step asked for [R, V], after the engine has run it; empty for none.
  /// Errors: what sampling says; then the answer cannot go on.
  Result<void> took(std::span<const float> rows);

  bool over() const noexcept { return phase_ == Phase::kOver; }
  /// A sequence is there to run on (false: it follows another whose prompt is not complete).
  bool begun() const noexcept { return sequence_ != nullptr; }
  /// Still computing what the sequence must hold before the next token is drawn.
  bool prefilling() const noexcept { return phase_ == Phase::kPrefill; }
  /// Tokens that are still to be computed before the next one is drawn.
  std::uint32_t n_pending() const noexcept;
  void cancel() noexcept;
  /// The prompt and what was answered: what the next request of this conversation begins with.
  const Sequence& sequence() const noexcept { return *sequence_; }
  GenerateResult& report() noexcept { return answer_.result(); }
  const GenerateResult& report() const noexcept { return answer_.result(); }
  GenerateResult finish() { return answer_.finish(); }
  /// After finish(): gives back the pages of a sequence of its own.
  void release() noexcept {
    sequence_ = nullptr;
    own_.reset();
  }

 private:
  enum class Phase : std::uint8_t { kPrefill, kDecode, kOver };
  AnswerRun(Engine& engine, const GenerateOptions& options, Answer answer,
            std::unique_ptr<Drafter> drafter)
      : engine_(&engine),
        options_(&options),
        answer_(std::move(answer)),
        drafter_(std::move(drafter)) {}

  /// At least `n_last` tokens are computed, though the sequence holds them: nobody has their
  /// logits.
  Result<void> begin_at(Sequence& sequence, ContextCut prompt, std::size_t n_last);
  Result<void> follow(const AnswerRun& leader, std::span<const float> row);
  std::uint32_t position() const noexcept { return sequence_->position() + left_out_; }
  bool must_switch_frequencies() const noexcept;
  void compute_again(std::vector<std::int32_t> ids);
  void shift();
  std::vector<std::int32_t> with_next() const;
  SequenceStep prefill_step(RunBudget budget);
  Result<void> propose(RunBudget budget);
  Result<void> took_prompt(std::span<const float> row);
  Result<void> took_guesses(std::span<const float> rows);
  /// Draws the token after the sequence and takes it into the answer.
  Result<void> draw(std::span<const float> row);
  void take();
  void set_limit();
  double lap() noexcept;

  Engine* engine_;
  const GenerateOptions* options_;
  Answer answer_;
  std::unique_ptr<Drafter> drafter_;
  std::unique_ptr<Sequence> own_;
  Sequence* sequence_ = nullptr;
  std::vector<AnswerRun*> followers_;
  Phase phase_ = Phase::kPrefill;
  bool answering_ = false;              // the prompt was complete once
  std::uint32_t left_out_ = 0;          // tokens in front that the sequence no longer holds
  std::uint32_t n_kept_ = 0;            // of pending_, found in the sequence
  std::vector<std::int32_t> pending_;   // kPrefill: what the sequence shall hold
  std::vector<std::int32_t> step_ids_;  // kDecode: the token that was taken, then guesses
  std::vector<std::int32_t> context_;   // scratch of the drafter
  Answer::Clock::time_point since_{};
};

/// Of what `sequence` holds, the part that a prompt of `ids` can go on from: the longest common
/// prefix whose keys were rotated for this length; at most `most` tokens.
std::uint32_t reusable_tokens(const Engine& engine, const Sequence& sequence,
                              std::span<const std::int32_t> ids, std::size_t most);

}  // namespace cyb
