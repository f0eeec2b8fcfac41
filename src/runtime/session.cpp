// Session: chunked prefill with prefix reuse over Engine::step.
#include "runtime/session.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace cyb {

Session::Session(std::shared_ptr<Engine> engine)
    : engine_(std::move(engine)), sequence_(engine_->new_sequence()) {
  logits_.reserve(engine_->vocab_size());
}

Result<Session::Use> Session::use() {
  if (busy_.exchange(true, std::memory_order_acquire)) return fail(busy("session"));
  return Use(*this);
}

Result<PrefillReport> Session::Use::prefill(std::span<const std::int32_t> ids,
                                            const PrefillOptions& options) {
  if (ids.empty()) return fail(invalid_input("empty prompt"));
  CYB_TRY(session_->engine_->check_ids(ids));
  Sequence& sequence = session_->sequence_;
  if (ids.size() > sequence.limit_tokens()) {
    return fail(context_overflow(ids.size(), sequence.limit_tokens()));
  }
  const std::span<const std::int32_t> held = sequence.tokens();
  const auto differ = std::mismatch(held.begin(), held.end(), ids.begin(), ids.end());
  // The last token is always computed: its logits are wanted.
  std::size_t n_same =
      std::min(static_cast<std::size_t>(differ.second - ids.begin()), ids.size() - 1);
  // Keys are cached rotated: those of another frequency set are of no use to this prompt.
  const std::span<const std::uint32_t> sets = sequence.frequency_sets();
  const std::uint32_t set =
      session_->engine_->length_rule().set_of(static_cast<std::uint32_t>(ids.size()));
  const auto other = std::ranges::find_if(sets, [set](std::uint32_t s) { return s != set; });
  if (!sets.empty()) n_same = std::min(n_same, static_cast<std::size_t>(other - sets.begin()));
  n_same = sequence.resumable(static_cast<std::uint32_t>(n_same));
  sequence.truncate(static_cast<std::uint32_t>(n_same));
  CYB_TRY(append(ids.subspan(n_same), options));
  return PrefillReport{static_cast<std::uint32_t>(n_same),
                       static_cast<std::uint32_t>(ids.size() - n_same)};
}

Result<void> Session::Use::append(std::span<const std::int32_t> ids,
                                  const PrefillOptions& options) {
  if (ids.empty()) return fail(invalid_input("no tokens"));
  Engine& engine = *session_->engine_;
  CYB_TRY(engine.check_ids(ids));
  Sequence& sequence = session_->sequence_;
  const std::uint64_t end = std::uint64_t{sequence.position()} + ids.size();
  if (end > sequence.limit_tokens()) return fail(context_overflow(end, sequence.limit_tokens()));
  session_->logits_.clear();
  if (must_restart(end)) return restart(ids, options);
  const LogitsSink keep = [session = session_](std::size_t, std::span<const float> row) {
    session->logits_.assign(row.begin(), row.end());
  };
  std::size_t done = 0;
  while (done < ids.size()) {
    const std::size_t n = std::min<std::size_t>(engine.chunk_tokens(), ids.size() - done);
    const bool last = done + n == ids.size();
    const SequenceStep step{&sequence, ids.subspan(done, n),
                            last ? LogitRows::kLast : LogitRows::kNone,
                            static_cast<std::uint32_t>(end)};
    CYB_TRY(engine.step({&step, 1}, keep, options.stop));
    done += n;
    if (options.progress) {
      options.progress(static_cast<std::uint32_t>(done), static_cast<std::uint32_t>(ids.size()));
    }
  }
  return {};
}

/// longrope: the cached keys are of the other set than a sequence of `length` asks for.
bool Session::Use::must_restart(std::uint64_t length) const {
  const LengthRule& rule = session_->engine_->length_rule();
  const std::span<const std::uint32_t> sets = session_->sequence_.frequency_sets();
  return rule.kind == LengthRule::Kind::kSwitch && !sets.empty() &&
         sets.back() != rule.set_of(static_cast<std::uint32_t>(length));
}

/// Everything again, with the frequencies of the new length.
Result<void> Session::Use::restart(std::span<const std::int32_t> ids,
                                   const PrefillOptions& options) {
  std::vector<std::int32_t> all(tokens().begin(), tokens().end());
  all.insert(all.end(), ids.begin(), ids.end());
  session_->sequence_.truncate(0);
  return append(all, options);
}

Result<void> Session::Use::advance(std::int32_t id, const LogitsSink& sink, std::stop_token stop) {
  return advance(std::span(&id, 1), sink, std::move(stop));
}

Result<void> Session::Use::advance(std::span<const std::int32_t> ids, const LogitsSink& sink,
                                   std::stop_token stop) {
  session_->logits_.clear();
  // Where the length decides about the frequencies, each token has its own.
  if (session_->engine_->length_rule().kind != LengthRule::Kind::kNone)
    return advance_one_by_one(ids, sink, stop);
  const SequenceStep step{&session_->sequence_, ids, LogitRows::kAll};
  return session_->engine_->step({&step, 1}, sink, std::move(stop));
}

Result<void> Session::Use::advance_one_by_one(std::span<const std::int32_t> ids,
                                              const LogitsSink& sink, const std::stop_token& stop) {
  std::vector<float> rows;
  for (const std::int32_t& id : ids) {
    CYB_TRY(append(std::span(&id, 1), {.stop = stop}));
    rows.insert(rows.end(), session_->logits_.begin(), session_->logits_.end());
  }
  session_->logits_.clear();
  if (sink) sink(0, rows);
  return {};
}

Result<void> Session::Use::truncate(std::uint32_t position) {
  if (position > this->position()) {
    return fail(invalid_input("cannot roll back to position " + std::to_string(position) +
                              ": the session holds " + std::to_string(this->position())));
  }
  session_->logits_.clear();
  Sequence& sequence = session_->sequence_;
  if (position == this->position() || sequence.resumable(position) == position) {
    sequence.truncate(position);
    return {};
  }
  // Windows had given their keys back: everything that stays is computed again.
  const std::vector<std::int32_t> kept(tokens().begin(), tokens().begin() + position);
  sequence.truncate(0);
  CYB_TRY(append(kept, {}));
  session_->logits_.clear();
  return {};
}

Result<PrefillReport> Session::prefill(std::span<const std::int32_t> ids,
                                       const PrefillOptions& options) {
  CYB_ASSIGN(Use user, use());
  return user.prefill(ids, options);
}

Result<void> Session::append(std::span<const std::int32_t> ids, const PrefillOptions& options) {
  CYB_ASSIGN(Use user, use());
  return user.append(ids, options);
}

Result<void> Session::truncate(std::uint32_t position) {
  CYB_ASSIGN(Use user, use());
  return user.truncate(position);
}

Result<void> Session::reset() {
  return truncate(0);
}

Result<std::vector<std::int32_t>> Session::tokens() {
  CYB_ASSIGN(Use user, use());
  return std::vector<std::int32_t>(user.tokens().begin(), user.tokens().end());
}

Result<std::vector<float>> Session::logits() {
  CYB_ASSIGN(Use user, use());
  return std::vector<float>(logits_.begin(), logits_.end());
}

}  // namespace cyb
