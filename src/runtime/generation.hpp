// Generation: prompt ids to an answer. Text comes out as whole UTF-8 with stop strings held back;
// every answer reports its seed and timings.
#pragma once

#include <cstdint>
#include <functional>
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

struct GenerateResult {
  std::string text;
  std::vector<std::int32_t> tokens;  // what was sampled; without the id that ended the answer
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reused_tokens = 0;  // of the prompt, found in the session
  FinishReason finish_reason = FinishReason::kStop;
  std::vector<TokenReport> logprobs;  // one per token if asked for
  std::uint64_t seed = 0;
  GenerateTimings timings;
  std::string path, backend, model_id;
  std::uint32_t n_fallback_steps = 0;  // steps of one forward that ran on the reference
};

/// Whole UTF-8; called from the generating thread.
using TextSink = std::function<void(std::string_view text)>;

/// Runs `prompt` (session tokens that it begins with are reused) and answers. A cancelled answer is
/// a result, not an error; the session holds every token whose forward was completed. Errors: Busy,
/// ContextOverflow (prompt longer than the context), InvalidInput, InvalidConfig{"sampling.*"},
/// NonFinite, what the engine says.
Result<GenerateResult> generate(Session& session, std::span<const std::int32_t> prompt,
                                const GenerateOptions& options, const TextSink& on_text = {});

}  // namespace cyb
