// One round: admit, join, run, report. Memory that runs out takes kept prefixes first, then the
// pages of the answer admitted last, which is computed again later: warm and cold are the same
// bits.
#include "runtime/scheduler_core.hpp"

#include <algorithm>
#include <utility>

namespace cyb {

Result<std::unique_ptr<LiveRequest>> LiveRequest::create(Engine& engine, GenerateRequest request,
                                                         RequestEvents events) {
  auto live = std::make_unique<LiveRequest>();
  const std::size_t n = request.n_answers;
  CYB_TRY(engine.check_ids(request.prompt));
  live->prompt = fit_prompt(engine, request.prompt, request.options);
  if (live->prompt.kept.empty()) return fail(invalid_input("empty prompt"));
  if (live->prompt.kept.size() > engine.ctx_tokens()) {
    return fail(context_overflow(live->prompt.kept.size(), engine.ctx_tokens()));
  }
  request.options.cancel = {};
  request.options.prefill_progress = {};
  if (request.options.seed == 0) {  // one for all answers
    CYB_ASSIGN(const SamplingConfig sampling, request_sampling(engine, request.options));
    request.options.seed = sampling.seed;
  }
  live->options.assign(n, request.options);
  live->texts.resize(n);
  live->n_reported.resize(n);
  live->results.resize(n);
  live->runs.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    live->options[i].row = request.options.row + static_cast<std::uint32_t>(i);
    const TextSink sink = [texts = &live->texts, i](std::string_view text) { (*texts)[i] += text; };
    CYB_ASSIGN(AnswerRun run, AnswerRun::create(engine, live->options[i], sink));
    live->runs.push_back(std::move(run));
    if (i > 0) live->runs.front().lead(live->runs.back());
  }
  live->request = std::move(request);
  live->events = std::move(events);
  return live;
}

void LiveRequest::cancel() noexcept {
  for (AnswerRun& run : runs) {
    if (!run.over()) run.cancel();
  }
}

void LiveRequest::tell_end() {
  if (!events.on_done) return;
  if (error) return events.on_done(fail(*std::move(error)));
  std::vector<GenerateResult> out;
  for (auto& result : results) out.push_back(*std::move(result));
  events.on_done(std::move(out));
}

void SchedulerCore::add(std::unique_ptr<LiveRequest> request) {
  // Who comes back after a pause has no claim to what was not asked for meanwhile (Sheng et al.
  // 2024, virtual token counters).
  double least = -1;
  const auto look = [&](const LiveRequest& other) {
    const double served = service_[other.request.tenant];
    if (least < 0 || served < least) least = served;
  };
  for (const auto& other : waiting_) look(*other);
  for (const auto& other : active_) look(*other);
  if (least < 0) service_.clear();
  double& own = service_[request->request.tenant];
  own = std::max(own, least);
  waiting_.push_back(std::move(request));
}

void SchedulerCore::cancel(RequestId id) {
  const auto waiting = std::ranges::find(waiting_, id, [](const auto& r) { return r->id; });
  if (waiting != waiting_.end()) {
    (*waiting)->cancel();
    finish(std::move(*waiting));
    waiting_.erase(waiting);
    return;
  }
  const auto active = std::ranges::find(active_, id, [](const auto& r) { return r->id; });
  if (active != active_.end()) (*active)->cancel();
}

void SchedulerCore::cancel_all() {
  while (!waiting_.empty()) cancel(waiting_.front()->id);
  for (const auto& request : active_) request->cancel();
  settle();
}

SchedulerCore::Waiting::iterator SchedulerCore::next_waiting() {
  const auto before = [this](const auto& a, const auto& b) {
    const GenerateRequest &x = a->request, &y = b->request;
    if (x.priority != y.priority) return x.priority > y.priority;
    const double served_x = service_[x.tenant], served_y = service_[y.tenant];
    if (served_x != served_y) return served_x < served_y;
    return a->id < b->id;
  };
  return std::ranges::min_element(waiting_, before);
}

/// Answers that hold pages and need more.
std::size_t SchedulerCore::n_growing() const {
  return static_cast<std::size_t>(std::ranges::count_if(slots_, &Slot::growing));
}

/// Room for `n_tokens` more, beside a page for each answer that grows.
bool SchedulerCore::has_room(std::uint64_t n_tokens) {
  const KvPool& pool = engine_.kv_pool();
  const std::uint64_t need = n_tokens + std::uint64_t{n_growing() + 1} * pool.page_tokens();
  while (std::uint64_t{pool.free_pages()} * pool.page_tokens() < need) {
    if (!evict_prefix()) return false;
  }
  return true;
}

bool SchedulerCore::evict_prefix() {
  if (!prefixes_.evict_one()) return false;
  ++stats_.evicted_prefixes;
  return true;
}

void SchedulerCore::resume_paused() {
  for (Slot& slot : slots_) {
    if (!slot.paused || slot.run->over()) continue;
    if (!has_room(slot.run->n_pending()) && n_growing() > 0) return;
    slot.paused = false;
  }
}

void SchedulerCore::admit() {
  resume_paused();
  if (std::ranges::any_of(slots_, &Slot::paused)) return;
  while (!waiting_.empty()) {
    const Waiting::iterator next = next_waiting();
    LiveRequest& request = **next;
    // A request of many answers is not passed by smaller ones for ever.
    if (slots_.size() + request.runs.size() > options_.max_running) return;
    std::optional<Sequence> kept = prefixes_.find(request.request.tenant, request.prompt.kept);
    const std::uint64_t n_kept = kept ? kept->position() : 0;
    if (!has_room(request.prompt.kept.size() - n_kept) && n_growing() > 0) return;
    std::unique_ptr<LiveRequest> owned = std::move(*next);
    waiting_.erase(next);
    start(std::move(owned), kept ? *std::move(kept) : engine_.new_sequence());
  }
}

void SchedulerCore::start(std::unique_ptr<LiveRequest> request, Sequence sequence) {
  Result<void> begun = request->runs.front().begin(std::move(sequence), request->prompt);
  if (!begun) request->error = std::move(begun).error();
  if (request->error) {
    request->cancel();
    return finish(std::move(request));
  }
  const GenerateResult& report = request->runs.front().report();
  stats_.prompt_tokens += report.prompt_tokens;
  stats_.reused_tokens += report.reused_tokens;
  for (AnswerRun& run : request->runs)
    slots_.push_back({request.get(), &run, ++n_admitted_, false});
  active_.push_back(std::move(request));
}

void SchedulerCore::add_to_batch(Slot& slot, RunBudget most) {
  if (!slot.growing()) return;
  auto added = batch_.add(*slot.run, most);
  if (!added) fail_request(*slot.request, std::move(added).error());
}

/// Those that wait for their next token first; prompts take what is left, and one row of logits is
/// theirs in any case.
void SchedulerCore::collect() {
  batch_.clear();
  const std::size_t n = slots_.size();
  const bool prompts = std::ranges::any_of(
      slots_, [](const Slot& slot) { return !slot.paused && slot.run->prefilling(); });
  auto others = static_cast<std::uint32_t>(std::ranges::count_if(
      slots_, [](const Slot& slot) { return slot.growing() && !slot.run->prefilling(); }));
  for (std::size_t i = 0; i < n; ++i) {
    Slot& slot = slots_[(first_ + i) % n];
    if (!slot.growing() || slot.run->prefilling()) continue;
    --others;
    const std::uint32_t left = batch_.left().outputs - (prompts && !batch_.empty() ? 1 : 0);
    // Guesses take rows that nobody else wants.
    const std::uint32_t own = left > others ? left - others : std::min(left, std::uint32_t{1});
    add_to_batch(slot, {options_.prefill_tokens, own});
  }
  // Where not all of them fit into a run, the others are first in the next.
  first_ = n == 0 ? 0 : (first_ + batch_.size()) % n;
  const std::uint32_t before = batch_.n_tokens();
  const std::uint32_t most = batch_.empty() ? UINT32_MAX : options_.prefill_tokens;
  for (Slot& slot : slots_) {
    const RunBudget left{most - (batch_.n_tokens() - before), UINT32_MAX};
    if (slot.run->prefilling() && left.tokens > 0) add_to_batch(slot, left);
  }
}

void SchedulerCore::run_batch() {
  if (batch_.empty()) return;
  Result<void> done = batch_.run();
  if (done) return account();
  if (done.error().kind() == ErrorKind::kOutOfMemory && take_pages()) return;
  if (batch_.size() == 1) {
    return fail_request(owner(*batch_.members()[0].run), std::move(done).error());
  }
  // One of them is at fault: each runs alone, and only that one ends.
  std::vector<AnswerRun*> runs;
  for (const RunBatch::Member& member : batch_.members()) runs.push_back(member.run);
  for (AnswerRun* run : runs) {
    if (run->over()) continue;
    batch_.clear();
    auto added = batch_.add(*run);
    done = added ? batch_.run() : fail(std::move(added).error());
    if (done) {
      account();
    } else {
      fail_request(owner(*run), std::move(done).error());
    }
  }
}

void SchedulerCore::account() {
  ++stats_.runs;
  stats_.run_tokens += batch_.n_tokens();
  for (RunBatch::Member& member : batch_.members()) {
    LiveRequest& request = owner(*member.run);
    service_[request.request.tenant] += member.n_tokens;
    if (!member.outcome) fail_request(request, std::move(member.outcome).error());
  }
}

/// Pages for the others: of a kept prefix, else of the least important answer, the one admitted
/// last among equals. False: only one is left.
bool SchedulerCore::take_pages() {
  if (evict_prefix()) return true;
  Slot* victim = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.growing()) continue;
    if (victim == nullptr || slot.request->request.priority <= victim->request->request.priority) {
      victim = &slot;
    }
  }
  if (n_growing() < 2) return false;
  victim->run->restart(engine_.new_sequence());
  victim->paused = true;
  ++stats_.preempted;
  return true;
}

void SchedulerCore::fail_request(LiveRequest& request, Error error) {
  if (!request.error) request.error = std::move(error);
  request.cancel();
}

LiveRequest& SchedulerCore::owner(const AnswerRun& run) {
  return *std::ranges::find(slots_, &run, &Slot::run)->request;
}

/// What the leader holds as soon as its prompt is complete.
void SchedulerCore::keep_prompt(LiveRequest& request) {
  const AnswerRun& leader = request.runs.front();
  if (request.kept || request.error || !leader.begun() || leader.prefilling()) return;
  if (leader.report().finish_reason == FinishReason::kCancelled) return;
  request.kept = true;
  prefixes_.insert(request.request.tenant, leader.sequence());
}

void SchedulerCore::report(LiveRequest& request) {
  for (std::size_t i = 0; i < request.runs.size(); ++i) {
    AnswerRun& run = request.runs[i];
    if (request.results[i]) continue;
    AnswerDelta delta;
    delta.index = request.options[i].row;
    delta.over = run.over();
    if (run.over()) {
      // What was answered is what the next request of this conversation begins with.
      if (i == 0 && run.begun() && !request.error) {
        prefixes_.insert(request.request.tenant, run.sequence());
      }
      request.results[i] = run.finish();
      run.release();
      delta.finish_reason = request.results[i]->finish_reason;
      stats_.answer_tokens += request.results[i]->tokens.size();
    }
    const GenerateResult& answer = request.results[i] ? *request.results[i] : run.report();
    delta.text = request.texts[i];
    delta.tokens = std::span(answer.logprobs).subspan(request.n_reported[i]);
    delta.n_tokens = static_cast<std::uint32_t>(answer.tokens.size());
    const bool news = delta.over || !delta.text.empty() || !delta.tokens.empty();
    if (news && request.events.on_delta && !request.error) request.events.on_delta(delta);
    request.n_reported[i] = answer.logprobs.size();
    request.texts[i].clear();
  }
}

/// After a run: what is told, who is done.
void SchedulerCore::settle() {
  for (auto& request : active_) {
    keep_prompt(*request);
    report(*request);
  }
  std::erase_if(slots_, [](const Slot& slot) { return slot.run->over(); });
  for (auto& request : active_) {
    if (std::ranges::all_of(request->runs, &AnswerRun::over)) finish(std::move(request));
  }
  std::erase(active_, nullptr);
}

void SchedulerCore::finish(std::unique_ptr<LiveRequest> request) {
  report(*request);
  const bool was_cancelled = std::ranges::any_of(request->results, [](const auto& result) {
    return result->finish_reason == FinishReason::kCancelled;
  });
  ++(request->error ? stats_.failed : was_cancelled ? stats_.cancelled : stats_.finished);
  // Pages and tables go back now, whenever the caller lets go of the request.
  request->runs.clear();
  done_.push_back(std::move(request));
}

bool SchedulerCore::turn() {
  settle();  // what was cancelled since
  admit();
  collect();
  run_batch();
  settle();
  return !active_.empty() || !waiting_.empty();
}

void SchedulerCore::fill(SchedulerStats& stats) const {
  const KvPool& pool = engine_.kv_pool();
  SchedulerStats out = stats_;
  out.submitted = stats.submitted;
  out.refused = stats.refused;
  out.running = static_cast<std::uint32_t>(slots_.size());
  out.kept_prefixes = static_cast<std::uint32_t>(prefixes_.size());
  out.pages_total = pool.n_pages();
  out.pages_used = pool.n_pages() - pool.free_pages();
  stats = out;
}

}  // namespace cyb
