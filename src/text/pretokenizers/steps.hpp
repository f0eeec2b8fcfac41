// The pre-tokenizers of a tokenizer.json, one object a step. They cut a text into pieces; some also
// change it (a space mark, the byte alphabet). Linear in the text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::text {

/// [begin, end) of Pieces::text.
struct Piece {
  std::size_t begin = 0, end = 0;
  bool at_start = false;  // nothing of the whole input stands before it
};

struct Pieces {
  std::string text;
  std::vector<Piece> list;  // ascending, never empty pieces
  /// What stood at the very start was normalised away: a piece that is cut off is not at the start.
  bool shifted = false;

  std::string_view of(const Piece& piece) const noexcept {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual Result<void> apply(Pieces& pieces) const = 0;
};

/// Bytes to the characters of the byte alphabet.
std::string byte_level_text(std::string_view bytes);

/// `as_bytes`: a ByteLevel step leaves the bytes as they are (the model behind takes bytes).
/// Errors: NotBuilt naming the component or the field.
Result<std::unique_ptr<PreTokenizerStep>> make_pre_tokenizer(const nlohmann::json& step,
                                                             bool as_bytes);

}  // namespace cyb::text
