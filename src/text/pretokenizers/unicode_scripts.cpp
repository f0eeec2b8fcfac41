// As the `tokenizers` package does it: what stands before the first character with a script is
// dropped.
#include "text/pretokenizers/unicode_scripts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "text/pretokenizers/char_class.hpp"
#include "text/pretokenizers/splitting.hpp"

namespace cyb::text {
namespace {

struct Range {
  char32_t first, last;
  unsigned script;
};
constexpr auto kRanges = std::to_array<Range>({
#include "text/pretokenizers/scripts.inc"
});

}  // namespace

unsigned script_of(char32_t c) noexcept {
  const auto* const found = std::ranges::upper_bound(kRanges, c, {}, &Range::first);
  if (found == kRanges.begin()) return 0;
  const Range& range = *std::prev(found);
  return c <= range.last ? range.script : 0;
}

Result<void> UnicodeScripts::apply(Pieces& pieces) const {
  std::vector<Piece> out;
  out.reserve(pieces.list.size() * 2);
  for (const Piece& given : pieces.list) {
    const Piece piece = start_of(pieces, given);
    unsigned last = 0;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const std::size_t size = valid_size(static_cast<unsigned char>(pieces.text[at]));
      const unsigned script = script_of(decode_valid(pieces.text, at, size));
      if (script != 0 && script != last) {
        out.push_back({at, piece.end, piece.at_start && at == piece.begin});
        if (last != 0) out[out.size() - 2].end = at;
        last = script;
      }
      at += size;
    }
  }
  pieces.list = std::move(out);
  return {};
}

}  // namespace cyb::text
