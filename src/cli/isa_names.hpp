// Instruction sets by the names of CYB_ISA; a machine has some of them.
#pragma once

#include <array>
#include <string_view>

namespace cyb::cli {

inline constexpr std::array<std::string_view, 6> kIsaNames = {"scalar", "sse4",    "avx2",
                                                              "avx3",   "avx3_dl", "neon"};

}  // namespace cyb::cli
