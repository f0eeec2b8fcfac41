// Options of how answers are computed: how many, what does not fit, guesses ahead, a saved prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "runtime/generation.hpp"

namespace cyb::cli {

class GenerationFlags {
 public:
  void declare(Options& options);
  /// `chat`: at a terminal, turn by turn. Errors: Usage for a value that is none, for options that
  /// exclude each other.
  Result<void> check(bool chat) const;
  /// Names of all options that were given.
  std::vector<std::string> given() const;

  std::uint32_t n_answers() const noexcept {
    return static_cast<std::uint32_t>(answers_.value_or(1));
  }
  const std::optional<std::string>& prompt_cache() const noexcept { return prompt_cache_; }
  bool may_overflow() const noexcept { return overflow_ && *overflow_ != "error"; }
  /// Pages for all answers, rows for all guesses.
  void apply(EngineOptions& options) const;
  /// Loads the draft model where one is asked for. Errors: those of a load, naming --draft.
  Result<void> apply(Context& context, const ModelFlags& model, std::stop_token stop,
                     GenerateOptions& options) const;

 private:
  std::optional<std::uint64_t> answers_, draft_tokens_;
  std::optional<std::string> overflow_, speculate_, draft_, prompt_cache_;
};

/// Says what did not fit, as a warning; nothing where all did.
void report_overflow(Output& output, const OverflowReport& report);
/// How many guesses were right, as a note.
void report_speculation(Output& output, const SpeculationReport& report);

/// "lookup" or "lookup:N" as N. Errors: Usage.
Result<std::uint32_t> read_speculation(std::string_view text);

}  // namespace cyb::cli
