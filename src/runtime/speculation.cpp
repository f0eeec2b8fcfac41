// The draft model draws its guesses as the answer would, with the same samplers and the random
// numbers of the same positions: where both distributions are alike, so are the tokens.
#include "runtime/speculation.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "text/tokenizer.hpp"

namespace cyb {
namespace {

constexpr std::size_t kLongestMatch = 3;

class LookupDrafter final : public Drafter {
 public:
  explicit LookupDrafter(std::uint32_t count) : count_(count) {}
  std::string_view kind() const noexcept override { return "lookup"; }
  std::uint32_t max_tokens() const noexcept override { return count_; }
  Result<std::span<const std::int32_t>> propose(std::span<const std::int32_t> tokens,
                                                std::uint32_t count, const Sampler&, std::uint32_t,
                                                std::stop_token) override {
    return lookup_tokens(tokens, std::min(count, count_));
  }

 private:
  std::uint32_t count_;
};

class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(std::shared_ptr<Engine> engine, std::uint32_t count, std::uint32_t vocab_size,
               std::uint32_t row)
      : session_(std::move(engine)), count_(count), vocab_size_(vocab_size), row_(row) {}
  std::string_view kind() const noexcept override { return "draft"; }
  std::uint32_t max_tokens() const noexcept override { return count_; }
  Result<std::span<const std::int32_t>> propose(std::span<const std::int32_t> tokens,
                                                std::uint32_t count, const Sampler& sampler,
                                                std::uint32_t position,
                                                std::stop_token stop) override;

 private:
  Result<std::int32_t> draw(Sampler& sampler, std::span<const float> logits,
                            std::uint32_t position);

  Session session_;
  std::uint32_t count_, vocab_size_, row_;
  std::vector<std::int32_t> guesses_;
  std::vector<float> logits_;  // [V] of the target: models of one vocabulary may pad differently
};

Result<std::int32_t> ModelDrafter::draw(Sampler& sampler, std::span<const float> logits,
                                        std::uint32_t position) {
  const std::size_t shared = std::min<std::size_t>(logits.size(), vocab_size_);
  const float lowest = *std::ranges::min_element(logits);
  logits_.assign(vocab_size_, lowest);
  std::copy_n(logits.begin(), shared, logits_.begin());
  return sampler.sample(logits_, position, row_);
}

Result<std::span<const std::int32_t>> ModelDrafter::propose(std::span<const std::int32_t> tokens,
                                                            std::uint32_t count,
                                                            const Sampler& sampler,
                                                            std::uint32_t position,
                                                            std::stop_token stop) {
  guesses_.clear();
  const Engine& engine = session_.engine();
  if (tokens.size() >= engine.ctx_tokens()) return guesses_;
  count =
      std::min({count, count_, engine.ctx_tokens() - static_cast<std::uint32_t>(tokens.size())});
  if (count == 0) return guesses_;
  const auto in_draft = [&](std::int32_t id) {
    return static_cast<std::uint32_t>(id) < engine.vocab_size();
  };
  if (!std::ranges::all_of(tokens, in_draft)) return guesses_;
  CYB_ASSIGN(Session::Use user, session_.use());
  CYB_TRY(user.prefill(tokens, {.stop = stop}));
  Sampler own = sampler;  // its history and mirostat's target go ahead, and are thrown away
  while (true) {
    CYB_ASSIGN(const std::int32_t id, draw(own, user.last_logits(),
                                           position + static_cast<std::uint32_t>(guesses_.size())));
    guesses_.push_back(id);
    if (guesses_.size() == count || engine.is_stop_id(id) || !in_draft(id)) return guesses_;
    own.accept(id);
    CYB_TRY(user.append({&id, 1}, {.stop = stop}));
  }
}

/// Models of one vocabulary: every token that both have is the same.
bool same_tokens(const Tokenizer& a, const Tokenizer& b) {
  const std::int32_t shared = std::min(a.vocab_size(), b.vocab_size());
  for (std::int32_t id = 0; id < shared; ++id) {
    if (a.piece(id) != b.piece(id) || a.is_control(id) != b.is_control(id)) return false;
  }
  return a.config().bos_token_id == b.config().bos_token_id;
}

Result<void> check_vocabulary(const Engine& engine, const Engine& draft) {
  const Tokenizer *own = engine.tokenizer(), *other = draft.tokenizer();
  const bool fits = own != nullptr && other != nullptr
                        ? same_tokens(*own, *other)
                        : own == other && engine.vocab_size() == draft.vocab_size();
  if (fits) return {};
  return fail(
      invalid_input("the draft model has another vocabulary: its guesses mean nothing here"));
}

}  // namespace

std::span<const std::int32_t> lookup_tokens(std::span<const std::int32_t> tokens,
                                            std::uint32_t count) noexcept {
  for (std::size_t size = std::min(kLongestMatch, tokens.size()); size > 0 && count > 0; --size) {
    const auto wanted = tokens.last(size);
    // The latest one before the end, and with at least one token after it.
    for (std::size_t at = tokens.size() - size; at-- > 0;) {
      if (!std::ranges::equal(tokens.subspan(at, size), wanted)) continue;
      const std::size_t from = at + size;
      return tokens.subspan(from, std::min<std::size_t>(count, tokens.size() - from));
    }
  }
  return {};
}

Result<std::unique_ptr<Drafter>> make_drafter(const Engine& engine,
                                              const SpeculationOptions& options,
                                              std::uint32_t row) {
  const bool model = options.draft != nullptr;
  if (model && options.lookup_tokens != 0) {
    return fail(invalid_input("speculation by lookup and by a draft model at once"));
  }
  const std::uint32_t count = model ? options.draft_tokens : options.lookup_tokens;
  if (count == 0) return std::unique_ptr<Drafter>();
  if (count >= engine.max_outputs() || count >= engine.chunk_tokens()) {
    return fail(invalid_input("speculation of " + std::to_string(count) +
                              " tokens: the engine was loaded for fewer logit rows in one run"));
  }
  if (!model) return std::make_unique<LookupDrafter>(count);
  CYB_TRY(check_vocabulary(engine, *options.draft));
  return std::make_unique<ModelDrafter>(options.draft, count, engine.vocab_size(), row);
}

}  // namespace cyb
