// Support of the grammar tests: vocabularies, matchers over bytes, walks with random numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/philox.hpp"
#include "text/grammar/grammar.hpp"
#include "text/grammar/token_masks.hpp"
#include "text/grammar/token_trie.hpp"

namespace cyb {

using GrammarPtr = std::shared_ptr<const Grammar>;

inline GrammarPtr must_compile(Result<GrammarPtr> made) {
  if (made) return *std::move(made);
  ADD_FAILURE() << made.error().text();
  return nullptr;
}

/// All bytes, and then `words`.
inline std::shared_ptr<const text::TokenTrie> byte_trie(
    const std::vector<std::string>& words = {}) {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  texts.insert(texts.end(), words.begin(), words.end());
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return std::make_shared<const text::TokenTrie>(views);
}

inline std::vector<std::uint64_t> mask_of(GrammarMatcher& matcher, std::size_t vocab) {
  std::vector<std::uint64_t> bits((vocab + 63) / 64);
  matcher.mask(bits);
  return bits;
}

inline bool bit(const std::vector<std::uint64_t>& bits, std::size_t id) {
  return (bits[id / 64] >> (id % 64) & 1) != 0;
}

/// Random numbers of a test.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(philox_uniform(seed_, count_++, 0) * static_cast<float>(n)) %
           n;
  }

 private:
  std::uint64_t seed_;
  std::uint32_t count_ = 0;
};

}  // namespace cyb
