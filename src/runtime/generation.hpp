// Generation: prompt ids to an answer, or to several that share the prompt's KV pages. Text comes
// out as whole UTF-8 with stop strings held back; every answer reports its seed and timings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/sampling.hpp"
#include "runtime/session.hpp"

namespace cyb {

class Grammar;

/// What happens to tokens that the context does not hold. kError: a longer prompt is
/// ContextOverflow, an answer ends with kLength. kTruncate: of a longer prompt the oldest tokens
/// (after the begin-of-text token) are left out, so that the answer has room for max_tokens, at
/// most half the context, or a quarter of it. kShift: the same, and where the context is full in
/// the middle of an answer, the older half is left out and the rest computed anew, as if it had
/// been the prompt.
enum class Overflow : std::uint8_t { kError, kTruncate, kShift };
/// "error", "truncate", "shift".
std::string_view overflow_name(Overflow overflow) noexcept;

/// Guesses that one run checks together. Neither changes a token: every token is still drawn from
/// the model's own logits with the random number of its position. 0: off.
struct SpeculationOptions {
  std::uint32_t lookup_tokens = 0;  // most tokens that followed the same 3, 2 or 1 tokens earlier
  std::shared_ptr<Engine> draft{};  // a smaller model of the same vocabulary
  std::uint32_t draft_tokens = 0;   // most tokens that it goes ahead
};

struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // 0: to a stop or a full context
  SamplingOverrides sampling{};
  std::uint64_t seed = 0;           // 0: the config's, else one from the system
  std::uint32_t row = 0;            // number of the answer within its request
  std::vector<std::string> stop{};  // one that is the text of a control token stops at that token
  std::optional<std::uint32_t>
      logprobs{};                // k: the most likely k of each step besides the chosen one
  bool ignore_stop_ids = false;  // measure or compare without an early end
  std::stop_token cancel{};
  std::function<void(std::uint32_t done, std::uint32_t total)> prefill_progress{};  // may be empty
  Overflow overflow = Overflow::kError;
  SpeculationOptions speculation{};
  /// What the text must be (text/grammar/grammar.hpp). An answer that finishes with kStop fits it
  /// as a whole; stop ids are possible exactly where the text is complete. Stop texts are not
  /// watched: they would cut it. Log-probabilities stay those of the raw distribution.
  std::shared_ptr<const Grammar> constraint{};
  /// Control tokens that are part of the answer's text, by their names ("<|channel|>"); those that
  /// the vocabulary does not have as control tokens are left out.
  std::vector<std::string> shown{};
};

enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled };
/// "stop", "length", "cancelled".
std::string_view finish_reason_name(FinishReason reason) noexcept;

struct TokenReport {
  std::int32_t id = 0;
  std::string token;  // bytes of the token; not always whole UTF-8
  float logprob = 0;  // of the raw distribution
  std::vector<TokenLogprob> top;
};

struct GenerateTimings {
  double load_ms = 0, prefill_ms = 0, prefill_tps = 0, decode_tps = 0;
  double token_ms_mean = 0, token_ms_p95 = 0;  // decode steps, sampling included
  std::uint64_t peak_bytes = 0;                // of the process
};

/// What did not fit, and was left out.
struct OverflowReport {
  Overflow mode = Overflow::kError;
  std::uint32_t dropped_prompt_tokens = 0, dropped_tokens = 0;  // of the prompt; by shifts
  std::uint32_t shifts = 0;
};

struct SpeculationReport {
  std::string_view kind{};  // "lookup", "draft"; empty: off
  std::uint32_t max_tokens = 0;
  std::uint64_t rounds = 0, drafted = 0, accepted = 0;  // runs with guesses; tokens
};

struct GenerateResult {
  std::string text;
  std::vector<std::int32_t> tokens;  // what was sampled; without the id that ended the answer
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reused_tokens = 0;  // of the prompt, found in the session
  FinishReason finish_reason = FinishReason::kStop;
  std::vector<TokenReport> logprobs;  // one per token if asked for
  std::uint64_t seed = 0;
  GenerateTimings timings;
  MemoryPools memory;  // of the engine, at its peak
  std::string path, backend, model_id;
  std::uint32_t n_fallback_steps = 0;  // steps of one forward that ran on the reference
  std::uint32_t index = 0;             // GenerateOptions::row
  OverflowReport overflow;
  SpeculationReport speculation;
};

/// Whole UTF-8; called from the generating thread.
using TextSink = std::function<void(std::string_view text)>;

/// Runs `prompt` (session tokens that it begins with are reused) and answers. A cancelled answer is
/// a result, not an error; the session holds every token whose forward was completed. Errors: Busy,
/// ContextOverflow (prompt longer than the context), InvalidInput (also a constraint with
/// ignore_stop_ids, without a tokenizer, or one that no token fits), InvalidConfig{"sampling.*"},
/// NonFinite, what the engine says.
Result<GenerateResult> generate(Session& session, std::span<const std::int32_t> prompt,
                                const GenerateOptions& options, const TextSink& on_text = {});

/// The text of answer `index`, 0 .. n_answers - 1.
using AnswerSink = std::function<void(std::uint32_t index, std::string_view text)>;

/// `n_answers` answers to one prompt, computed side by side. Answer i has the bits of a generate()
/// with row = options.row + i and the same seed; the prompt is computed once and its pages are
/// shared. Afterwards the session holds the prompt and answer 0. The engine needs pages for all of
/// them (EngineOptions::max_sequences). Errors: as generate(); InvalidInput for no answers.
Result<std::vector<GenerateResult>> generate_answers(Session& session,
                                                     std::span<const std::int32_t> prompt,
                                                     const GenerateOptions& options,
                                                     std::uint32_t n_answers,
                                                     const AnswerSink& on_text = {});

}  // namespace cyb
