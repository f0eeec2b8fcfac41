// The trie of special tokens and its walk.
#include "text/tokenizers/special_matcher.hpp"

#include <fmt/format.h>

namespace cyb::text {

Result<void> SpecialMatcher::add(std::int32_t id, std::string_view text, MatchKind kind) {
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

SpecialMatch SpecialMatcher::match_at(std::string_view text, std::size_t at,
                                      std::size_t control_end) const {
  SpecialMatch best;
  std::uint32_t node = first_[static_cast<unsigned char>(text[at])];
  for (std::size_t end = at + 1; node != 0; ++end) {
    const Node& here = nodes_[node];
    if (here.id >= 0 && (here.kind == MatchKind::kEverywhere || end <= control_end)) {
      best = {at, end, here.id};
    }
    if (end == text.size()) break;
    node = child(node, static_cast<unsigned char>(text[end]));
  }
  return best;
}

SpecialMatch SpecialMatcher::find(std::string_view text, std::size_t from,
                                  const std::vector<ControlRun>& runs, std::size_t& run) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (first_[static_cast<unsigned char>(text[at])] == 0) continue;
    while (run < runs.size() && runs[run].end <= at) ++run;
    const bool in_control = run < runs.size() && runs[run].begin <= at;
    const SpecialMatch match = match_at(text, at, in_control ? runs[run].end : 0);
    if (match.id >= 0) return match;
  }
  return {};
}

}  // namespace cyb::text
