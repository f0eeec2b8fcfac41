// LengthRule: how the rope frequencies of a model depend on T, the length of a sequence (spec
// model-format section 4.3). K is cached rotated, so tokens may share a cache only where their
// frequency sets are the same.
#pragma once

#include <cstdint>

#include "model/config.hpp"

namespace cyb {

struct LengthRule {
  enum class Kind : std::uint8_t {
    kNone,    // one set
    kSwitch,  // longrope: two, the second above `original`; crossing it computes the cache again
    kEach,    // dynamic: one for each T above `original`; older tokens keep theirs
  };
  Kind kind = Kind::kNone;
  std::uint32_t original = 0;

  /// Names the frequency set of T.
  std::uint32_t set_of(std::uint32_t length) const noexcept {
    if (kind == Kind::kNone || length <= original) return 0;
    return kind == Kind::kSwitch ? 1 : length;
  }
};

/// Errors: F31.
Result<LengthRule> read_length_rule(const ConfigTable& config);

}  // namespace cyb
