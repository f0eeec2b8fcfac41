// An answer as one JSON object: what `run --json` prints and what the C ABI hands out.
#pragma once

#include <span>
#include <string>

#include "runtime/generation.hpp"

namespace cyb::api {

/// {"text", "tokens", "prompt_tokens", "finish_reason", "logprobs" (if `with_logprobs`: [{id,
/// token, logprob, top: [[id, logprob]...]}]), "path", "backend", "model_id", "seed", "timings":
/// {load_ms, prefill_ms, prefill_tps, decode_tps, peak_bytes, ...}}; before "timings" "memory":
/// {"weights_mapped", ... as MemoryPools, "total"}, and where they were asked for: "reused_tokens"
/// (of the prompt, found in the session), "overflow": {mode, dropped_prompt_tokens, dropped_tokens,
/// shifts}, "speculation": {kind, max_tokens, rounds, drafted, accepted, acceptance}.
std::string answer_json(const GenerateResult& answer, bool with_logprobs);

/// Several answers to one prompt: {"answers": [{"index", "text", "tokens", "finish_reason",
/// "logprobs", "timings"}...], "prompt_tokens", "path", ... as above}.
std::string answers_json(std::span<const GenerateResult> answers, bool with_logprobs);

}  // namespace cyb::api
