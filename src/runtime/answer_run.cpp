// Once it decodes, nothing here allocates while log-probabilities and speculation are off.
#include "runtime/answer_run.hpp"

#include <algorithm>
#include <utility>

namespace cyb {

std::uint32_t reusable_tokens(const Engine& engine, const Sequence& sequence,
                              std::span<const std::int32_t> ids, std::size_t most) {
  const std::span<const std::int32_t> held = sequence.tokens();
  const auto differ = std::mismatch(held.begin(), held.end(), ids.begin(), ids.end());
  std::size_t n_same = std::min(static_cast<std::size_t>(differ.second - ids.begin()), most);
  // Keys are cached rotated: those of another frequency set are of no use to this prompt.
  const std::span<const std::uint32_t> sets = sequence.frequency_sets();
  const std::uint32_t set = engine.length_rule().set_of(static_cast<std::uint32_t>(ids.size()));
  const auto other = std::ranges::find_if(sets, [set](std::uint32_t s) { return s != set; });
  if (!sets.empty()) n_same = std::min(n_same, static_cast<std::size_t>(other - sets.begin()));
  return sequence.resumable(static_cast<std::uint32_t>(n_same));
}

Result<AnswerRun> AnswerRun::create(Engine& engine, const GenerateOptions& options, TextSink sink) {
  CYB_ASSIGN(const SamplingConfig sampling, request_sampling(engine, options));
  CYB_ASSIGN(Answer answer, Answer::create(engine, options, sampling, std::move(sink)));
  CYB_ASSIGN(std::unique_ptr<Drafter> drafter,
             make_drafter(engine, options.speculation, options.row));
  AnswerRun out(engine, options, std::move(answer), std::move(drafter));
  if (out.drafter_ != nullptr) {
    SpeculationReport& report = out.report().speculation;
    report.kind = out.drafter_->kind();
    report.max_tokens = out.drafter_->max_tokens();
  }
  return out;
}

Result<void> AnswerRun::begin(Sequence&& sequence, ContextCut prompt) {
  own_ = std::make_unique<Sequence>(std::move(sequence));
  return begin_at(*own_, std::move(prompt), 1);
}

Result<void> AnswerRun::begin_at(Sequence& sequence, ContextCut prompt, std::size_t n_last) {
  if (prompt.kept.empty()) return fail(invalid_input("empty prompt"));
  CYB_TRY(engine_->check_ids(prompt.kept));
  if (prompt.kept.size() > sequence.limit_tokens()) {
    return fail(context_overflow(prompt.kept.size(), sequence.limit_tokens()));
  }
  sequence_ = &sequence;
  left_out_ = prompt.n_dropped;
  pending_ = std::move(prompt.kept);
  n_kept_ = reusable_tokens(*engine_, sequence, pending_, pending_.size() - n_last);
  sequence.truncate(n_kept_);
  answer_.begin(pending_);
  report().overflow.dropped_prompt_tokens = left_out_;
  report().reused_tokens = n_kept_;
  phase_ = Phase::kPrefill;
  since_ = Answer::Clock::now();
  return {};
}

/// Begins where `leader` has its prompt complete; `row`: the logits after it.
Result<void> AnswerRun::follow(const AnswerRun& leader, std::span<const float> row) {
  own_ = std::make_unique<Sequence>(leader.sequence().fork());
  CYB_TRY(begin_at(*own_, {leader.pending_, leader.left_out_}, 0));
  CYB_TRY(took(row));
  report().reused_tokens = leader.report().reused_tokens;
  report().timings = leader.report().timings;
  return {};
}

std::uint32_t AnswerRun::n_pending() const noexcept {
  if (phase_ == Phase::kPrefill) {
    return static_cast<std::uint32_t>(pending_.size()) - sequence_->position();
  }
  return phase_ == Phase::kDecode ? 1 : 0;
}

void AnswerRun::cancel() noexcept {
  answer_.cancel();
  phase_ = Phase::kOver;
}

double AnswerRun::lap() noexcept {
  const Answer::Clock::time_point now = Answer::Clock::now();
  return std::chrono::duration<double, std::milli>(now - std::exchange(since_, now)).count();
}

/// Goes on as if `ids` had been the prompt.
void AnswerRun::compute_again(std::vector<std::int32_t> ids) {
  pending_ = std::move(ids);
  n_kept_ = reusable_tokens(*engine_, *sequence_, pending_, pending_.size() - 1);
  sequence_->truncate(n_kept_);
  phase_ = Phase::kPrefill;
}

void AnswerRun::restart(Sequence&& sequence) {
  if (phase_ == Phase::kOver) return;
  std::vector<std::int32_t> ids = phase_ == Phase::kDecode ? with_next() : std::move(pending_);
  own_ = std::make_unique<Sequence>(std::move(sequence));
  sequence_ = own_.get();
  compute_again(std::move(ids));
}

/// What the sequence holds, and the token that was taken.
std::vector<std::int32_t> AnswerRun::with_next() const {
  std::vector<std::int32_t> ids(sequence_->tokens().begin(), sequence_->tokens().end());
  ids.push_back(answer_.next());
  return ids;
}

/// longrope: the cached keys are of the other set than a sequence of one more token asks for.
bool AnswerRun::must_switch_frequencies() const noexcept {
  const LengthRule& rule = engine_->length_rule();
  const std::span<const std::uint32_t> sets = sequence_->frequency_sets();
  return rule.kind == LengthRule::Kind::kSwitch && !sets.empty() &&
         sets.back() != rule.set_of(sequence_->position() + 1);
}

/// Goes on as if the newer half of what the context holds had been the prompt.
void AnswerRun::shift() {
  ContextCut cut = shift_context(*engine_, sequence_->tokens());
  left_out_ += cut.n_dropped;
  report().overflow.dropped_tokens += cut.n_dropped;
  ++report().overflow.shifts;
  cut.kept.push_back(answer_.next());
  compute_again(std::move(cut.kept));
}

SequenceStep AnswerRun::prefill_step(RunBudget budget) {
  const std::uint32_t done = sequence_->position();
  const auto left = static_cast<std::uint32_t>(pending_.size()) - done;
  std::uint32_t n = std::min(left, budget.tokens);
  // The last chunk needs a row of logits: without one, a token less is computed.
  const bool last = n == left && budget.outputs > 0;
  if (n == left && !last) --n;
  return {sequence_, std::span<const std::int32_t>(pending_).subspan(done, n),
          last ? LogitRows::kLast : LogitRows::kNone, static_cast<std::uint32_t>(pending_.size())};
}

/// Fills step_ids_: the token that was taken, and what may follow it.
Result<void> AnswerRun::propose(RunBudget budget) {
  step_ids_.assign(1, answer_.next());
  // Where the length decides about the frequencies, each token has its own.
  if (drafter_ == nullptr || engine_->length_rule().kind != LengthRule::Kind::kNone) return {};
  const std::size_t room = engine_->ctx_tokens() - sequence_->position();
  const std::size_t wanted = answer_.limit() - answer_.size();
  const std::size_t most = std::min({room, wanted, std::size_t{drafter_->max_tokens()} + 1,
                                     std::size_t{budget.tokens}, std::size_t{budget.outputs}});
  if (most < 2) return {};
  context_.assign(sequence_->tokens().begin(), sequence_->tokens().end());
  context_.push_back(answer_.next());
  CYB_ASSIGN(const std::span<const std::int32_t> guesses,
             drafter_->propose(context_, static_cast<std::uint32_t>(most - 1), answer_.sampler(),
                               position() + 1, options_->cancel));
  const auto possible = guesses.first(answer_.n_possible(guesses));
  step_ids_.insert(step_ids_.end(), possible.begin(), possible.end());
  return {};
}

Result<SequenceStep> AnswerRun::next(RunBudget budget) {
  if (phase_ == Phase::kDecode) {
    if (sequence_->position() == engine_->ctx_tokens()) {
      shift();
    } else if (must_switch_frequencies()) {
      std::vector<std::int32_t> ids = with_next();
      sequence_->truncate(0);
      compute_again(std::move(ids));
    }
  }
  if (phase_ == Phase::kPrefill) return prefill_step(budget);
  if (budget.tokens == 0 || budget.outputs == 0) return SequenceStep{sequence_, {}};
  CYB_TRY(propose(budget));
  return SequenceStep{sequence_, step_ids_, LogitRows::kAll};
}

Result<void> AnswerRun::took(std::span<const float> rows) {
  if (phase_ == Phase::kPrefill) return took_prompt(rows);
  if (step_ids_.size() > 1) return took_guesses(rows);
  CYB_TRY(draw(rows));
  answer_.add_time(lap());
  take();
  return {};
}

Result<void> AnswerRun::draw(std::span<const float> row) {
  return answer_.sample(row, position());
}

void AnswerRun::take() {
  phase_ = answer_.take() ? Phase::kDecode : Phase::kOver;
}

/// Once, after the prompt: how long the answer may become.
void AnswerRun::set_limit() {
  const bool endless = options_->overflow == Overflow::kShift;
  const std::uint32_t room = engine_->ctx_tokens() - sequence_->position();
  std::uint32_t most = options_->max_tokens == 0 ? UINT32_MAX : options_->max_tokens;
  if (!endless) most = std::min(most, room);
  answer_.set_limit(most, most <= engine_->ctx_tokens());
}

Result<void> AnswerRun::took_prompt(std::span<const float> row) {
  const auto size = static_cast<std::uint32_t>(pending_.size());
  if (!answering_ && options_->prefill_progress && size > n_kept_) {
    options_->prefill_progress(sequence_->position() - n_kept_, size - n_kept_);
  }
  if (sequence_->position() < size) return {};
  const double ms = lap();
  const bool first = !std::exchange(answering_, true);
  if (first) {
    GenerateTimings& timings = report().timings;
    timings.prefill_ms = ms;
    timings.prefill_tps = (size - n_kept_) * 1e3 / std::max(ms, 1e-6);
    set_limit();
    for (AnswerRun* follower : followers_) CYB_TRY(follower->follow(*this, row));
    if (answer_.limit() == 0) {
      phase_ = Phase::kOver;
      return {};
    }
  }
  CYB_TRY(draw(row));
  if (!first) answer_.add_time(ms);
  take();
  return {};
}

/// Takes those guesses that are what the answer draws, and rolls the others back.
Result<void> AnswerRun::took_guesses(std::span<const float> rows) {
  SpeculationReport& stats = report().speculation;
  ++stats.rounds;
  stats.drafted += step_ids_.size() - 1;
  const std::size_t vocab = engine_->vocab_size();
  const auto n_step = static_cast<std::uint32_t>(step_ids_.size());
  const std::uint32_t before = sequence_->position() - n_step;
  std::uint32_t n_run = 1;  // tokens of this run that are part of the text
  for (;; ++n_run) {
    CYB_TRY(answer_.sample(rows.subspan((n_run - 1) * vocab, vocab), before + n_run + left_out_));
    const bool right = n_run < n_step && answer_.next() == step_ids_[n_run];
    if (right) ++stats.accepted;
    take();
    if (!right || phase_ == Phase::kOver) break;
  }
  answer_.add_time(lap(), n_run);
  sequence_->truncate(before + n_run);
  return {};
}

}  // namespace cyb
