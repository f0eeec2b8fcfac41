// Text and ids from arguments, files and pipes; whatever a person gives is checked here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::cli {

/// A file's text, or that of standard input for "-". Errors: Io, InvalidInput above the limit on
/// prompts.
Result<std::string> read_text(const std::string& path);

/// The argument, else the file, else (not a terminal) standard input. Errors: InvalidInput when
/// both or none are given.
Result<std::string> text_argument(const std::optional<std::string>& argument,
                                  const std::optional<std::string>& file, std::string_view what);

/// "1,2, 3": Errors: InvalidInput naming the item.
Result<std::vector<std::int32_t>> parse_ids(std::string_view text);

bool stdin_is_terminal() noexcept;

}  // namespace cyb::cli
