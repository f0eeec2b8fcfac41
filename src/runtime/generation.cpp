// One answer: prefill, then sample and advance until a stop. After the first step nothing here
// allocates while log-probabilities are off.
#include "runtime/generation.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/memory.hpp"
#include "text/stop_matcher.hpp"
#include "text/tokenizer.hpp"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Splits stop texts: one that is exactly a control token is an id (control tokens never become
/// text).
struct Stops {
  std::vector<std::string> texts;
  std::vector<std::int32_t> ids;
};

Stops split_stops(const Engine& engine, const std::vector<std::string>& requested) {
  Stops out;
  out.texts = engine.stop_strings();
  for (const std::string& text : requested) {
    const Tokenizer* tokenizer = engine.tokenizer();
    const std::int32_t id = tokenizer == nullptr ? -1 : tokenizer->vocabulary().find(text);
    if (id >= 0 && tokenizer->is_control(id)) {
      out.ids.push_back(id);
    } else {
      out.texts.push_back(text);
    }
  }
  return out;
}

/// Ids to text with stop strings held back, straight to the caller.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, std::vector<std::string> stops, const TextSink& sink)
      : matcher_(std::move(stops)), sink_(sink) {
    if (tokenizer != nullptr) {
      decoder_.emplace(*tokenizer,
                       DecodeOptions{.skip_special = true, .strip_space_prefix = false});
    }
  }

  /// True when a stop string was completed.
  bool push(std::int32_t id) {
    if (!decoder_) return false;
    decoded_.clear();
    decoder_->push(id, decoded_);
    return emit(false);
  }

  void finish() {
    if (!decoder_ || matcher_.stopped()) return;
    decoded_.clear();
    decoder_->finish(decoded_);
    emit(true);
  }

  std::string& text() noexcept { return text_; }

 private:
  bool emit(bool last) {
    ready_.clear();
    const bool stopped = matcher_.push(decoded_, ready_);
    if (last) matcher_.flush(ready_);
    if (!ready_.empty()) {
      text_ += ready_;
      if (sink_) sink_(ready_);
    }
    return stopped;
  }

  std::optional<StreamDecoder> decoder_;
  StopMatcher matcher_;
  const TextSink& sink_;
  std::string decoded_, ready_, text_;
};

class Answer {
 public:
  Answer(Session::Use& user, const GenerateOptions& options, Sampler sampler, Stops stops,
         const TextSink& sink)
      : user_(user),
        options_(options),
        sampler_(std::move(sampler)),
        stop_ids_(std::move(stops.ids)),
        stream_(user.engine().tokenizer(), std::move(stops.texts), sink) {}

  /// Errors other than cancellation.
  Result<void> run(std::span<const std::int32_t> prompt);
  GenerateResult take() { return std::move(result_); }

 private:
  Result<bool> prefill(std::span<const std::int32_t> prompt);
  Result<void> decode();
  Result<void> sample(std::span<const float> logits);
  Result<void> report(std::span<const float> logits, std::int32_t id);
  bool ends(std::int32_t id) const noexcept;
  void finish_timings();

  Session::Use& user_;
  const GenerateOptions& options_;
  Sampler sampler_;
  std::vector<std::int32_t> stop_ids_;
  TextStream stream_;
  GenerateResult result_;
  std::vector<double> token_ms_;
  Result<void> sampled_;
  std::int32_t next_ = -1;
};

bool Answer::ends(std::int32_t id) const noexcept {
  if (options_.ignore_stop_ids) return false;
  return user_.engine().is_stop_id(id) || std::ranges::find(stop_ids_, id) != stop_ids_.end();
}

Result<void> Answer::report(std::span<const float> logits, std::int32_t id) {
  TokenReport out;
  out.id = id;
  if (const Tokenizer* tokenizer = user_.engine().tokenizer()) out.token = tokenizer->piece(id);
  out.top.resize(std::min<std::size_t>(*options_.logprobs, logits.size()));
  CYB_ASSIGN(out.logprob, sampler_.logprobs(logits, id, out.top));
  result_.logprobs.push_back(std::move(out));
  return {};
}

Result<void> Answer::sample(std::span<const float> logits) {
  CYB_ASSIGN(next_, sampler_.sample(logits, user_.position(), options_.row));
  if (options_.logprobs && !ends(next_)) CYB_TRY(report(logits, next_));
  return {};
}

/// False: cancelled.
Result<bool> Answer::prefill(std::span<const std::int32_t> prompt) {
  const Clock::time_point start = Clock::now();
  auto done = user_.prefill(prompt, {options_.cancel, options_.prefill_progress});
  result_.timings.prefill_ms = ms_since(start);
  if (!done) {
    if (done.error().kind() == ErrorKind::kCancelled) return false;
    return fail(std::move(done).error());
  }
  result_.reused_tokens = done->n_reused;
  result_.timings.prefill_tps = done->n_computed * 1e3 / std::max(result_.timings.prefill_ms, 1e-6);
  return true;
}

Result<void> Answer::decode() {
  const std::uint32_t room = user_.engine().ctx_tokens() - user_.position();
  const std::uint32_t most = options_.max_tokens == 0 ? room : std::min(room, options_.max_tokens);
  result_.tokens.reserve(most);
  token_ms_.reserve(most);
  result_.finish_reason = FinishReason::kLength;
  if (most == 0) return {};
  CYB_TRY(sample(user_.last_logits()));
  // The sink stays inside std::function's own storage: no allocation per step.
  const LogitsSink sink = [this](std::size_t, std::span<const float> row) {
    sampled_ = sample(row);
  };
  for (;;) {
    if (ends(next_)) {
      result_.finish_reason = FinishReason::kStop;
      return {};
    }
    const std::int32_t id = next_;
    result_.tokens.push_back(id);
    sampler_.accept(id);
    if (stream_.push(id)) {
      result_.finish_reason = FinishReason::kStop;
      return {};
    }
    if (result_.tokens.size() == most) return {};
    const Clock::time_point start = Clock::now();
    auto advanced = user_.advance(id, sink, options_.cancel);
    if (!advanced) {
      if (advanced.error().kind() != ErrorKind::kCancelled) return advanced;
      result_.finish_reason = FinishReason::kCancelled;
      return {};
    }
    CYB_TRY(std::exchange(sampled_, {}));
    token_ms_.push_back(ms_since(start));
  }
}

void Answer::finish_timings() {
  GenerateTimings& out = result_.timings;
  const Engine& engine = user_.engine();
  out.load_ms = engine.report().load_ms;
  out.peak_bytes = peak_resident_bytes();
  if (!token_ms_.empty()) {
    double sum = 0;
    for (const double ms : token_ms_) sum += ms;
    out.token_ms_mean = sum / static_cast<double>(token_ms_.size());
    out.decode_tps = 1e3 / std::max(out.token_ms_mean, 1e-6);
    const std::size_t at = (token_ms_.size() * 95 + 99) / 100 - 1;
    std::ranges::nth_element(token_ms_, token_ms_.begin() + static_cast<std::ptrdiff_t>(at));
    out.token_ms_p95 = token_ms_[at];
  }
}

Result<void> Answer::run(std::span<const std::int32_t> prompt) {
  const Engine& engine = user_.engine();
  result_.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
  result_.seed = sampler_.config().seed;
  result_.path = path_name(engine.path());
  result_.backend = engine.backend().name();
  result_.model_id = engine.model_id();
  result_.n_fallback_steps = engine.n_fallback_steps();
  for (const std::int32_t id : prompt) sampler_.accept(id);
  CYB_ASSIGN(const bool complete, prefill(prompt));
  if (complete) {
    CYB_TRY(decode());
  } else {
    result_.finish_reason = FinishReason::kCancelled;
  }
  stream_.finish();
  result_.text = std::move(stream_.text());
  finish_timings();
  return {};
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

Result<GenerateResult> generate(Session& session, std::span<const std::int32_t> prompt,
                                const GenerateOptions& options, const TextSink& on_text) {
  CYB_ASSIGN(Session::Use user, session.use());
  const Engine& engine = user.engine();
  CYB_TRY(engine.check_ids(prompt));
  const SamplingConfig sampling =
      resolve_sampling(engine.sampling_defaults(), options.sampling, options.seed);
  CYB_ASSIGN(Sampler sampler,
             Sampler::create(sampling, static_cast<std::int32_t>(engine.vocab_size())));
  Answer answer(user, options, std::move(sampler), split_stops(engine, options.stop), on_text);
  CYB_TRY(answer.run(prompt));
  return answer.take();
}

}  // namespace cyb
