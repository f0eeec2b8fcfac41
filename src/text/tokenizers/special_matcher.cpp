// The trie of special tokens and its walk.
#include "text/tokenizers/special_matcher.hpp"

#include <fmt/format.h>

#include <string>

#include "text/tokenizers/space_mark.hpp"

namespace cyb::text {

Result<void> SpecialMatcher::add(std::int32_t id, std::string_view given, MatchKind kind) {
  const std::string text = marks_are_spaces_ ? plain_spaces(given) : std::string(given);
  if (text.empty() || text.size() > kMaxBytes) {
    return fail(tokenizer_error(fmt::format("special token {} has {} bytes, 1..{} are allowed", id,
                                            text.size(), kMaxBytes)));
  }
  std::uint32_t* link = &first_[static_cast<unsigned char>(text[0])];
  for (std::size_t i = 0;;) {
    if (*link == 0) {
      *link = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    const std::uint32_t node = *link;
    if (++i == text.size()) {
      if (nodes_[node].id < 0) nodes_[node] = {id, kind};
      return {};
    }
    link = &edges_[std::uint64_t{node} << 8 | static_cast<unsigned char>(text[i])];
  }
}

void SpecialMatcher::set_kind(std::int32_t id, MatchKind kind) {
  for (Node& node : nodes_) {
    if (node.id == id) node.kind = kind;
  }
}

std::uint32_t SpecialMatcher::child(std::uint32_t node, unsigned char byte) const noexcept {
  const auto found = edges_.find(std::uint64_t{node} << 8 | byte);
  return found == edges_.end() ? 0 : found->second;
}

// One byte of a token against the text. `marks`: inside of a run that began with two marks.
SpecialMatcher::Step SpecialMatcher::step(std::string_view text, std::size_t at,
                                          bool marks) const noexcept {
  const unsigned char byte = static_cast<unsigned char>(text[at]);
  const std::string_view rest = text.substr(at);
  if (!marks_are_spaces_ || !rest.starts_with(kSpaceMark))
    return {byte, marks && byte == ' ' ? 0U : 1U};
  const bool two = rest.substr(kSpaceMark.size()).starts_with(kSpaceMark);
  return {' ', two && !marks ? 0 : kSpaceMark.size()};
}

SpecialMatch SpecialMatcher::match_at(std::string_view text, std::size_t at,
                                      std::size_t control_end) const {
  SpecialMatch best;
  const std::string_view rest = text.substr(at);
  const bool marks = marks_are_spaces_ && rest.starts_with(kSpaceMark) &&
                     rest.substr(kSpaceMark.size()).starts_with(kSpaceMark);
  Step next = step(text, at, marks);
  std::uint32_t node = first_[next.byte];
  for (std::size_t end = at + next.size; node != 0 && next.size != 0; end += next.size) {
    const Node& here = nodes_[node];
    if (here.id >= 0 && (here.kind == MatchKind::kEverywhere || end <= control_end)) {
      best = {at, end, here.id};
    }
    if (end == text.size()) break;
    next = step(text, end, marks);
    node = child(node, next.byte);
  }
  return best;
}

SpecialMatch SpecialMatcher::find(std::string_view text, std::size_t from,
                                  const std::vector<ControlRun>& runs, std::size_t& run) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    const unsigned char byte = static_cast<unsigned char>(text[at]);
    const bool may_be_mark = marks_are_spaces_ && byte == 0xE2;
    if (first_[byte] == 0 && !may_be_mark) continue;
    while (run < runs.size() && runs[run].end <= at) ++run;
    const bool in_control = run < runs.size() && runs[run].begin <= at;
    const SpecialMatch match = match_at(text, at, in_control ? runs[run].end : 0);
    if (match.id >= 0) return match;
  }
  return {};
}

}  // namespace cyb::text
