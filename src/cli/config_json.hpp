// Configuration tables as JSON; only .cpp files that print JSON include this.
#pragma once

#include "cli/json.hpp"
#include "model/config.hpp"

namespace cyb::cli {

Json config_json(const ConfigTable& table);
Json config_json(const ConfigValue& value);

}  // namespace cyb::cli
