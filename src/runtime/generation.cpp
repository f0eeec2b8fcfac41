// One answer on a session. After the first step nothing allocates while log-probabilities and
// speculation are off.
#include "runtime/generation.hpp"

#include <utility>

#include "runtime/answer_run.hpp"
#include "runtime/run_batch.hpp"

namespace cyb {
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
  Engine& engine = user.engine();
  CYB_TRY(engine.check_ids(prompt));
  CYB_ASSIGN(AnswerRun run, AnswerRun::create(engine, options, on_text));
  CYB_TRY(run.begin(user.sequence(), fit_prompt(engine, prompt, options)));
  AnswerRun* const runs[] = {&run};
  CYB_TRY(run_to_end(engine, runs, options.cancel));
  return run.finish();
}

}  // namespace cyb
