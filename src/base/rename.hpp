// How a file gets its final name: nothing half-written ever has it.
#pragma once

#include <string>

#include "base/result.hpp"

namespace cyb {

/// fsync of `fd` (open on `from`), rename over `to`, fsync of the folder: what AtomicFile::commit
/// does. Errors: Io.
Result<void> sync_and_rename(int fd, const std::string& from, const std::string& to);

}  // namespace cyb
