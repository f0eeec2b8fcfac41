// An answer as one JSON object: what `run --json` prints and what the C ABI hands out.
#pragma once

#include <string>

#include "runtime/generation.hpp"

namespace cyb::api {

/// {"text", "tokens", "prompt_tokens", "finish_reason", "logprobs" (if `with_logprobs`: [{id,
/// token, logprob, top: [[id, logprob]...]}]), "path", "backend", "model_id", "seed", "timings":
/// {load_ms, prefill_ms, prefill_tps, decode_tps, peak_bytes, ...}}.
std::string answer_json(const GenerateResult& answer, bool with_logprobs);

}  // namespace cyb::api
