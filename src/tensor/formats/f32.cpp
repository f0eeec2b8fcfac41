// f32: stored as it is.
#include <cstring>

#include "tensor/formats/formats.hpp"

namespace cyb::formats {

void decode_f32(const std::byte* src, float* dst, std::size_t n) noexcept {
  if (n != 0) std::memcpy(dst, src, n * sizeof(float));
}

}  // namespace cyb::formats
