// TokenMasks: which tokens may follow, for one grammar and one vocabulary; shared by all answers
// under that grammar. What a machine takes by itself is looked up once for all places that call
// it; only tokens that go on past its end are looked at where it is called. All memory is bounded:
// beyond it everything is forgotten and made anew as needed. For any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar/automaton.hpp"
#include "text/grammar/token_trie.hpp"

namespace cyb::text {

/// Where one answer is: its tokens, and the state after each. Only TokenMasks reads the states.
struct GrammarTrack {
  std::vector<std::int32_t> tokens;
  std::vector<GrammarState> states;  // [tokens + 1], those of `round`
  std::uint64_t round = 0;
};

class TokenMasks {
 public:
  TokenMasks(std::shared_ptr<const GrammarNetwork> net, std::shared_ptr<const TokenTrie> trie);

  /// bits [at least vocab / 64 words]: 1 for each token that may follow; those past the vocabulary
  /// become 0.
  void fill(GrammarTrack& track, std::span<std::uint64_t> bits);
  /// False, and nothing changes, where `token` may not follow.
  bool accept(GrammarTrack& track, std::int32_t token);
  struct End {
    bool may = false, must = false;
  };
  End end(GrammarTrack& track);

  const TokenTrie& trie() const noexcept { return *trie_; }
  struct Stats {
    std::size_t n_states = 0, size_bytes = 0;
    std::uint64_t n_made = 0, n_found = 0, rounds = 0;  // masks; times all was forgotten
  };
  Stats stats();

 private:
  using Bits = std::vector<std::uint64_t>;
  struct Part {
    Bits bits;
    std::vector<std::uint32_t> ends;  // nodes of the trie at which the machine may end
  };
  void refresh(GrammarTrack& track);
  void forget();
  const Bits& mask(GrammarState state);
  void add_group(std::span<const GrammarPlace> group, Bits& bits);
  const Part& part(GrammarState state);
  void walk(std::uint32_t top, GrammarState state, Bits& bits, std::vector<std::uint32_t>* ends);

  std::mutex mutex_;
  std::shared_ptr<const GrammarNetwork> net_;
  std::shared_ptr<const TokenTrie> trie_;
  std::optional<GrammarAutomaton> automaton_;
  std::unordered_map<GrammarState, Bits> masks_;  // by canonical state
  std::unordered_map<GrammarState, Part> parts_;
  std::size_t part_bytes_ = 0;
  std::vector<GrammarState> path_;  // [depth] scratch of walk()
  std::uint64_t round_ = 1, n_made_ = 0, n_found_ = 0;
};

}  // namespace cyb::text
