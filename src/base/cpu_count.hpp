// How many processors this process may use: affinity mask, container quota, and cores shared by
// hardware threads.
#pragma once

namespace cyb {

/// Logical processors in the affinity mask, limited by the container's CPU quota (rounded up);
/// >= 1.
unsigned usable_processors() noexcept;

/// Distinct physical cores among them, limited by the same quota; >= 1.
unsigned usable_cores() noexcept;

}  // namespace cyb
