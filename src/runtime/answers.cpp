// Several answers to one prompt: forks of one sequence that share its pages and run side by side.
#include <string>
#include <utility>

#include "runtime/answer_run.hpp"
#include "runtime/run_batch.hpp"

namespace cyb {
namespace {

Result<std::vector<GenerateResult>> only_one(Session& session, std::span<const std::int32_t> prompt,
                                             const GenerateOptions& options,
                                             const AnswerSink& on_text) {
  TextSink sink;
  if (on_text) sink = [&](std::string_view text) { on_text(options.row, text); };
  CYB_ASSIGN(GenerateResult one, generate(session, prompt, options, sink));
  std::vector<GenerateResult> out;
  out.push_back(std::move(one));
  return out;
}

}  // namespace

Result<std::vector<GenerateResult>> generate_answers(Session& session,
                                                     std::span<const std::int32_t> prompt,
                                                     const GenerateOptions& options,
                                                     std::uint32_t n_answers,
                                                     const AnswerSink& on_text) {
  if (n_answers == 0) return fail(invalid_input("no answers are asked for"));
  if (n_answers == 1) return only_one(session, prompt, options, on_text);
  CYB_ASSIGN(Session::Use user, session.use());
  Engine& engine = user.engine();
  CYB_TRY(engine.check_ids(prompt));
  GenerateOptions own = options;
  if (own.seed == 0) {  // one for all of them
    CYB_ASSIGN(const SamplingConfig sampling, request_sampling(engine, options));
    own.seed = sampling.seed;
  }
  std::vector<GenerateOptions> each(n_answers, own);
  std::vector<AnswerRun> runs;
  runs.reserve(n_answers);
  std::vector<AnswerRun*> all;
  for (std::uint32_t i = 0; i < n_answers; ++i) {
    each[i].row = options.row + i;
    TextSink sink;
    if (on_text)
      sink = [&on_text, row = each[i].row](std::string_view text) { on_text(row, text); };
    CYB_ASSIGN(AnswerRun run, AnswerRun::create(engine, each[i], std::move(sink)));
    all.push_back(&runs.emplace_back(std::move(run)));
    if (i > 0) all.front()->lead(*all.back());
  }
  CYB_TRY(all.front()->begin(user.sequence(), fit_prompt(engine, prompt, options)));
  CYB_TRY(run_to_end(engine, all, options.cancel));
  std::vector<GenerateResult> out;
  for (AnswerRun& run : runs) out.push_back(run.finish());
  return out;
}

}  // namespace cyb
