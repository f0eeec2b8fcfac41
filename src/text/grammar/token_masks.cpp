// A token may follow where some place of the state takes all its bytes, so places are looked at one
// group (same return stack) at a time, and the groups' answers are joined.
#include "text/grammar/token_masks.hpp"

#include <algorithm>
#include <utility>

namespace cyb::text {
namespace {

constexpr std::size_t kMostAutomatonBytes = 64U << 20;
constexpr std::size_t kMostMaskBytes = 64U << 20;

}  // namespace

TokenMasks::TokenMasks(std::shared_ptr<const GrammarNetwork> net,
                       std::shared_ptr<const TokenTrie> trie)
    : net_(std::move(net)), trie_(std::move(trie)), path_(trie_->longest() + 1) {
  automaton_.emplace(*net_, trie_->longest());
}

void TokenMasks::forget() {
  masks_.clear();
  parts_.clear();
  part_bytes_ = 0;
  automaton_.emplace(*net_, trie_->longest());
  ++round_;
}

/// The track's states, anew where they were forgotten.
void TokenMasks::refresh(GrammarTrack& track) {
  if (automaton_->size_bytes() > kMostAutomatonBytes) forget();
  if (track.round == round_) return;
  track.states.assign(1, automaton_->start());
  for (const std::int32_t token : track.tokens) {
    GrammarState state = track.states.back();
    for (const char byte : trie_->text(token))
      state = automaton_->next(state, static_cast<std::uint8_t>(byte));
    track.states.push_back(state);
  }
  track.round = round_;
}

bool TokenMasks::accept(GrammarTrack& track, std::int32_t token) {
  const std::lock_guard lock(mutex_);
  refresh(track);
  const std::string_view text = trie_->text(token);
  GrammarState state = text.empty() ? kDeadState : track.states.back();
  for (const char byte : text) state = automaton_->next(state, static_cast<std::uint8_t>(byte));
  if (state == kDeadState) return false;
  track.tokens.push_back(token);
  track.states.push_back(state);
  return true;
}

TokenMasks::End TokenMasks::end(GrammarTrack& track) {
  const std::lock_guard lock(mutex_);
  refresh(track);
  const GrammarState state = track.states.back();
  const bool may = automaton_->complete(state);
  return {may, may && automaton_->closed(state)};
}

void TokenMasks::fill(GrammarTrack& track, std::span<std::uint64_t> bits) {
  const std::lock_guard lock(mutex_);
  refresh(track);
  const Bits& found = mask(automaton_->canonical(track.states.back()));
  std::ranges::fill(bits, 0);
  std::copy_n(found.begin(), std::min(found.size(), bits.size()), bits.begin());
}

TokenMasks::Stats TokenMasks::stats() {
  const std::lock_guard lock(mutex_);
  return {automaton_->n_states(), automaton_->size_bytes() + part_bytes_, n_made_, n_found_,
          round_ - 1};
}

const TokenMasks::Bits& TokenMasks::mask(GrammarState state) {
  const auto found = masks_.find(state);
  n_found_ += found != masks_.end() ? 1 : 0;
  if (found != masks_.end()) return found->second;
  ++n_made_;
  if (part_bytes_ > kMostMaskBytes) {
    masks_.clear();
    parts_.clear();
    part_bytes_ = 0;
  }
  Bits bits((trie_->vocab_size() + 63) / 64, 0);
  std::vector<GrammarPlace> places(automaton_->places(state).begin(),
                                   automaton_->places(state).end());
  std::ranges::stable_sort(places, {}, &GrammarPlace::stack);
  for (std::size_t first = 0, last = 0; first < places.size(); first = last) {
    while (last < places.size() && places[last].stack == places[first].stack) ++last;
    add_group(std::span(places).subspan(first, last - first), bits);
  }
  part_bytes_ += 8 * bits.size() + 64;
  return masks_.emplace(state, std::move(bits)).first->second;
}

/// Places of one machine that was called once: looked up without what the call returns to, counters
/// of the loops that it is in aside. Where it returns to several places, together with those.
void TokenMasks::add_group(std::span<const GrammarPlace> group, Bits& bits) {
  StackSets& stacks = automaton_->stacks();
  std::vector<StackFrame> loops;
  StackSet base = group[0].stack;
  const auto only_frame = [&] {
    return stacks.frames(base).size() == 1 && !stacks.has_empty(base);
  };
  while (only_frame() && stacks.frames(base)[0].loop != kNoLoop) {
    loops.push_back(stacks.frames(base)[0]);
    base = loops.back().below;
  }
  const bool returns = only_frame();
  std::vector<GrammarPlace> own(group.begin(), group.end());
  if (!returns && base != kEmptyStack) {
    walk(0, automaton_->state_of(own), bits, nullptr);
    return;
  }
  StackSet stack = kEmptyStack;
  for (std::size_t i = loops.size(); i-- > 0;) {
    loops[i].below = stack;
    stack = stacks.push(loops[i]);
  }
  for (GrammarPlace& place : own) place.stack = stack;
  const Part& found = part(automaton_->state_of(own));
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= found.bits[i];
  if (!returns || found.ends.empty()) return;
  const StackFrame frame = stacks.frames(base)[0];
  const GrammarState after = automaton_->after_return(frame);
  for (const std::uint32_t node : found.ends) walk(node, after, bits, nullptr);
}

const TokenMasks::Part& TokenMasks::part(GrammarState state) {
  const auto found = parts_.find(state);
  if (found != parts_.end()) return found->second;
  Part made;
  made.bits.assign((trie_->vocab_size() + 63) / 64, 0);
  walk(0, state, made.bits, &made.ends);
  part_bytes_ += 8 * made.bits.size() + 4 * made.ends.size() + 96;
  return parts_.emplace(state, std::move(made)).first->second;
}

/// Tokens below the node `top` that `state` takes from there on; `ends` where the text may end
/// after a node.
void TokenMasks::walk(std::uint32_t top, GrammarState state, Bits& bits,
                      std::vector<std::uint32_t>* ends) {
  const std::span<const TokenTrie::Node> nodes = trie_->nodes();
  const std::span<const std::int32_t> tokens = trie_->tokens();
  GrammarAutomaton& automaton = *automaton_;
  path_[nodes[top].depth] = state;
  for (std::uint32_t i = top + 1; i < nodes[top].end;) {
    const TokenTrie::Node& node = nodes[i];
    const GrammarState reached = automaton.next(path_[node.depth - 1U], node.byte);
    if (reached == kDeadState) {
      i = node.end;
      continue;
    }
    for (std::uint32_t t = node.first_token; t < nodes[i + 1].first_token; ++t) {
      const std::size_t id = static_cast<std::size_t>(tokens[t]);
      bits[id / 64] |= std::uint64_t{1} << (id % 64);
    }
    if (ends != nullptr && automaton.complete(reached)) ends->push_back(i);
    path_[node.depth] = reached;
    ++i;
  }
}

}  // namespace cyb::text
