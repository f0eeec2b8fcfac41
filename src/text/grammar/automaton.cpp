// One step: the edges of a byte, then everything that is reached without reading, to a fixed point.
// A machine that was entered and read nothing does not end here: whoever calls a machine that may
// be empty goes on past it by itself, so that empty iterations never count.
#include "text/grammar/automaton.hpp"

#include <algorithm>

namespace cyb::text {

GrammarAutomaton::GrammarAutomaton(const GrammarNetwork& net, std::size_t longest)
    : net_(&net), stacks_(net, longest), visits_(2 * net.n_nodes()), reading_(net.n_nodes()) {
  intern({}, false);  // kDeadState
  begin();
  reach(net.root().entry, kEmptyStack, true);
  complete_ = net.root().nullable;
  start_ = end();
}

std::size_t GrammarAutomaton::size_bytes() const noexcept {
  return stacks_.size_bytes() + states_.size() * (sizeof(State) + 24) +
         places_.size() * sizeof(GrammarPlace) + rows_.size() * sizeof(std::uint32_t);
}

void GrammarAutomaton::begin() {
  ++round_;
  complete_ = false;
  found_.clear();
  todo_.clear();
}

void GrammarAutomaton::reach(NodeId node, StackSet stack, bool fresh) {
  if (!net_->live(node)) return;
  if (net_->reads(node)) {
    Visit& reading = reading_[node];
    if (reading.round != round_) {
      reading = {round_, stack};
      found_.push_back(node);
    } else {
      reading.stack = stacks_.unite(reading.stack, stack);
    }
  }
  const std::uint32_t key = 2 * node + (fresh ? 1U : 0U);
  Visit& visit = visits_[key];
  if (visit.round == round_) {
    const StackSet both = stacks_.unite(visit.stack, stack);
    if (both == visit.stack) return;
    stack = both;
  }
  visit = {round_, stack};
  todo_.push_back(key);
}

void GrammarAutomaton::settle() {
  while (!todo_.empty()) {
    const std::uint32_t key = todo_.back();
    todo_.pop_back();
    follow(key / 2, visits_[key].stack, key % 2 == 1);
  }
}

void GrammarAutomaton::follow(NodeId node, StackSet stack, bool fresh) {
  if (net_->final(node) && !fresh) leave(stack);
  for (const NetworkEdge& e : net_->edges(node)) {
    if (e.kind == EdgeKind::kEpsilon) reach(e.target, stack, fresh);
    if (e.kind == EdgeKind::kCall) {
      const Machine& m = net_->machine(e.arg);
      if (net_->live(e.target) && net_->live(m.entry))
        reach(m.entry, e.tail ? stack : stacks_.push({.node = e.target, .below = stack}), true);
      if (m.nullable) reach(e.target, stack, fresh);
    }
    if (e.kind == EdgeKind::kLoop) {
      const Loop& loop = net_->loop(e.arg);
      const StackFrame frame{.loop = e.arg, .count = 1, .below = stack};
      if (loop.max > 0 && net_->live(e.target))
        reach(net_->machine(loop.machine).entry, stacks_.push(frame), true);
      if (loop.nullable) reach(e.target, stack, fresh);
    }
  }
}

/// The end of a machine: on with what it returns to.
void GrammarAutomaton::leave(StackSet stack) {
  complete_ = complete_ || stacks_.has_empty(stack);
  for (std::size_t i = 0; i < stacks_.frames(stack).size(); ++i) {
    StackFrame f = stacks_.frames(stack)[i];
    if (f.loop == kNoLoop) {
      reach(f.node, f.below, false);
      continue;
    }
    const Loop& loop = net_->loop(f.loop);
    if (f.count >= loop.min || loop.nullable) reach(loop.next, f.below, false);
    if (loop.max == kUnbounded) {
      f.count = std::min(f.count + 1, std::max<std::uint64_t>(loop.nullable ? 0 : loop.min, 1));
    } else if (f.count++ >= loop.max) {
      continue;
    }
    reach(net_->machine(loop.machine).entry, stacks_.push(f), true);
  }
}

GrammarState GrammarAutomaton::end() {
  settle();
  std::ranges::sort(found_);
  made_.clear();
  for (const NodeId node : found_) made_.push_back({node, reading_[node].stack});
  return intern(made_, complete_);
}

GrammarState GrammarAutomaton::intern(std::span<const GrammarPlace> places, bool complete) {
  std::uint64_t hash = complete ? 3 : 4;
  for (const GrammarPlace& p : places)
    hash = mix_hash(hash, static_cast<std::uint64_t>(p.node) << 32 | p.stack);
  const GrammarState next = static_cast<GrammarState>(states_.size());
  const GrammarState found = index_.find_or_add(hash, next, [&](GrammarState s) {
    return states_[s].complete == complete && std::ranges::equal(this->places(s), places);
  });
  if (found != next) return found;
  states_.push_back({.first = static_cast<std::uint32_t>(places_.size()),
                     .count = static_cast<std::uint32_t>(places.size()),
                     .complete = complete});
  places_.insert(places_.end(), places.begin(), places.end());
  rows_.resize(rows_.size() + net_->n_classes(), kUnknown);
  return next;
}

GrammarState GrammarAutomaton::step(GrammarState state, std::uint8_t byte) {
  begin();
  const std::size_t count = states_[state].count;
  for (std::size_t i = 0; i < count; ++i) {
    const GrammarPlace place = places(state)[i];
    for (const NetworkEdge& e : net_->edges(place.node)) {
      if (e.kind == EdgeKind::kBytes && net_->set(e.arg).test(byte))
        reach(e.target, place.stack, false);
    }
  }
  const GrammarState reached = end();
  rows_[row_of(state) + net_->byte_class(byte)] = reached;
  return reached;
}

GrammarState GrammarAutomaton::canonical(GrammarState state) {
  if (states_[state].canonical != kUnknown) return states_[state].canonical;
  made_.assign(places(state).begin(), places(state).end());
  for (GrammarPlace& place : made_) place.stack = stacks_.canonical(place.stack);
  const GrammarState found = intern(made_, states_[state].complete);
  states_[found].canonical = found;
  states_[state].canonical = found;
  return found;
}

GrammarState GrammarAutomaton::after_return(const StackFrame& frame) {
  begin();
  reach(frame.node, frame.below, false);
  return end();
}

}  // namespace cyb::text
