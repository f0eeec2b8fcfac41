// SpecialMatcher: finds special and user-defined tokens in text, leftmost first, then longest: a
// trie with a table of first bytes, so that text without them is skipped at a byte a step.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"

namespace cyb::text {

/// What a token may be matched in.
enum class MatchKind : std::uint8_t {
  kEverywhere,   // user-defined
  kControlOnly,  // control tokens and guarded markers: only in control text
};

struct SpecialMatch {
  std::size_t begin = 0, end = 0;
  std::int32_t id = -1;  // -1: none
};

/// Runs of control text: ascending, disjoint, not adjacent [begin, end) byte ranges.
struct ControlRun {
  std::size_t begin = 0, end = 0;
};

class SpecialMatcher {
 public:
  /// Longest text of a special token. Together with the trie it makes matching linear in the text.
  static constexpr std::size_t kMaxBytes = 512;

  /// SentencePiece vocabularies with scores: U+2581 in a token or in the text is a space, but two
  /// of them side by side in the text are a run of their own (checkpoints match those before they
  /// normalise). Call before add().
  void treat_marks_as_spaces() { marks_are_spaces_ = true; }

  /// Errors: Tokenizer for an empty or over-long text.
  Result<void> add(std::int32_t id, std::string_view text, MatchKind kind);
  /// Changes where a token that was added is matched.
  void set_kind(std::int32_t id, MatchKind kind);

  /// The longest token that starts at `at` and is matched everywhere; end 0: none.
  SpecialMatch longest_at(std::string_view text, std::size_t at) const {
    return first_[static_cast<unsigned char>(text[at])] == 0 ? SpecialMatch{}
                                                             : match_at(text, at, 0);
  }

  /// First match at or after `from`. `run` is the caller's place in `runs`; it only ever grows.
  SpecialMatch find(std::string_view text, std::size_t from, const std::vector<ControlRun>& runs,
                    std::size_t& run) const;

 private:
  struct Node {
    std::int32_t id = -1;
    MatchKind kind = MatchKind::kEverywhere;
  };
  struct Step {
    unsigned char byte = 0;
    std::size_t size = 0;  // 0: the match ends here
  };
  Step step(std::string_view text, std::size_t at, bool marks) const noexcept;
  std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;
  SpecialMatch match_at(std::string_view text, std::size_t at, std::size_t control_end) const;

  bool marks_are_spaces_ = false;
  std::array<std::uint32_t, 256> first_{};                  // node after the first byte, 0 = none
  std::vector<Node> nodes_{Node{}};                         // node 0 is unused
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node << 8 | byte -> node
};

}  // namespace cyb::text
