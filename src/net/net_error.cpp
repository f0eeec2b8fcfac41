// Kinds of the N codes.
#include "net/net_error.hpp"

namespace cyb::net {

Error net_error(std::string_view code, std::string message) {
  ErrorKind kind = ErrorKind::kFormat;
  if (code == kNoConnection || code == kBrokenLink || code == kStatus || code == kNoSpace)
    kind = ErrorKind::kIo;
  if (code == kChoice) kind = ErrorKind::kInvalidInput;
  return Error(kind, std::string(code), std::move(message));
}

}  // namespace cyb::net
