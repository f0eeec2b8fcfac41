// The version of program and library; CHANGELOG.md says what changed.
#pragma once

namespace cyb::api {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace cyb::api
