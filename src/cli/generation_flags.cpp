// Texts are read when they are checked, before anything is loaded.
#include "cli/generation_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint32_t kMaxGuesses = 64;
constexpr std::uint32_t kLookupTokens = 8, kDraftTokens = 4;  // where no number is given

Result<Overflow> read_overflow(std::string_view text) {
  for (const Overflow mode : {Overflow::kError, Overflow::kTruncate, Overflow::kShift}) {
    if (overflow_name(mode) == text) return mode;
  }
  return fail(
      usage_error(fmt::format("--overflow: \"{}\" is none of error, truncate, shift", text)));
}

}  // namespace

Result<std::uint32_t> read_speculation(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto count = colon == std::string_view::npos ? std::optional<std::uint64_t>(kLookupTokens)
                                                     : parse_integer(text.substr(colon + 1));
  if (text.substr(0, colon) != "lookup" || !count || *count < 1 || *count > kMaxGuesses) {
    return fail(usage_error(fmt::format(
        "--speculate: \"{}\" is not lookup or lookup:N, N from 1 to {}", text, kMaxGuesses)));
  }
  return static_cast<std::uint32_t>(*count);
}

void GenerationFlags::declare(Options& options) {
  options.integer("--answers", answers_, {1, 256}, "N",
                  "N answers to the prompt, each with random numbers of its own");
  options.optional_text("--overflow", overflow_, "MODE",
                        "What does not fit the context: error (default), truncate (of the prompt), "
                        "shift (of the answer too)");
  options.optional_text("--speculate", speculate_, "lookup[:N]",
                        "Guess up to N (8) tokens from the text so far and check them in one run: "
                        "same answer, sooner where it repeats");
  options.optional_text("--draft", draft_, "MODEL",
                        "Guess with a smaller model of the same vocabulary: same answer");
  options.integer("--draft-tokens", draft_tokens_, {1, kMaxGuesses}, "N",
                  "How far --draft goes ahead (4)");
  options.optional_text(
      "--prompt-cache", prompt_cache_, "FILE",
      "Start from what FILE holds of the prompt, and save prompt and answer there");
}

Result<void> GenerationFlags::check(bool chat) const {
  if (overflow_) CYB_TRY(read_overflow(*overflow_));
  if (speculate_) CYB_TRY(read_speculation(*speculate_));
  if (speculate_ && draft_) {
    return fail(usage_error("--speculate and --draft both guess: give one of them"));
  }
  if (draft_tokens_ && !draft_) return fail(usage_error("--draft-tokens needs --draft"));
  if (n_answers() == 1) return {};
  if (chat) return fail(usage_error("--answers: a chat has one answer at a time"));
  if (draft_) return fail(usage_error("--answers: a draft model goes with one answer at a time"));
  return {};
}

std::vector<std::string> GenerationFlags::given() const {
  const std::pair<const char*, bool> all[] = {
      {"--answers", answers_.has_value()},           {"--overflow", overflow_.has_value()},
      {"--speculate", speculate_.has_value()},       {"--draft", draft_.has_value()},
      {"--draft-tokens", draft_tokens_.has_value()}, {"--prompt-cache", prompt_cache_.has_value()}};
  std::vector<std::string> names;
  for (const auto& [name, is_given] : all) {
    if (is_given) names.emplace_back(name);
  }
  return names;
}

void GenerationFlags::apply(EngineOptions& options) const {
  options.max_sequences = std::max(options.max_sequences, n_answers());
  std::uint32_t guesses = 0;
  if (speculate_) guesses = read_speculation(*speculate_).value_or(0);
  if (draft_) guesses = static_cast<std::uint32_t>(draft_tokens_.value_or(kDraftTokens));
  options.max_outputs = std::max(options.max_outputs, guesses + 1);
}

Result<void> GenerationFlags::apply(Context& context, const ModelFlags& model, std::stop_token stop,
                                    GenerateOptions& options) const {
  if (overflow_) {
    CYB_ASSIGN(options.overflow, read_overflow(*overflow_));
  }
  if (speculate_) {
    CYB_ASSIGN(options.speculation.lookup_tokens, read_speculation(*speculate_));
  }
  if (!draft_) return {};
  // Its context may be smaller than the model's: it then stops guessing.
  EngineOptions engine = model.engine_options();
  engine.ctx_tokens = 0;
  auto loaded = ModelFlags(*draft_).load(context, stop, engine);
  if (!loaded) return fail(std::move(loaded).error().in("--draft"));
  options.speculation.draft = *std::move(loaded);
  options.speculation.draft_tokens =
      static_cast<std::uint32_t>(draft_tokens_.value_or(kDraftTokens));
  return {};
}

void report_overflow(Output& output, const OverflowReport& report) {
  if (report.dropped_prompt_tokens > 0) {
    output.warning(fmt::format("the context is too small: {} tokens of the prompt were left out",
                               report.dropped_prompt_tokens));
  }
  if (report.shifts > 0) {
    output.warning(fmt::format("the context was full {} times: {} tokens were left out",
                               report.shifts, report.dropped_tokens));
  }
}

void report_speculation(Output& output, const SpeculationReport& report) {
  if (report.kind.empty()) return;
  const double share = report.drafted == 0 ? 0.0
                                           : 100.0 * static_cast<double>(report.accepted) /
                                                 static_cast<double>(report.drafted);
  output.note(fmt::format("speculation ({}): {} of {} guesses were right ({:.0f} %) in {} runs",
                          report.kind, report.accepted, report.drafted, share, report.rounds));
}

}  // namespace cyb::cli
