// Grammar: what the text of an answer must be. Compiled once from one of four languages, immutable,
// shared by any number of answers and vocabularies. docs/grammars.md says what each language may
// hold.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace cyb {

namespace text {
class GrammarBudget;
class GrammarNetwork;
class GrammarRules;
class TokenMasks;
class TokenTrie;
struct GrammarTrack;
}  // namespace text

/// What may stand before the text that a grammar describes: `open`, anything, `close`, white space.
/// `opened`: `open` was written already, so that `close` must come. Empty `close`: nothing may.
struct GrammarLead {
  std::string open{}, close{};
  bool opened = false;
};

class Grammar {
 public:
  /// Each compiles within 200 ms, 100,000 states and 64 levels of nesting. Errors: InvalidInput
  /// that names the place (line and column, path in the schema, rule) and what is wrong or not
  /// supported there.
  static Result<std::shared_ptr<const Grammar>> from_json_schema(std::string_view schema,
      const GrammarLead& lead = {});
  /// Any JSON object (OpenAI's json_object).
  static Result<std::shared_ptr<const Grammar>> any_json_object();
  /// llama.cpp's GBNF.
  static Result<std::shared_ptr<const Grammar>> from_gbnf(std::string_view source,
      const GrammarLead& lead = {});
  /// The whole text is one match.
  static Result<std::shared_ptr<const Grammar>> from_regex(std::string_view pattern,
      const GrammarLead& lead = {});
  static Result<std::shared_ptr<const Grammar>> from_lark(std::string_view source,
      const GrammarLead& lead = {});

  ~Grammar();
  /// What is known of this grammar with a vocabulary; made at the first call for it.
  std::shared_ptr<text::TokenMasks> masks(std::shared_ptr<const text::TokenTrie> trie) const;
  const text::GrammarNetwork& network() const noexcept { return *network_; }
  /// The whole of `text` fits. For tests and checks: one state at a time, nothing kept.
  bool matches(std::string_view text) const;

  /// For the front ends.
  static Result<std::shared_ptr<const Grammar>> compile(text::GrammarRules& rules,
                                                        text::GrammarBudget& budget,
                                                        const GrammarLead& lead = {});

 private:
  explicit Grammar(std::shared_ptr<const text::GrammarNetwork> network);

  std::shared_ptr<const text::GrammarNetwork> network_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<text::TokenMasks>> masks_;  // of the latest vocabularies
};

/// One answer under a grammar.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<text::TokenMasks> masks);
  GrammarMatcher(const GrammarMatcher&);
  GrammarMatcher& operator=(const GrammarMatcher&);
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;
  ~GrammarMatcher();

  /// bits: one per token, 64 to a word; 1 for each whose bytes may come next. Those of control
  /// tokens and of tokens that end an answer are 0: see can_end().
  void mask(std::span<std::uint64_t> bits);
  /// Takes a token. False, and nothing changes, where it may not follow.
  bool accept(std::int32_t token);
  /// Takes the last `n` tokens back (at most all of them).
  void rollback(std::size_t n);
  void reset();
  std::size_t n_tokens() const noexcept;
  /// The text is complete.
  bool can_end();
  /// The text is complete, and nothing can be added to it.
  bool must_end();

 private:
  std::shared_ptr<text::TokenMasks> masks_;
  std::unique_ptr<text::GrammarTrack> track_;
};

}  // namespace cyb
