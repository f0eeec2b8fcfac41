// Teacher-forced runs over one sequence.
#include "runtime/logits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/tokenizer.hpp"

namespace cyb {

Result<void> all_logits(Engine& engine, std::span<const std::int32_t> ids, const LogitRowSink& sink,
                        std::stop_token stop) {
  if (ids.empty()) return fail(invalid_input("no tokens"));
  CYB_TRY(engine.check_ids(ids));
  if (ids.size() > engine.ctx_tokens()) {
    return fail(context_overflow(ids.size(), engine.ctx_tokens()));
  }
  const std::size_t chunk = std::min(engine.chunk_tokens(), engine.max_outputs());
  Sequence sequence = engine.new_sequence();
  Result<void> taken;
  std::size_t done = 0;
  const LogitsSink forward = [&](std::size_t, std::span<const float> rows) {
    taken = sink(static_cast<std::uint32_t>(done), rows);
  };
  while (done < ids.size()) {
    const SequenceStep step{&sequence, ids.subspan(done, std::min(chunk, ids.size() - done)),
                            LogitRows::kAll, static_cast<std::uint32_t>(ids.size())};
    CYB_TRY(engine.step({&step, 1}, forward, stop));
    CYB_TRY(std::exchange(taken, {}));
    done += step.ids.size();
  }
  return {};
}

double log_probability(std::span<const float> logits, std::int32_t id) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - max);
  return static_cast<double>(logits[static_cast<std::size_t>(id)]) - max - std::log(sum);
}

Result<std::vector<double>> token_log_probabilities(Engine& engine,
                                                    std::span<const std::int32_t> ids,
                                                    std::stop_token stop) {
  std::vector<double> out;
  out.reserve(ids.size());
  const std::size_t vocab = engine.vocab_size();
  CYB_TRY(all_logits(
      engine, ids,
      [&](std::uint32_t first, std::span<const float> rows) -> Result<void> {
        for (std::size_t i = 0; i < rows.size() / vocab; ++i) {
          const std::size_t next = first + i + 1;
          if (next < ids.size()) {
            out.push_back(log_probability(rows.subspan(i * vocab, vocab), ids[next]));
          }
        }
        return {};
      },
      std::move(stop)));
  return out;
}

Result<PerplexityReport> perplexity(Engine& engine, std::span<const std::int32_t> ids,
                                    const PerplexityOptions& options) {
  if (ids.size() < 2) return fail(invalid_input("perplexity needs two tokens or more"));
  const std::uint32_t asked =
      options.window_tokens == 0 ? engine.ctx_tokens() : options.window_tokens;
  const std::size_t window = std::min(asked, engine.ctx_tokens());
  const Tokenizer* tokenizer = engine.tokenizer();
  const bool has_bos = tokenizer != nullptr && tokenizer->config().bos_token_id == ids.front();
  if (window < (has_bos ? 3u : 2u)) return fail(invalid_input("the window is too short"));
  PerplexityReport out;
  double sum = 0;
  std::vector<std::int32_t> part;
  for (std::size_t begin = 0; begin < ids.size();) {
    part.clear();
    if (begin > 0 && has_bos) part.push_back(ids.front());
    const std::size_t n = std::min(window - part.size(), ids.size() - begin);
    part.insert(part.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                ids.begin() + static_cast<std::ptrdiff_t>(begin + n));
    begin += n;
    if (part.size() < 2) break;
    CYB_ASSIGN(const std::vector<double> values,
               token_log_probabilities(engine, part, options.stop));
    for (const double value : values) sum -= value;
    out.n_tokens += values.size();
    ++out.n_windows;
    out.mean_nll = sum / static_cast<double>(out.n_tokens);
    if (options.progress) options.progress(begin, ids.size(), out.mean_nll);
  }
  out.perplexity = std::exp(out.mean_nll);
  return out;
}

}  // namespace cyb
