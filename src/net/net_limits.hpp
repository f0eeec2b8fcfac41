// Hard limits on what a server may say.
#pragma once

#include <cstdint>

namespace cyb::net {

inline constexpr std::uint64_t kMaxDownloadBytes = std::uint64_t{16} << 40;  // one file
inline constexpr std::uint64_t kMaxHubBytes = std::uint64_t{16} << 20;       // said of a repository
inline constexpr std::uint64_t kMaxHubFiles = 100000;                        // in a repository

}  // namespace cyb::net
