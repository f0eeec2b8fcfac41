// Guesses for the next tokens: from the text itself, or from a smaller model. A guess is only ever
// checked, never believed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/generation.hpp"

namespace cyb {

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view kind() const noexcept = 0;
  virtual std::uint32_t max_tokens() const noexcept = 0;
  /// At most `count` tokens that may follow `tokens`; none where there is no idea. `sampler`: that
  /// of the answer; `position`: index of the first guess in the sequence, left-out tokens counted.
  /// Errors: what the draft's engine says, cancellation among it.
  virtual Result<std::span<const std::int32_t>> propose(std::span<const std::int32_t> tokens,
                                                        std::uint32_t count, const Sampler& sampler,
                                                        std::uint32_t position,
                                                        std::stop_token stop) = 0;
};

/// What followed the latest earlier place where the last 3 (else 2, else 1) tokens stand.
/// Saxena, prompt lookup decoding, 2023.
std::span<const std::int32_t> lookup_tokens(std::span<const std::int32_t> tokens,
                                            std::uint32_t count) noexcept;

/// Null where speculation is off. Errors: InvalidInput for both kinds at once, an engine of another
/// vocabulary, more guesses than the engine gives logit rows for.
Result<std::unique_ptr<Drafter>> make_drafter(const Engine& engine,
                                              const SpeculationOptions& options, std::uint32_t row);

}  // namespace cyb
