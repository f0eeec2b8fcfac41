// Result<T>: the return type of everything that can fail, and the two macros that pass errors up.
#pragma once

#include <expected>
#include <utility>

#include "base/error.hpp"

namespace cyb {

template <class T>
using Result = std::expected<T, Error>;

/// `return fail(invalid_input("..."));` in a function that returns any Result.
inline std::unexpected<Error> fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}

}  // namespace cyb

#define CYB_CONCAT_INNER(a, b) a##b
#define CYB_CONCAT(a, b) CYB_CONCAT_INNER(a, b)

/// CYB_TRY(expr): returns the error of a Result, drops its value.
#define CYB_TRY(expr)                                                        \
  do {                                                                       \
    if (auto cyb_result = (expr); !cyb_result) {                             \
      return ::std::unexpected<::cyb::Error>(std::move(cyb_result).error()); \
    }                                                                        \
  } while (false)

/// CYB_ASSIGN(auto x, expr): declares or assigns x from a Result, or returns its error.
#define CYB_ASSIGN(decl, expr) CYB_ASSIGN_INNER(CYB_CONCAT(cyb_result_, __LINE__), decl, expr)
#define CYB_ASSIGN_INNER(tmp, decl, expr)                                   \
  auto tmp = (expr);                                                        \
  if (!tmp) return ::std::unexpected<::cyb::Error>(std::move(tmp).error()); \
  decl = *std::move(tmp)
