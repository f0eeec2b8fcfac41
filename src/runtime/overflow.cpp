// Cuts after the begin-of-text token, as a model without it is not what was trained.
#include "runtime/overflow.hpp"

#include <algorithm>

#include "text/tokenizer.hpp"

namespace cyb {
namespace {

std::size_t first_tokens(const Engine& engine, std::span<const std::int32_t> tokens) {
  if (engine.tokenizer() == nullptr || tokens.empty()) return 0;
  return engine.tokenizer()->config().bos_token_id == tokens[0] ? 1 : 0;
}

/// The first `n_first` tokens and the last ones, `n_kept` in all.
ContextCut cut(std::span<const std::int32_t> tokens, std::size_t n_first, std::size_t n_kept) {
  ContextCut out;
  n_kept = std::clamp(n_kept, n_first, tokens.size());
  const auto tail = tokens.last(n_kept - n_first);
  out.kept.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n_first));
  out.kept.insert(out.kept.end(), tail.begin(), tail.end());
  out.n_dropped = static_cast<std::uint32_t>(tokens.size() - n_kept);
  return out;
}

}  // namespace

ContextCut fit_prompt(const Engine& engine, std::span<const std::int32_t> prompt,
                      const GenerateOptions& options) {
  const std::size_t context = engine.ctx_tokens();
  if (options.overflow == Overflow::kError || prompt.size() < context) {
    return cut(prompt, 0, prompt.size());
  }
  const std::size_t wanted = options.max_tokens == 0
                                 ? context / 4
                                 : std::min<std::size_t>(options.max_tokens, context / 2);
  const std::size_t room = std::max<std::size_t>(wanted, 1);
  return cut(prompt, first_tokens(engine, prompt), context > room ? context - room : 1);
}

ContextCut shift_context(const Engine& engine, std::span<const std::int32_t> tokens) {
  const std::size_t n_first = first_tokens(engine, tokens);
  return cut(tokens, n_first, n_first + (tokens.size() - n_first) / 2);
}

}  // namespace cyb
