// Engine: joins sequences in one forward. Loading is in engine_load.cpp.
#include "runtime/engine.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/chat.hpp"
#include "runtime/sampling.hpp"
#include "text/tokenizer.hpp"

namespace cyb {
namespace {

/// Index of the first value that is not finite, or the size. Blocks of integer maxima, so that the
/// usual case is one vectorised pass.
std::size_t find_non_finite(std::span<const float> values) noexcept {
  constexpr std::size_t kBlock = 4096;
  constexpr std::uint32_t kInfinity = 0x7F800000u;
  const auto magnitude = [](float v) { return std::bit_cast<std::uint32_t>(v) & 0x7FFFFFFFu; };
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, values.size());
    std::uint32_t largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, magnitude(values[i]));
    if (largest < kInfinity) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (magnitude(values[i]) >= kInfinity) return i;
    }
  }
  return values.size();
}

std::size_t rows_of_step(const SequenceStep& step) noexcept {
  switch (step.rows) {
    case LogitRows::kNone:
      return 0;
    case LogitRows::kLast:
      return 1;
    case LogitRows::kAll:
      return step.ids.size();
  }
  return 0;
}

}  // namespace

Engine::~Engine() = default;

Result<const Tokenizer*> Engine::need_tokenizer() const {
  if (tokenizer_ == nullptr) {
    return fail(tokenizer_error("this model has no tokenizer: it takes and gives token ids"));
  }
  return tokenizer_.get();
}

Error Engine::chat_error() const {
  if (chat_error_ != nullptr) return *chat_error_;
  return no_chat_template();
}

bool Engine::is_stop_id(std::int32_t id) const noexcept {
  return std::binary_search(stop_ids_.begin(), stop_ids_.end(), id);
}

Sequence Engine::new_sequence() const {
  return Sequence(kv_, ctx_tokens_);
}

MemoryPools Engine::memory() const {
  return {.weights_mapped = weights_->mapped_bytes(),
          .weights_packed = report_.packed_bytes,
          .weights_own = weights_->own_bytes(),
          .kv = kv_->bytes_of(kv_->peak_pages(), kv_->peak_windowed()),
          .run = forward_->peak_bytes(),
          .text = report_.text_bytes,
          .process = report_.process_bytes};
}

Result<void> Engine::check_ids(std::span<const std::int32_t> ids) const {
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocab_size()) {
      return fail(invalid_input("token id " + std::to_string(id) + " is not in 0.." +
                                std::to_string(vocab_size() - 1)));
    }
  }
  return {};
}

/// T of a step: the length that it states, or where its tokens end.
std::uint32_t Engine::tokens_of(const SequenceStep& step) noexcept {
  const std::size_t end = step.sequence->position() + step.ids.size();
  return std::max(step.length, static_cast<std::uint32_t>(end));
}

/// longrope: keys of the other set must be computed again, which a Session does.
Result<void> Engine::check_frequency_set(const SequenceStep& step) const {
  const std::span<const std::uint32_t> sets = step.sequence->frequency_sets();
  if (length_rule_.kind != LengthRule::Kind::kSwitch || sets.empty()) return {};
  if (sets.back() == length_rule_.set_of(tokens_of(step))) return {};
  return fail(invalid_input("the cached keys were rotated for a length on the other side of " +
                            std::to_string(length_rule_.original) +
                            " tokens: start the sequence again"));
}

Result<void> Engine::check_steps(std::span<const SequenceStep> steps) const {
  if (steps.empty()) return fail(invalid_input("no sequence to run"));
  std::size_t n_rows = 0, n_outputs = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const SequenceStep& step = steps[i];
    if (step.sequence == nullptr || step.sequence->pool_ != kv_) {
      return fail(invalid_input("a sequence of another engine"));
    }
    if (step.ids.empty()) return fail(invalid_input("no tokens"));
    for (std::size_t j = 0; j < i; ++j) {
      if (steps[j].sequence == step.sequence)
        return fail(invalid_input("a sequence twice in one run"));
    }
    CYB_TRY(check_ids(step.ids));
    if (step.length != 0 && step.length < step.sequence->position() + step.ids.size())
      return fail(invalid_input("a length that ends before the tokens of the step"));
    CYB_TRY(check_frequency_set(step));
    n_rows += step.ids.size();
    n_outputs += rows_of_step(step);
  }
  if (n_rows > chunk_tokens()) {
    return fail(invalid_input(std::to_string(n_rows) + " tokens in one run; at most " +
                              std::to_string(chunk_tokens())));
  }
  if (n_outputs > max_outputs()) {
    return fail(invalid_input(std::to_string(n_outputs) + " logit rows in one run; at most " +
                              std::to_string(max_outputs())));
  }
  return {};
}

void Engine::fill_params(std::span<const SequenceStep> steps) {
  ids_.clear();
  positions_.clear();
  output_rows_.clear();
  spans_.clear();
  for (const SequenceStep& step : steps) {
    const auto begin = static_cast<std::uint32_t>(ids_.size());
    const auto n = static_cast<std::uint32_t>(step.ids.size());
    const std::uint32_t past = step.sequence->position();
    spans_.push_back({begin, n, past, step.sequence->pages(), step.length});
    ids_.insert(ids_.end(), step.ids.begin(), step.ids.end());
    for (std::uint32_t i = 0; i < n; ++i) {
      positions_.push_back(static_cast<std::int32_t>(past + i));
    }
    const auto n_outputs = static_cast<std::uint32_t>(rows_of_step(step));
    for (std::uint32_t i = n - n_outputs; i < n; ++i) {
      output_rows_.push_back(static_cast<std::int32_t>(begin + i));
    }
  }
}

Result<std::span<const float>> Engine::run(std::stop_token stop) {
  if (stop.stop_requested()) return fail(cancelled(0));
  const StepParams params{ids_, positions_, output_rows_, spans_, &kv_->store()};
  CYB_TRY(forward_->run(params, std::move(stop)));
  if (output_rows_.empty()) return std::span<const float>();
  CYB_ASSIGN(const std::span<const float> logits, forward_->logits());
  if (logits.size() != output_rows_.size() * vocab_size()) {
    return fail(internal_error("logits of an unexpected size"));
  }
  const std::size_t bad = find_non_finite(logits);
  if (bad < logits.size()) return fail(non_finite("Matmul", "logits", bad % vocab_size()));
  return logits;
}

void Engine::deliver(std::span<const SequenceStep> steps, std::span<const float> logits,
                     const LogitsSink& sink) const {
  std::size_t row = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t n = rows_of_step(steps[i]);
    if (n > 0 && sink) sink(i, logits.subspan(row * vocab_size(), n * vocab_size()));
    row += n;
  }
}

Result<void> Engine::step(std::span<const SequenceStep> steps, const LogitsSink& sink,
                          std::stop_token stop) {
  const std::lock_guard lock(run_mutex_);
  CYB_TRY(check_steps(steps));
  Result<void> ready;
  for (const SequenceStep& step : steps) {
    ready = step.sequence->reserve(static_cast<std::uint32_t>(step.ids.size()));
    if (!ready) break;
  }
  Result<std::span<const float>> logits;
  if (ready) {
    fill_params(steps);
    logits = run(std::move(stop));
  }
  if (!ready || !logits) {
    for (const SequenceStep& step : steps) step.sequence->trim();
    return fail(ready ? std::move(logits).error() : std::move(ready).error());
  }
  for (const SequenceStep& step : steps) {
    std::optional<std::uint32_t> set;
    if (length_rule_.kind != LengthRule::Kind::kNone) set = length_rule_.set_of(tokens_of(step));
    step.sequence->commit(step.ids, set);
  }
  deliver(steps, *logits, sink);
  return {};
}

}  // namespace cyb
