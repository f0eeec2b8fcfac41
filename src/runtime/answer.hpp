// Answer: one answer while it grows: sampler, stops, text and report. It knows nothing of sessions:
// the caller runs the model and hands it logits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/generation.hpp"
#include "text/grammar/grammar.hpp"
#include "text/stop_matcher.hpp"
#include "text/tokenizer.hpp"

namespace cyb {

/// Ids to text with stop strings held back, straight to the caller.
class TextStream {
 public:
  /// `shown`: control tokens that are text, ascending.
  TextStream(const Tokenizer* tokenizer, std::vector<std::int32_t> shown,
             std::vector<std::string> stops, TextSink sink);
  /// True when a stop string was completed.
  bool push(std::int32_t id);
  void finish();
  std::string& text() noexcept { return text_; }
  const std::vector<std::int32_t>& shown() const noexcept { return shown_; }

 private:
  bool emit(bool last);

  const Tokenizer* tokenizer_;
  std::optional<StreamDecoder> decoder_;
  std::vector<std::int32_t> shown_;
  StopMatcher matcher_;
  TextSink sink_;
  std::string decoded_, ready_, text_;
};

class Answer {
 public:
  using Clock = std::chrono::steady_clock;
  static double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

  /// `options` must outlive this. Errors: InvalidConfig{"sampling.*"}, InvalidInput, Tokenizer.
  static Result<Answer> create(const Engine& engine, const GenerateOptions& options,
                               const SamplingConfig& sampling, TextSink sink);

  /// The prompt counts for the penalties.
  void begin(std::span<const std::int32_t> prompt);
  /// Most tokens that it may have; reserves memory for them where `reserve`.
  void set_limit(std::uint32_t most, bool reserve);
  std::uint32_t limit() const noexcept { return most_; }
  std::size_t size() const noexcept { return result_.tokens.size(); }

  /// Draws the next token. `position`: its index in the sequence, left-out tokens counted.
  Result<void> sample(std::span<const float> logits, std::uint32_t position);
  /// Takes the drawn token into the answer. False: the answer is over, and the model need not run.
  bool take();
  std::int32_t next() const noexcept { return next_; }
  /// How many of `guesses` for what follows the taken tokens the constraint allows, in their order.
  std::size_t n_possible(std::span<const std::int32_t> guesses);
  void cancel() noexcept { result_.finish_reason = FinishReason::kCancelled; }
  /// A run took `ms` and gave `n` tokens.
  void add_time(double ms, std::size_t n = 1) {
    for (std::size_t i = 0; i < n; ++i) token_ms_.push_back(ms / static_cast<double>(n));
  }

  GenerateResult& result() noexcept { return result_; }
  const GenerateResult& result() const noexcept { return result_; }
  const Sampler& sampler() const noexcept { return sampler_; }
  /// Text that was held back comes out; timings are filled in.
  GenerateResult finish();

 private:
  Answer(const Engine& engine, const GenerateOptions& options, Sampler sampler, TextStream stream)
      : engine_(&engine),
        options_(&options),
        sampler_(std::move(sampler)),
        stream_(std::move(stream)) {}
  bool ends(std::int32_t id) const noexcept;
  Result<void> report(std::span<const float> logits, std::int32_t id);
  Result<void> constrain();
  void find_allowed();

  const Engine* engine_;
  const GenerateOptions* options_;
  Sampler sampler_;
  std::vector<std::int32_t> stop_ids_;
  TextStream stream_;
  GenerateResult result_;
  std::vector<double> token_ms_;
  std::uint32_t most_ = 0;
  std::int32_t next_ = -1;
  std::optional<GrammarMatcher> matcher_;
  std::vector<std::int32_t> end_ids_;   // that end an answer under a constraint
  std::vector<std::uint64_t> allowed_;  // [V / 64] empty without a constraint
};

}  // namespace cyb
