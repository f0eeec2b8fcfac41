// The whole C++ API: header-only RAII over the C ABI of cyb.h, so that one libcyb serves every
// compiler.
#pragma once

#include <cyb/error.hpp>
#include <cyb/model.hpp>
#include <cyb/session.hpp>

#include <string_view>

namespace cyb {
inline namespace v1 {

inline std::string_view version() {
  return cyb_version();
}

}  // namespace v1
}  // namespace cyb
