// Regular expressions of public checkpoints that are quadratic as expressions, as scanners that
// give the same pieces in linear time.
#pragma once

#include <memory>
#include <string_view>

#include "text/pretokenizers/steps.hpp"

namespace cyb::text {

/// The step of a Split by `pattern` (Isolated, not inverted), or nullptr where it is not known
/// here.
std::unique_ptr<PreTokenizerStep> known_pattern(std::string_view pattern);

}  // namespace cyb::text
