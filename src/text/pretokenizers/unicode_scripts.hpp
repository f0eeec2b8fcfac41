// Cuts where the script changes; spaces belong to what stands before them.
#pragma once

#include "text/pretokenizers/steps.hpp"

namespace cyb::text {

/// Number of a character's script, 0: none.
unsigned script_of(char32_t c) noexcept;

class UnicodeScripts final : public PreTokenizerStep {
 public:
  Result<void> apply(Pieces& pieces) const override;
};

}  // namespace cyb::text
