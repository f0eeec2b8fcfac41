// Walks of the grammar fuzz targets: every mask must agree with what the matcher takes, and no way
// may lead to a place from which nothing follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/grammar.hpp"
#include "text/grammar/token_masks.hpp"

namespace cyb {

inline std::shared_ptr<const text::TokenTrie> fuzz_trie() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"\"", "\": ", "\",", "{\"", "}}", "[[", "]", "aa", "ab", "((", "))",
                           "  ", "\n  ", "00", "true"})
    texts.emplace_back(word);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return std::make_shared<const text::TokenTrie>(views);
}

/// `seed` picks the ways.
inline void fuzz_walk(const Result<std::shared_ptr<const Grammar>>& grammar, std::uint64_t seed) {
  static const std::shared_ptr<const text::TokenTrie> kTrie = fuzz_trie();
  if (!grammar) {
    if (grammar.error().kind() != ErrorKind::kInvalidInput) std::abort();
    return;
  }
  GrammarMatcher matcher((*grammar)->masks(kTrie));
  std::vector<std::uint64_t> bits((kTrie->vocab_size() + 63) / 64);
  for (int step = 0; step < 40; ++step) {
    matcher.mask(bits);
    std::vector<std::int32_t> allowed;
    for (std::size_t id = 0; id < kTrie->vocab_size(); ++id) {
      if ((bits[id / 64] >> (id % 64) & 1) != 0) allowed.push_back(static_cast<std::int32_t>(id));
    }
    if (allowed.empty() != (matcher.must_end() && matcher.can_end())) std::abort();
    if (allowed.empty()) return;
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const std::size_t other = static_cast<std::size_t>(seed >> 32) % kTrie->vocab_size();
    const bool may = (bits[other / 64] >> (other % 64) & 1) != 0;
    if (matcher.accept(static_cast<std::int32_t>(other)) != may) std::abort();
    if (may) matcher.rollback(1);
    if (!matcher.accept(allowed[static_cast<std::size_t>(seed >> 40) % allowed.size()]))
      std::abort();
  }
}

}  // namespace cyb
