// After the first step nothing here allocates while log-probabilities are off.
#include "runtime/answer.hpp"

#include <algorithm>
#include <utility>

#include "runtime/memory.hpp"
#include "text/grammar/token_masks.hpp"

namespace cyb {
namespace {

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

std::vector<std::int32_t> shown_ids(const Engine& engine, const std::vector<std::string>& names) {
  std::vector<std::int32_t> out;
  const Tokenizer* tokenizer = engine.tokenizer();
  for (const std::string& name : names) {
    const std::int32_t id = tokenizer == nullptr ? -1 : tokenizer->vocabulary().find(name);
    if (id >= 0 && tokenizer->is_control(id)) out.push_back(id);
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

}  // namespace

TextStream::TextStream(const Tokenizer* tokenizer, std::vector<std::int32_t> shown,
                       std::vector<std::string> stops, TextSink sink)
    : tokenizer_(tokenizer),
      shown_(std::move(shown)),
      matcher_(std::move(stops)),
      sink_(std::move(sink)) {
  if (tokenizer != nullptr) {
    decoder_.emplace(*tokenizer, DecodeOptions{.skip_special = true, .strip_space_prefix = false});
  }
}

bool TextStream::push(std::int32_t id) {
  if (!decoder_) return false;
  decoded_.clear();
  if (std::ranges::binary_search(shown_, id)) {
    decoder_->finish(decoded_);
    decoded_ += tokenizer_->vocabulary().text(id);
  } else {
    decoder_->push(id, decoded_);
  }
  return emit(false);
}

void TextStream::finish() {
  if (!decoder_ || matcher_.stopped()) return;
  decoded_.clear();
  decoder_->finish(decoded_);
  emit(true);
}

bool TextStream::emit(bool last) {
  ready_.clear();
  const bool stopped = matcher_.push(decoded_, ready_);
  if (last) matcher_.flush(ready_);
  if (!ready_.empty()) {
    text_ += ready_;
    if (sink_) sink_(ready_);
  }
  return stopped;
}

Result<Answer> Answer::create(const Engine& engine, const GenerateOptions& options,
                              const SamplingConfig& sampling, TextSink sink) {
  CYB_ASSIGN(Sampler sampler,
             Sampler::create(sampling, static_cast<std::int32_t>(engine.vocab_size())));
  Stops stops = split_stops(engine, options.stop);
  if (options.constraint != nullptr) stops.texts.clear();
  Answer out(engine, options, std::move(sampler),
             TextStream(engine.tokenizer(), shown_ids(engine, options.shown),
                        std::move(stops.texts), std::move(sink)));
  out.stop_ids_ = std::move(stops.ids);
  if (options.constraint != nullptr) CYB_TRY(out.constrain());
  GenerateResult& result = out.result_;
  result.seed = sampling.seed;
  result.path = path_name(engine.path());
  result.backend = engine.backend().name();
  result.model_id = engine.model_id();
  result.n_fallback_steps = engine.n_fallback_steps();
  result.index = options.row;
  result.overflow.mode = options.overflow;
  return out;
}

Result<void> Answer::constrain() {
  if (options_->ignore_stop_ids)
    return fail(
        invalid_input("an answer under a grammar ends where its text is complete: its stop "
                      "tokens cannot be ignored"));
  CYB_ASSIGN(const Tokenizer* tokenizer, engine_->need_tokenizer());
  matcher_.emplace(options_->constraint->masks(tokenizer->trie(stream_.shown())));
  const std::uint32_t vocab = engine_->vocab_size();
  allowed_.assign((vocab + 63) / 64, 0);
  for (std::uint32_t id = 0; id < vocab; ++id) {
    if (ends(static_cast<std::int32_t>(id))) end_ids_.push_back(static_cast<std::int32_t>(id));
  }
  return {};
}

/// Tokens of text that fit, and those that end the answer where it is complete.
void Answer::find_allowed() {
  matcher_->mask(allowed_);
  const bool complete = matcher_->can_end();
  for (const std::int32_t id : end_ids_) {
    const std::size_t i = static_cast<std::size_t>(id);
    const std::uint64_t one = std::uint64_t{1} << (i % 64);
    allowed_[i / 64] = complete ? allowed_[i / 64] | one : allowed_[i / 64] & ~one;
  }
}

std::size_t Answer::n_possible(std::span<const std::int32_t> guesses) {
  if (!matcher_) return guesses.size();
  std::size_t n_taken = 0, n = 0;
  for (const std::int32_t id : guesses) {
    const bool end = ends(id);
    if (end ? !matcher_->can_end() : !matcher_->accept(id)) break;
    ++n;
    if (end) break;
    ++n_taken;
  }
  matcher_->rollback(n_taken);
  return n;
}

void Answer::begin(std::span<const std::int32_t> prompt) {
  result_.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
  sampler_.reserve(engine_->ctx_tokens());
  for (const std::int32_t id : prompt) sampler_.accept(id);
}

void Answer::set_limit(std::uint32_t most, bool reserve) {
  most_ = most;
  result_.finish_reason = FinishReason::kLength;
  if (!reserve) return;
  result_.tokens.reserve(most);
  token_ms_.reserve(most);
}

bool Answer::ends(std::int32_t id) const noexcept {
  if (options_->ignore_stop_ids) return false;
  return engine_->is_stop_id(id) || std::ranges::find(stop_ids_, id) != stop_ids_.end();
}

Result<void> Answer::report(std::span<const float> logits, std::int32_t id) {
  TokenReport out;
  out.id = id;
  if (const Tokenizer* tokenizer = engine_->tokenizer()) out.token = tokenizer->piece(id);
  out.top.resize(std::min<std::size_t>(*options_->logprobs, logits.size()));
  CYB_ASSIGN(out.logprob, sampler_.logprobs(logits, id, out.top));
  result_.logprobs.push_back(std::move(out));
  return {};
}

Result<void> Answer::sample(std::span<const float> logits, std::uint32_t position) {
  if (matcher_) find_allowed();
  CYB_ASSIGN(next_, sampler_.sample(logits, position, result_.index, allowed_));
  if (options_->logprobs && !ends(next_)) CYB_TRY(report(logits, next_));
  return {};
}

bool Answer::take() {
  if (ends(next_)) {
    result_.finish_reason = FinishReason::kStop;
    return false;
  }
  result_.tokens.push_back(next_);
  sampler_.accept(next_);
  const bool stopped = stream_.push(next_);
  const bool complete = matcher_ && matcher_->accept(next_) && matcher_->must_end();
  if (stopped || complete) {
    result_.finish_reason = FinishReason::kStop;
    return false;
  }
  return result_.tokens.size() != most_;
}

GenerateResult Answer::finish() {
  stream_.finish();
  result_.text = std::move(stream_.text());
  GenerateTimings& out = result_.timings;
  out.load_ms = engine_->report().load_ms;
  out.peak_bytes = peak_resident_bytes();
  result_.memory = engine_->memory();
  if (!token_ms_.empty()) {
    double sum = 0;
    for (const double ms : token_ms_) sum += ms;
    out.token_ms_mean = sum / static_cast<double>(token_ms_.size());
    out.decode_tps = 1e3 / std::max(out.token_ms_mean, 1e-6);
    const std::size_t at = (token_ms_.size() * 95 + 99) / 100 - 1;
    std::ranges::nth_element(token_ms_, token_ms_.begin() + static_cast<std::ptrdiff_t>(at));
    out.token_ms_p95 = token_ms_[at];
  }
  return std::move(result_);
}

}  // namespace cyb
