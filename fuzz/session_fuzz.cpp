// Saved sessions: any bytes as an index, and as a whole file. What decodes is encoded again to the
// same bytes.
#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/session_format.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)cyb::parse_session(bytes);
  auto index = cyb::decode_session_index(bytes);
  if (!index) return 0;
  const auto again = cyb::encode_session_index(*index);
  if (!std::ranges::equal(std::span(again).subspan(8), bytes.subspan(8))) __builtin_trap();
  return 0;
}
