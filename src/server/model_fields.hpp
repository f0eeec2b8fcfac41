// The field tables of the routes that load and unload models.
#pragma once

#include <span>

#include "server/fields.hpp"

namespace cyb::server {

/// POST /v1/models/load.
std::span<const Field> load_model_fields();
/// POST /v1/models/unload.
std::span<const Field> unload_model_fields();
/// POST /v1/models/pull.
std::span<const Field> pull_model_fields();

}  // namespace cyb::server
