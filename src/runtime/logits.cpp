// Teacher-forced runs over one sequence.
#include "runtime/logits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "text/tokenizer.hpp"

namespace cyb {

Result<void> all_logits(Engine& engine, std::span<const std::int32_t> ids, const LogitRowSink& sink,
                        std::stop_token stop) {
  return logits_from(engine, ids, 0, sink, std::move(stop));
}

Result<void> logits_from(Engine& engine, std::span<const std::int32_t> ids, std::size_t first,
                         const LogitRowSink& sink, std::stop_token stop) {
  if (first >= ids.size()) return fail(invalid_input("no tokens"));
  CYB_TRY(engine.check_ids(ids));
  if (ids.size() > engine.ctx_tokens()) {
    return fail(context_overflow(ids.size(), engine.ctx_tokens()));
  }
  Sequence sequence = engine.new_sequence();
  Result<void> taken;
  std::size_t done = 0;
  const LogitsSink forward = [&](std::size_t, std::span<const float> rows) {
    taken = sink(static_cast<std::uint32_t>(done), rows);
  };
  while (done < ids.size()) {
    const bool wanted = done >= first;
    const std::size_t chunk = std::min<std::size_t>(
        engine.chunk_tokens(), wanted ? engine.max_outputs() : engine.chunk_tokens());
    const std::size_t left = (wanted ? ids.size() : first) - done;
    const SequenceStep step{&sequence, ids.subspan(done, std::min(chunk, left)),
                            wanted ? LogitRows::kAll : LogitRows::kNone,
                            static_cast<std::uint32_t>(ids.size())};
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

namespace {

/// log p(ids[i] | ids[0..i)) for i = first + 1 .. T-1.
Result<std::vector<double>> log_probabilities_from(Engine& engine,
                                                   std::span<const std::int32_t> ids,
                                                   std::size_t first, std::stop_token stop) {
  std::vector<double> out;
  out.reserve(ids.size() - first);
  const std::size_t vocab = engine.vocab_size();
  CYB_TRY(logits_from(
      engine, ids, first,
      [&](std::uint32_t row, std::span<const float> rows) -> Result<void> {
        for (std::size_t i = 0; i < rows.size() / vocab; ++i) {
          const std::size_t next = row + i + 1;
          if (next < ids.size()) {
            out.push_back(log_probability(rows.subspan(i * vocab, vocab), ids[next]));
          }
        }
        return {};
      },
      std::move(stop)));
  return out;
}

/// The window that begins at `begin` in `part`; the position after it.
std::size_t next_window(std::span<const std::int32_t> ids, std::size_t begin, std::size_t window,
                        std::optional<std::int32_t> bos, std::vector<std::int32_t>& part) {
  part.clear();
  if (begin > 0 && bos) part.push_back(*bos);
  const std::size_t n = std::min(window - part.size(), ids.size() - begin);
  const auto from = ids.begin() + static_cast<std::ptrdiff_t>(begin);
  part.insert(part.end(), from, from + static_cast<std::ptrdiff_t>(n));
  return begin + n;
}

/// The same by llama-perplexity's protocol: BOS takes the place of the first token.
std::size_t next_full_window(std::span<const std::int32_t> ids, std::size_t begin,
                             std::size_t window, std::optional<std::int32_t> bos,
                             std::vector<std::int32_t>& part) {
  const auto from = ids.begin() + static_cast<std::ptrdiff_t>(begin);
  part.assign(from, from + static_cast<std::ptrdiff_t>(window));
  if (bos) part.front() = *bos;
  return begin + window;
}

}  // namespace

Result<std::vector<double>> token_log_probabilities(Engine& engine,
                                                    std::span<const std::int32_t> ids,
                                                    std::stop_token stop) {
  return log_probabilities_from(engine, ids, 0, std::move(stop));
}

Result<PerplexityReport> perplexity(Engine& engine, std::span<const std::int32_t> ids,
                                    const PerplexityOptions& options) {
  if (ids.size() < 2) return fail(invalid_input("perplexity needs two tokens or more"));
  const std::uint32_t asked =
      options.window_tokens == 0 ? engine.ctx_tokens() : options.window_tokens;
  const std::size_t window = std::min(asked, engine.ctx_tokens());
  const bool half = options.second_half;
  const Tokenizer* tokenizer = engine.tokenizer();
  std::optional<std::int32_t> bos;
  if (tokenizer != nullptr && tokenizer->config().bos_token_id == ids.front()) bos = ids.front();
  if (window < (bos || half ? 3u : 2u)) return fail(invalid_input("the window is too short"));
  if (half && ids.size() < window) {
    return fail(invalid_input(
        fmt::format("the text has {} tokens, and a window {}: none is full", ids.size(), window)));
  }
  PerplexityReport out;
  double sum = 0;
  std::vector<std::int32_t> part;
  for (std::size_t begin = 0; begin < ids.size();) {
    if (half && ids.size() - begin < window) break;
    begin = half ? next_full_window(ids, begin, window, bos, part)
                 : next_window(ids, begin, window, bos, part);
    if (part.size() < 2) break;
    CYB_ASSIGN(const std::vector<double> values,
               log_probabilities_from(engine, part, half ? window / 2 : 0, options.stop));
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
