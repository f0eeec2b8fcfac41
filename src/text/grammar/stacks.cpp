// Sets are made bottom up and never change; a union works off a list of pairs of sets below.
#include "text/grammar/stacks.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cyb::text {
namespace {

bool top_before(const StackFrame& a, const StackFrame& b) noexcept {
  return std::tie(a.node, a.loop, a.count) < std::tie(b.node, b.loop, b.count);
}

std::uint64_t pair_key(StackSet a, StackSet b) noexcept {
  return static_cast<std::uint64_t>(std::min(a, b)) << 32 | std::max(a, b);
}

}  // namespace

void HashIndex::clear() {
  slots_.clear();
  hashes_.clear();
}

void HashIndex::grow() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), UINT32_MAX);
  for (std::uint32_t i = 0; i < hashes_.size(); ++i) {
    std::size_t at = hashes_[i] & (slots_.size() - 1);
    while (slots_[at] != UINT32_MAX) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = i;
  }
}

StackSets::StackSets(const GrammarNetwork& net, std::size_t longest)
    : net_(&net), longest_(longest) {
  intern({}, true);  // kEmptyStack
}

std::size_t StackSets::size_bytes() const noexcept {
  return sets_.size() * (sizeof(Set) + 24) + frames_.size() * sizeof(StackFrame) +
         united_.size() * 48;
}

StackSet StackSets::intern(std::span<const StackFrame> frames, bool has_empty) {
  std::uint64_t hash = has_empty ? 1 : 2;
  for (const StackFrame& f : frames) {
    hash = mix_hash(hash, static_cast<std::uint64_t>(f.node) << 32 | f.loop);
    hash = mix_hash(mix_hash(hash, f.count), f.below);
  }
  const StackSet next = static_cast<StackSet>(sets_.size());
  const StackSet found = index_.find_or_add(hash, next, [&](StackSet s) {
    return sets_[s].has_empty == has_empty && std::ranges::equal(this->frames(s), frames);
  });
  if (found != next) return found;
  const std::size_t first = frames_.size();
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  sets_.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(frames.size()),
                   has_empty, next});
  sets_[next].canonical = make_canonical(next);
  return next;
}

/// A count further than a token from both bounds of its loop stands for all such counts.
std::uint64_t StackSets::clip(const StackFrame& frame) const noexcept {
  if (frame.loop == kNoLoop) return 0;
  const Loop& loop = net_->loop(frame.loop);
  const std::uint64_t far = longest_ + 2, k = frame.count;
  const std::uint64_t min = std::max<std::uint64_t>(loop.nullable ? 0 : loop.min, 1);
  if (k < min) return min - k > far ? 1 : k;  // max >= min is further still
  return loop.max == kUnbounded || loop.max - k > far ? min : k;
}

/// What lies below was made before, and knows its own.
StackSet StackSets::make_canonical(StackSet set) {
  bool same = true;
  for (const StackFrame& f : frames(set)) {
    same = same && clip(f) == f.count && sets_[f.below].canonical == f.below;
  }
  if (same) return set;
  StackSet out = UINT32_MAX;
  const std::size_t count = sets_[set].count;
  for (std::size_t i = 0; i < count; ++i) {
    StackFrame f = frames(set)[i];
    f.count = clip(f);
    f.below = sets_[f.below].canonical;
    const StackSet one = push(f);
    out = out == UINT32_MAX ? one : unite(out, one);
  }
  return sets_[set].has_empty ? unite(out, kEmptyStack) : out;
}

/// False: unions of sets below are missing, and were added to `todo`.
bool StackSets::merge(StackSet a, StackSet b, std::vector<StackFrame>& out,
                      std::vector<std::pair<StackSet, StackSet>>& todo) {
  out.clear();
  bool complete = true;
  const auto x = frames(a), y = frames(b);
  for (std::size_t i = 0, j = 0; i < x.size() || j < y.size();) {
    if (j == y.size() || (i < x.size() && top_before(x[i], y[j]))) {
      out.push_back(x[i++]);
    } else if (i == x.size() || top_before(y[j], x[i])) {
      out.push_back(y[j++]);
    } else {
      StackFrame f = x[i++];
      const StackSet other = y[j++].below;
      if (f.below != other) {
        const auto found = united_.find(pair_key(f.below, other));
        complete = complete && found != united_.end();
        if (found == united_.end()) todo.emplace_back(f.below, other);
        if (found != united_.end()) f.below = found->second;
      }
      out.push_back(f);
    }
  }
  return complete;
}

StackSet StackSets::unite(StackSet a, StackSet b) {
  if (a == b) return a;
  std::vector<std::pair<StackSet, StackSet>> todo{{a, b}};
  std::vector<StackFrame> merged;
  while (!todo.empty()) {
    const auto [x, y] = todo.back();
    if (united_.contains(pair_key(x, y))) {
      todo.pop_back();
      continue;
    }
    if (!merge(x, y, merged, todo)) continue;
    const StackSet both = intern(merged, has_empty(x) || has_empty(y));
    united_[pair_key(x, y)] = both;
  }
  return united_[pair_key(a, b)];
}

}  // namespace cyb::text
