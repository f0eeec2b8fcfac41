// The field tables of the routes of the text layer.
#pragma once

#include <span>

#include "server/fields.hpp"

namespace cyb::server {

/// POST /tokenize.
std::span<const Field> tokenize_fields();
/// POST /detokenize.
std::span<const Field> detokenize_fields();
/// POST /apply-template.
std::span<const Field> apply_template_fields();

}  // namespace cyb::server
