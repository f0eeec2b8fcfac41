// Scalars of TOML by their text: booleans, integers in four bases, floats. Strings are
// TomlCursor's.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "model/config.hpp"

namespace cyb {

/// The value that `text` stands for, or the reason why it is none (for an F02 message).
std::expected<ConfigValue, std::string_view> parse_toml_scalar(std::string_view text);

}  // namespace cyb
