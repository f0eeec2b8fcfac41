// AddedTokens: finds special and added tokens in a text and hands out what stands between them.
// Tokens that are matched in the normalised text have a matcher of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizers/special_matcher.hpp"

namespace cyb::text {

class Pipeline;

/// Where a fragment stands.
struct FragmentPlace {
  bool first = false;    // at the start of the text
  bool control = false;  // all of it is control text
};

class AddedTokens {
 public:
  void treat_marks_as_spaces() { plain_.treat_marks_as_spaces(); }

  /// `pipeline`: flags and normalizers of the token; may be null. Errors: Tokenizer.
  Result<void> add(std::int32_t id, std::string_view text, MatchKind kind,
                   const Pipeline* pipeline);
  void set_kind(std::int32_t id, MatchKind kind);
  bool has_normalized() const noexcept { return has_normalized_; }

  /// fragment(text, place) -> Result<void> for each text between tokens, token(id) for each token.
  template <class Fragment, class Token>
  Result<void> walk(std::string_view whole, const std::vector<ControlRun>& runs,
                    const Fragment& fragment, const Token& token) const {
    return walk_with(plain_, whole, runs, fragment, token);
  }

  /// The same for the tokens that are matched in normalised text. Control tokens are matched only
  /// where the whole text is control.
  template <class Fragment, class Token>
  Result<void> walk_normalized(std::string_view whole, bool control, const Fragment& fragment,
                               const Token& token) const {
    std::vector<ControlRun> runs;
    if (control) runs.push_back({0, whole.size()});
    return walk_with(normalized_, whole, runs, fragment, token);
  }

 private:
  static constexpr std::uint8_t kLeft = 1, kRight = 2, kWord = 4;

  template <class Fragment, class Token>
  Result<void> walk_with(const SpecialMatcher& matcher, std::string_view whole,
                         const std::vector<ControlRun>& runs, const Fragment& fragment,
                         const Token& token) const {
    std::size_t run = 0, done = 0, place_run = 0;
    for (std::size_t at = 0;;) {
      SpecialMatch match = matcher.find(whole, at, runs, run);
      if (match.id < 0) break;
      at = match.end;
      if (!flags_.empty() && !accept(whole, done, match)) continue;
      if (match.begin > done) {
        CYB_TRY(fragment(whole.substr(done, match.begin - done),
                         place_of(done, match.begin, runs, place_run)));
      }
      token(match.id);
      // The search goes on behind the token itself: one that stands in white space which was
      // taken along still counts, as in the package.
      done = match.end;
    }
    if (done >= whole.size()) return {};
    return fragment(whole.substr(done), place_of(done, whole.size(), runs, place_run));
  }

  static FragmentPlace place_of(std::size_t begin, std::size_t end,
                                const std::vector<ControlRun>& runs, std::size_t& run) {
    while (run < runs.size() && runs[run].end <= begin) ++run;
    const bool control = run < runs.size() && runs[run].begin <= begin && end <= runs[run].end;
    return {begin == 0, control};
  }

  /// single_word, lstrip and rstrip: false where the match does not count; else it may grow.
  bool accept(std::string_view whole, std::size_t done, SpecialMatch& match) const;

  SpecialMatcher plain_, normalized_;
  std::vector<std::uint8_t> flags_;  // by id; empty where no token has one
  bool has_normalized_ = false;
};

}  // namespace cyb::text
