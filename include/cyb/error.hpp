// Errors of the C++ API. Needs C++23 for std::expected; nothing here throws but std::bad_alloc.
#pragma once

#include <cyb/cyb.h>

#include <expected>
#include <memory>
#include <string_view>

namespace cyb {
inline namespace v1 {

/// Why a call failed. One pointer; movable.
class Error {
 public:
  explicit Error(cyb_error* error) : error_(error) {}

  /// Stable code: "F11", "D1", "InvalidInput", ... (docs/errors.md).
  std::string_view code() const { return cyb_error_code(error_.get()); }
  /// One line for people.
  std::string_view text() const { return cyb_error_text(error_.get()); }
  /// {"code", "kind", "message", "context", "detail"}.
  std::string_view json() const { return cyb_error_json(error_.get()); }
  int exit_code() const { return cyb_error_exit_code(error_.get()); }

 private:
  struct Free {
    void operator()(cyb_error* error) const { cyb_error_free(error); }
  };
  std::unique_ptr<cyb_error, Free> error_;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace v1
}  // namespace cyb
