// Several answers to one prompt: forks of one sequence that share its pages and run side by side.
#include <algorithm>
#include <string>
#include <utility>

#include "runtime/answer.hpp"
#include "runtime/overflow.hpp"

namespace cyb {
namespace {

class Group {
 public:
  Group(Session::Use& user, const GenerateOptions& options) : user_(user), options_(options) {}

  Result<void> add(GenerateOptions options, const SamplingConfig& sampling, TextSink sink);
  Result<std::vector<GenerateResult>> run(const ContextCut& prompt);

 private:
  Result<bool> prefill(const ContextCut& prompt);
  Result<bool> step(std::span<const std::size_t> which);
  Result<void> decode();

  Session::Use& user_;
  const GenerateOptions& options_;
  std::vector<std::unique_ptr<GenerateOptions>> own_options_;
  std::vector<Answer> answers_;
  std::vector<Sequence> forks_;  // of answers 1 ..; answer 0 is the session's own sequence
  std::vector<Sequence*> sequences_;
  std::uint32_t left_out_ = 0;
};

Result<void> Group::add(GenerateOptions options, const SamplingConfig& sampling, TextSink sink) {
  own_options_.push_back(std::make_unique<GenerateOptions>(std::move(options)));
  CYB_ASSIGN(Answer answer,
             Answer::create(user_.engine(), *own_options_.back(), sampling, std::move(sink)));
  answers_.push_back(std::move(answer));
  return {};
}

/// False: cancelled.
Result<bool> Group::prefill(const ContextCut& prompt) {
  const Answer::Clock::time_point start = Answer::Clock::now();
  auto done = user_.prefill(prompt.kept, {options_.cancel, options_.prefill_progress});
  const double ms = Answer::ms_since(start);
  const bool cancelled = !done && done.error().kind() == ErrorKind::kCancelled;
  if (!done && !cancelled) return fail(std::move(done).error());
  for (Answer& answer : answers_) {
    GenerateResult& report = answer.result();
    report.timings.prefill_ms = ms;
    report.overflow.dropped_prompt_tokens = prompt.n_dropped;
    if (cancelled) {
      answer.cancel();
      continue;
    }
    report.reused_tokens = done->n_reused;
    report.timings.prefill_tps = done->n_computed * 1e3 / std::max(ms, 1e-6);
  }
  return !cancelled;
}

/// One token for each of `which`. False: cancelled.
Result<bool> Group::step(std::span<const std::size_t> which) {
  std::vector<SequenceStep> steps;
  std::vector<std::int32_t> ids;
  ids.reserve(which.size());
  for (const std::size_t i : which) {
    ids.push_back(answers_[i].next());
    steps.push_back({sequences_[i], {&ids.back(), 1}, LogitRows::kLast});
  }
  Result<void> sampled;
  const LogitsSink sink = [&](std::size_t at, std::span<const float> row) {
    const std::size_t i = which[at];
    if (sampled) sampled = answers_[i].sample(row, sequences_[i]->position() + left_out_);
  };
  const Answer::Clock::time_point start = Answer::Clock::now();
  auto done = user_.engine().step(steps, sink, options_.cancel);
  if (!done && done.error().kind() == ErrorKind::kCancelled) return false;
  CYB_TRY(std::move(done));
  CYB_TRY(std::move(sampled));
  for (const std::size_t i : which) answers_[i].add_time(Answer::ms_since(start));
  return true;
}

Result<void> Group::decode() {
  Engine& engine = user_.engine();
  const std::size_t most = std::min(engine.chunk_tokens(), engine.max_outputs());
  std::vector<std::size_t> going(answers_.size());
  for (std::size_t i = 0; i < going.size(); ++i) going[i] = i;
  while (true) {
    std::erase_if(going, [this](std::size_t i) { return !answers_[i].take(); });
    if (going.empty()) return {};
    for (std::size_t at = 0; at < going.size(); at += most) {
      const std::size_t n = std::min(most, going.size() - at);
      CYB_ASSIGN(const bool ran, step(std::span(going).subspan(at, n)));
      if (ran) continue;
      for (const std::size_t i : going) answers_[i].cancel();
      return {};
    }
  }
}

Result<std::vector<GenerateResult>> Group::run(const ContextCut& prompt) {
  left_out_ = prompt.n_dropped;
  for (Answer& answer : answers_) answer.begin(prompt.kept);
  CYB_ASSIGN(const bool complete, prefill(prompt));
  if (complete) {
    const std::uint32_t room = user_.engine().ctx_tokens() - user_.position();
    const std::uint32_t most =
        options_.max_tokens == 0 ? room : std::min(room, options_.max_tokens);
    for (Answer& answer : answers_) {
      answer.set_limit(most, true);
      if (most > 0) CYB_TRY(answer.sample(user_.last_logits(), user_.position() + left_out_));
    }
    Sequence& own = user_.sequence();
    sequences_.push_back(&own);
    forks_.reserve(answers_.size());
    for (std::size_t i = 1; i < answers_.size(); ++i) {
      forks_.push_back(own.fork());
      sequences_.push_back(&forks_.back());
    }
    if (most > 0) CYB_TRY(decode());
  }
  std::vector<GenerateResult> out;
  for (Answer& answer : answers_) out.push_back(answer.finish());
  return out;
}

}  // namespace

Result<std::vector<GenerateResult>> generate_answers(Session& session,
                                                     std::span<const std::int32_t> prompt,
                                                     const GenerateOptions& options,
                                                     std::uint32_t n_answers,
                                                     const AnswerSink& on_text) {
  if (n_answers == 0) return fail(invalid_input("no answers are asked for"));
  const bool guesses =
      options.speculation.lookup_tokens != 0 || options.speculation.draft != nullptr;
  if (n_answers > 1 && (guesses || options.overflow == Overflow::kShift)) {
    return fail(invalid_input(std::string(guesses ? "speculation" : "shifting the context") +
                              " goes with one answer at a time"));
  }
  if (n_answers == 1) {
    TextSink sink;
    if (on_text) sink = [&](std::string_view text) { on_text(options.row, text); };
    CYB_ASSIGN(GenerateResult one, generate(session, prompt, options, sink));
    std::vector<GenerateResult> out;
    out.push_back(std::move(one));
    return out;
  }
  CYB_ASSIGN(Session::Use user, session.use());
  CYB_TRY(user.engine().check_ids(prompt));
  if (user.engine().length_rule().kind == LengthRule::Kind::kSwitch)
    return fail(not_built("several answers side by side of a model with longrope"));
  CYB_ASSIGN(const SamplingConfig sampling, request_sampling(user.engine(), options));
  Group group(user, options);
  for (std::uint32_t i = 0; i < n_answers; ++i) {
    GenerateOptions own = options;
    own.row = options.row + i;
    TextSink sink;
    if (on_text) sink = [&on_text, row = own.row](std::string_view text) { on_text(row, text); };
    CYB_TRY(group.add(std::move(own), sampling, std::move(sink)));
  }
  return group.run(fit_prompt(user.engine(), prompt, options));
}

}  // namespace cyb
