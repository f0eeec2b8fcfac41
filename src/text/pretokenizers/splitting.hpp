// Cutting as the `tokenizers` package does it: a text is a row of matches and gaps, and one of five
// behaviours says how they join.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text/pretokenizers/steps.hpp"

namespace cyb::text {

enum class Behavior : std::uint8_t { kRemoved, kIsolated, kPrevious, kNext, kContiguous };

inline Piece start_of(const Pieces& pieces, Piece piece) noexcept {
  piece.at_start = piece.at_start && !pieces.shifted;
  return piece;
}

/// Spans of matches and gaps, in order, that cover a piece; joined as they come.
class Joiner {
 public:
  Joiner(Behavior behavior, const Piece& piece, std::vector<Piece>& out)
      : behavior_(behavior), piece_(piece), out_(out), first_(out.size()) {}

  /// Offsets inside of the piece; empty gaps must not be given, empty matches may be.
  void add(std::size_t begin, std::size_t end, bool match) {
    const bool has = out_.size() > first_;
    bool extend = false;
    switch (behavior_) {
      case Behavior::kRemoved:
        if (match) return;
        break;
      case Behavior::kIsolated:
        break;
      case Behavior::kContiguous:
        extend = has && match == previous_;
        break;
      case Behavior::kPrevious:
        extend = has && match && !previous_;
        break;
      case Behavior::kNext:
        // A gap joins the match before it, unless that match belongs to another gap's front.
        extend = has && !match && previous_;
        break;
    }
    previous_ = match;
    if (extend) {
      out_.back().end = piece_.begin + end;
      return;
    }
    out_.push_back({piece_.begin + begin, piece_.begin + end, piece_.at_start && begin == 0});
  }

  void finish() {
    const auto from = out_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto empty = [](const Piece& piece) { return piece.begin == piece.end; };
    out_.erase(std::remove_if(from, out_.end(), empty), out_.end());
  }

 private:
  Behavior behavior_;
  Piece piece_;
  std::vector<Piece>& out_;
  std::size_t first_;
  bool previous_ = false;
};

/// Cuts every piece at the matches that `find(text, match)` reports in order, by match(begin, end);
/// what lies between them are gaps. `invert`: matches and gaps change places.
template <class Find>
Result<void> split(Pieces& pieces, Behavior behavior, bool invert, const Find& find) {
  std::vector<Piece> out;
  out.reserve(pieces.list.size() * 2);
  for (const Piece& piece : pieces.list) {
    const std::string_view text = pieces.of(piece);
    Joiner joiner(behavior, start_of(pieces, piece), out);
    std::size_t done = 0;
    CYB_TRY(find(text, [&](std::size_t begin, std::size_t end) {
      if (begin > done) joiner.add(done, begin, invert);
      joiner.add(begin, end, !invert);
      done = end;
    }));
    if (done < text.size()) joiner.add(done, text.size(), invert);
    joiner.finish();
  }
  pieces.list = std::move(out);
  return {};
}

}  // namespace cyb::text
