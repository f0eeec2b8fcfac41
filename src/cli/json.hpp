// JSON of results; only .cpp files that print JSON include this.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace cyb::cli {

using Json = nlohmann::ordered_json;

/// Text that may hold bytes of half characters, as JSON can carry it.
inline std::string json_text(std::string_view bytes) {
  return utf8_replace_invalid(bytes);
}

}  // namespace cyb::cli
