// Grammars and their matchers; the work is done in text::GrammarNetwork and text::TokenMasks.
#include "text/grammar/grammar.hpp"

#include <algorithm>
#include <utility>

#include "text/grammar/expression.hpp"
#include "text/grammar/lead.hpp"
#include "text/grammar/token_masks.hpp"

namespace cyb {
namespace {

constexpr std::size_t kMostVocabularies = 4;  // that a grammar remembers

}  // namespace

Grammar::Grammar(std::shared_ptr<const text::GrammarNetwork> network)
    : network_(std::move(network)) {}
Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>> Grammar::compile(text::GrammarRules& rules,
                                                        text::GrammarBudget& budget,
                                                        const GrammarLead& lead) {
  if (!lead.close.empty()) text::add_lead(rules, lead);
  rules.unroll_left_recursion();
  CYB_ASSIGN(text::GrammarNetwork network, text::GrammarNetwork::build(rules, budget));
  return std::shared_ptr<const Grammar>(
      new Grammar(std::make_shared<const text::GrammarNetwork>(std::move(network))));
}

std::shared_ptr<text::TokenMasks> Grammar::masks(
    std::shared_ptr<const text::TokenTrie> trie) const {
  const std::lock_guard lock(mutex_);
  for (const auto& known : masks_) {
    if (&known->trie() == trie.get()) return known;
  }
  if (masks_.size() == kMostVocabularies) masks_.erase(masks_.begin());
  masks_.push_back(std::make_shared<text::TokenMasks>(network_, std::move(trie)));
  return masks_.back();
}

bool Grammar::matches(std::string_view text) const {
  text::GrammarAutomaton automaton(*network_, 0);
  text::GrammarState state = automaton.start();
  for (const char byte : text) {
    state = automaton.next(state, static_cast<std::uint8_t>(byte));
    if (state == text::kDeadState) return false;
  }
  return automaton.complete(state);
}

GrammarMatcher::GrammarMatcher(std::shared_ptr<text::TokenMasks> masks)
    : masks_(std::move(masks)), track_(std::make_unique<text::GrammarTrack>()) {}
GrammarMatcher::GrammarMatcher(const GrammarMatcher& other)
    : masks_(other.masks_), track_(std::make_unique<text::GrammarTrack>(*other.track_)) {}
GrammarMatcher& GrammarMatcher::operator=(const GrammarMatcher& other) {
  if (this != &other) *this = GrammarMatcher(other);
  return *this;
}
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;
GrammarMatcher::~GrammarMatcher() = default;

void GrammarMatcher::mask(std::span<std::uint64_t> bits) {
  masks_->fill(*track_, bits);
}

bool GrammarMatcher::accept(std::int32_t token) {
  return masks_->accept(*track_, token);
}

void GrammarMatcher::rollback(std::size_t n) {
  n = std::min(n, track_->tokens.size());
  track_->tokens.resize(track_->tokens.size() - n);
  if (!track_->states.empty()) track_->states.resize(track_->tokens.size() + 1);
}

void GrammarMatcher::reset() {
  rollback(track_->tokens.size());
}

std::size_t GrammarMatcher::n_tokens() const noexcept {
  return track_->tokens.size();
}

bool GrammarMatcher::can_end() {
  return masks_->end(*track_).may;
}

bool GrammarMatcher::must_end() {
  return masks_->end(*track_).must;
}

}  // namespace cyb
