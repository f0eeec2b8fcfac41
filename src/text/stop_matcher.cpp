// One KMP automaton per stop string; what is held is the longest suffix of the text that begins
// some stop string.
#include "text/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace cyb {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    if (text.empty()) continue;
    Stop stop{std::move(text), {}, 0};
    stop.border.assign(stop.text.size(), 0);
    for (std::size_t i = 1, k = 0; i < stop.text.size(); ++i) {
      while (k > 0 && stop.text[i] != stop.text[k]) k = stop.border[k - 1];
      if (stop.text[i] == stop.text[k]) ++k;
      stop.border[i] = static_cast<std::uint32_t>(k);
    }
    stops_.push_back(std::move(stop));
  }
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (stopped_) return true;
  for (const char c : text) {
    held_ += c;
    std::size_t longest = 0, complete = 0;
    for (Stop& stop : stops_) {
      while (stop.matched > 0 && stop.text[stop.matched] != c) {
        stop.matched = stop.border[stop.matched - 1];
      }
      if (stop.text[stop.matched] == c) ++stop.matched;
      longest = std::max(longest, stop.matched);
      if (stop.matched == stop.text.size()) complete = std::max(complete, stop.matched);
    }
    if (complete > 0) {
      out.append(held_, 0, held_.size() - complete);
      held_.clear();
      stopped_ = true;
      return true;
    }
    // Released in one go below; here only so that a long text does not pile up.
    if (held_.size() - longest >= 4096) {
      out.append(held_, 0, held_.size() - longest);
      held_.erase(0, held_.size() - longest);
    }
  }
  std::size_t longest = 0;
  for (const Stop& stop : stops_) longest = std::max(longest, stop.matched);
  out.append(held_, 0, held_.size() - longest);
  held_.erase(0, held_.size() - longest);
  return false;
}

void StopMatcher::flush(std::string& out) {
  if (!stopped_) out.append(held_);
  held_.clear();
  for (Stop& stop : stops_) stop.matched = 0;
}

void StopMatcher::reset() {
  held_.clear();
  stopped_ = false;
  for (Stop& stop : stops_) stop.matched = 0;
}

}  // namespace cyb
