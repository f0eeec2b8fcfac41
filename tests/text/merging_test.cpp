// The two ways of merging (scan and heap) give the same symbols, and both equal the rule applied
// naively.
#include "text/tokenizers/merging.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cyb::text {
namespace {

// Symbols are numbers; a pair (a, b) has a rule with a priority from a small table, so that ties
// are common.
struct ToyRules {
  std::map<std::pair<int, int>, std::pair<std::uint32_t, int>> rules;
  std::uint32_t priority(const Symbol& left, const Symbol& right, std::uint32_t) const {
    const auto found = rules.find({left.id, right.id});
    return found == rules.end() ? kNoMerge : found->second.first;
  }
  std::int32_t merged(std::uint32_t priority, const Symbol&, std::uint32_t) const {
    for (const auto& [pair, rule] : rules) {
      if (rule.first == priority) return rule.second;
    }
    return -1;
  }
};

std::vector<int> naive(const ToyRules& rules, std::vector<int> ids) {
  while (true) {
    std::size_t best = 0;
    std::uint32_t lowest = kNoMerge;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const std::uint32_t p = rules.priority({0, ids[i]}, {0, ids[i + 1]}, 0);
      if (p < lowest) {
        lowest = p;
        best = i;
      }
    }
    if (lowest == kNoMerge) return ids;
    ids[best] = rules.merged(lowest, {}, 0);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merging, ScanAndHeapEqualTheNaiveRule) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    ToyRules rules;
    int next = 4;
    for (std::uint32_t priority = 0; priority < 12; ++priority, ++next) {
      const int a = static_cast<int>(random() % static_cast<unsigned>(next));
      const int b = static_cast<int>(random() % static_cast<unsigned>(next));
      rules.rules.try_emplace({a, b}, priority, next);
    }
    std::vector<int> ids(1 + random() % 200);
    for (int& id : ids) id = static_cast<int>(random() % 4);
    const std::vector<int> expected = naive(rules, ids);
    const std::uint32_t size = static_cast<std::uint32_t>(ids.size());
    for (const bool heap : {false, true}) {
      MergeScratch scratch;
      for (std::uint32_t i = 0; i < size; ++i) scratch.symbols.push_back({i, ids[i]});
      if (heap) {
        LongMerge<ToyRules>(rules, scratch, size).run();
      } else {
        merge_short(rules, scratch, size);
      }
      std::vector<int> got;
      for (const Symbol& symbol : scratch.symbols) got.push_back(symbol.id);
      ASSERT_EQ(got, expected) << "round " << round << (heap ? " heap" : " scan");
    }
  }
}

}  // namespace
}  // namespace cyb::text
