// One answer: prefill, then sample and advance until a stop. After the first step nothing here
// allocates while log-probabilities and speculation are off.
#include "runtime/generation.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/answer.hpp"
#include "runtime/overflow.hpp"
#include "runtime/speculation.hpp"

namespace cyb {
namespace {

class Generator {
 public:
  Generator(Session::Use& user, const GenerateOptions& options, Answer answer,
            std::unique_ptr<Drafter> drafter)
      : user_(user),
        options_(options),
        answer_(std::move(answer)),
        drafter_(std::move(drafter)),
        report_(answer_.result()) {}

  /// Errors other than cancellation.
  Result<GenerateResult> run(std::span<const std::int32_t> prompt);

 private:
  Result<bool> prefill(std::span<const std::int32_t> prompt);
  Result<void> decode();
  Result<bool> advance();
  Result<bool> shift();
  Result<bool> check_guesses(std::span<const std::int32_t> guesses);
  Result<std::span<const std::int32_t>> guesses();
  std::uint32_t position() const noexcept { return user_.position() + left_out_; }
  /// False where `done` was cancelled.
  Result<bool> completed(Result<void> done);

  Session::Use& user_;
  const GenerateOptions& options_;
  Answer answer_;
  std::unique_ptr<Drafter> drafter_;
  GenerateResult& report_;
  Result<void> sampled_;
  std::uint32_t left_out_ = 0;
  std::vector<std::int32_t> tokens_;  // scratch: what guesses go on from, then what a run checks
  std::vector<float> rows_;           // scratch: logits of a run with guesses [n, V]
};

Result<bool> Generator::completed(Result<void> done) {
  if (done) return true;
  if (done.error().kind() != ErrorKind::kCancelled) return fail(std::move(done).error());
  answer_.cancel();
  return false;
}

/// False: cancelled.
Result<bool> Generator::prefill(std::span<const std::int32_t> prompt) {
  const Answer::Clock::time_point start = Answer::Clock::now();
  auto done = user_.prefill(prompt, {options_.cancel, options_.prefill_progress});
  GenerateTimings& timings = report_.timings;
  timings.prefill_ms = Answer::ms_since(start);
  if (!done) return completed(fail(std::move(done).error()));
  report_.reused_tokens = done->n_reused;
  timings.prefill_tps = done->n_computed * 1e3 / std::max(timings.prefill_ms, 1e-6);
  return true;
}

/// Runs the token that was taken and draws the next one. False: cancelled.
Result<bool> Generator::advance() {
  if (user_.position() == user_.engine().ctx_tokens()) return shift();
  // The sink stays inside std::function's own storage: no allocation per step.
  const LogitsSink sink = [this](std::size_t, std::span<const float> row) {
    sampled_ = answer_.sample(row, position());
  };
  const Answer::Clock::time_point start = Answer::Clock::now();
  CYB_ASSIGN(const bool ran, completed(user_.advance(answer_.next(), sink, options_.cancel)));
  if (!ran) return false;
  CYB_TRY(std::exchange(sampled_, {}));
  answer_.add_time(Answer::ms_since(start));
  return true;
}

/// Goes on as if the newer half of what the context holds had been the prompt.
Result<bool> Generator::shift() {
  const ContextCut cut = shift_context(user_.engine(), user_.tokens());
  tokens_.assign(cut.kept.begin(), cut.kept.end());
  tokens_.push_back(answer_.next());
  const Answer::Clock::time_point start = Answer::Clock::now();
  auto done = user_.prefill(tokens_, {options_.cancel, {}});
  if (!done) return completed(fail(std::move(done).error()));
  left_out_ += cut.n_dropped;
  report_.overflow.dropped_tokens += cut.n_dropped;
  ++report_.overflow.shifts;
  CYB_TRY(answer_.sample(user_.last_logits(), position()));
  answer_.add_time(Answer::ms_since(start));
  return true;
}

/// What may follow the token that was taken; none where a run of one token is as good.
Result<std::span<const std::int32_t>> Generator::guesses() {
  const std::size_t room = user_.engine().ctx_tokens() - user_.position();
  const std::size_t wanted = answer_.limit() - answer_.size();
  const std::size_t most = std::min({room, wanted, std::size_t{drafter_->max_tokens()} + 1});
  if (most < 2) return std::span<const std::int32_t>();
  tokens_.assign(user_.tokens().begin(), user_.tokens().end());
  tokens_.push_back(answer_.next());
  return drafter_->propose(tokens_, static_cast<std::uint32_t>(most - 1), answer_.sampler(),
                           position() + 1, options_.cancel);
}

/// Runs the token that was taken with `guesses` after it, and takes those that are what the answer
/// draws. False: the answer is over, or cancelled.
Result<bool> Generator::check_guesses(std::span<const std::int32_t> guesses) {
  std::vector<std::int32_t> ids = {answer_.next()};
  ids.insert(ids.end(), guesses.begin(), guesses.end());
  const std::uint32_t before = user_.position();
  const std::size_t vocab = user_.engine().vocab_size();
  const LogitsSink sink = [this](std::size_t, std::span<const float> rows) {
    rows_.assign(rows.begin(), rows.end());
  };
  const Answer::Clock::time_point start = Answer::Clock::now();
  CYB_ASSIGN(const bool ran, completed(user_.advance(ids, sink, options_.cancel)));
  if (!ran) return false;
  SpeculationReport& stats = report_.speculation;
  ++stats.rounds;
  stats.drafted += guesses.size();
  bool going_on = true;
  std::uint32_t n_run = 1;  // tokens of this run that are part of the text
  for (; going_on; ++n_run) {
    const std::span<const float> row = std::span(rows_).subspan((n_run - 1) * vocab, vocab);
    CYB_TRY(answer_.sample(row, before + n_run + left_out_));
    if (n_run == ids.size() || answer_.next() != ids[n_run]) break;
    ++stats.accepted;
    going_on = answer_.take();
    if (!going_on) break;
  }
  answer_.add_time(Answer::ms_since(start), n_run);
  CYB_TRY(user_.truncate(before + n_run));
  return going_on;
}

Result<void> Generator::decode() {
  const Engine& engine = user_.engine();
  const bool endless = options_.overflow == Overflow::kShift;
  const std::uint32_t room = engine.ctx_tokens() - user_.position();
  std::uint32_t most = options_.max_tokens == 0 ? UINT32_MAX : options_.max_tokens;
  if (!endless) most = std::min(most, room);
  answer_.set_limit(most, most <= engine.ctx_tokens());
  if (most == 0) return {};
  CYB_TRY(answer_.sample(user_.last_logits(), position()));
  while (answer_.take()) {
    std::span<const std::int32_t> ahead;
    if (drafter_ != nullptr) {
      auto proposed = guesses();
      if (!proposed) {
        CYB_TRY(completed(fail(std::move(proposed).error())));
        return {};
      }
      ahead = *proposed;
    }
    CYB_ASSIGN(const bool going_on, ahead.empty() ? advance() : check_guesses(ahead));
    if (!going_on) return {};
  }
  return {};
}

Result<GenerateResult> Generator::run(std::span<const std::int32_t> prompt) {
  const ContextCut cut = fit_prompt(user_.engine(), prompt, options_);
  report_.overflow.dropped_prompt_tokens = left_out_ = cut.n_dropped;
  if (drafter_ != nullptr) {
    report_.speculation.kind = drafter_->kind();
    report_.speculation.max_tokens = drafter_->max_tokens();
  }
  answer_.begin(cut.kept);
  CYB_ASSIGN(const bool complete, prefill(cut.kept));
  if (complete) CYB_TRY(decode());
  return answer_.finish();
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "length";
}

std::string_view overflow_name(Overflow overflow) noexcept {
  switch (overflow) {
    case Overflow::kError:
      return "error";
    case Overflow::kTruncate:
      return "truncate";
    case Overflow::kShift:
      return "shift";
  }
  return "error";
}

Result<SamplingConfig> request_sampling(const Engine& engine, const GenerateOptions& options) {
  CYB_TRY(check_overrides(options.sampling));
  SamplingConfig sampling =
      resolve_sampling(engine.sampling_defaults(), options.sampling, options.seed);
  CYB_TRY(resolve_texts(engine.tokenizer(), options.sampling, sampling));
  return sampling;
}

Result<GenerateResult> generate(Session& session, std::span<const std::int32_t> prompt,
                                const GenerateOptions& options, const TextSink& on_text) {
  CYB_ASSIGN(Session::Use user, session.use());
  const Engine& engine = user.engine();
  CYB_TRY(engine.check_ids(prompt));
  CYB_ASSIGN(const SamplingConfig sampling, request_sampling(engine, options));
  CYB_ASSIGN(Answer answer, Answer::create(engine, options, sampling, on_text));
  CYB_ASSIGN(std::unique_ptr<Drafter> drafter,
             make_drafter(engine, options.speculation, options.row));
  Generator generator(user, options, std::move(answer), std::move(drafter));
  return generator.run(prompt);
}

}  // namespace cyb
