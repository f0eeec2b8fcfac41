// Logits and log-probabilities of given tokens, in runs whose outputs fit: any length up to the
// context in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/result.hpp"
#include "runtime/engine.hpp"

namespace cyb {

/// Rows [n, V] of positions first_row .. first_row + n - 1. An error ends the whole call with it.
using LogitRowSink =
    std::function<Result<void>(std::uint32_t first_row, std::span<const float> rows)>;

/// Logits [T, V] of all positions of `ids`, in order. Errors: InvalidInput, ContextOverflow,
/// Cancelled, the sink's.
Result<void> all_logits(Engine& engine, std::span<const std::int32_t> ids, const LogitRowSink& sink,
                        std::stop_token stop = {});

/// The same from row `first` < T on: [T - first, V].
Result<void> logits_from(Engine& engine, std::span<const std::int32_t> ids, std::size_t first,
                         const LogitRowSink& sink, std::stop_token stop = {});

/// Natural logarithm of the probability of `id` under softmax(logits); sums in f64.
double log_probability(std::span<const float> logits, std::int32_t id);

/// log p(ids[i] | ids[0..i)) for i = 1 .. T-1: T - 1 values. Errors as all_logits.
Result<std::vector<double>> token_log_probabilities(Engine& engine,
                                                    std::span<const std::int32_t> ids,
                                                    std::stop_token stop = {});

struct PerplexityOptions {
  std::uint32_t window_tokens = 0;  // 0: the engine's context
  bool second_half = false;         // llama-perplexity's protocol, see perplexity()
  std::stop_token stop;
  std::function<void(std::uint64_t done, std::uint64_t total, double mean_nll)>
      progress;  // after each window; may be empty
};

struct PerplexityReport {
  std::uint64_t n_tokens = 0;  // tokens that were predicted
  std::uint32_t n_windows = 0;
  double mean_nll = 0;    // nats per token
  double perplexity = 0;  // exp(mean_nll)
};

/// Over windows that do not overlap; each starts with an empty cache, and its first token is not
/// predicted. Windows after the first begin with the first token of `ids` where that is the BOS
/// token. With `second_half`, as llama.cpp's llama-perplexity has it: full windows of W tokens
/// only, BOS in place of a window's first token, and of the rows the last W - 1 - W/2 that have a
/// next token. Errors: InvalidInput (fewer than 2 tokens; no full window), as all_logits.
Result<PerplexityReport> perplexity(Engine& engine, std::span<const std::int32_t> ids,
                                    const PerplexityOptions& options = {});

}  // namespace cyb
