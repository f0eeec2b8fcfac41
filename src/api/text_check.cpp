// One message for arguments, files, pipes and calls.
#include "api/text_check.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace cyb::api {

Result<void> check_utf8(std::string_view text, std::string_view what) {
  const std::size_t at = utf8_find_invalid(text);
  if (at == std::string_view::npos) return {};
  return fail(invalid_input(fmt::format("{} is not UTF-8: byte 0x{:02X} at offset {}", what,
                                        static_cast<unsigned char>(text[at]), at)));
}

}  // namespace cyb::api
