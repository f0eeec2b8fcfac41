// Values of case inputs: Philox numbers mapped exactly, so that every machine makes the same bytes.
#pragma once

#include <string_view>
#include <vector>

#include "conformance/case.hpp"

namespace cyb::test {

/// Bytes of an input, in its dtype; `seed` names it ("Matmul/f32_3x7/1").
std::vector<std::byte> make_bytes(const In& in, std::string_view seed);

}  // namespace cyb::test
