// The M codes (docs/errors.md): what can be wrong with a picture or a sound, or with giving it to
// an input.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace cyb::media {

inline Error format_code(std::string_view code, std::string text) {
  return Error(ErrorKind::kFormat, std::string(code), std::move(text));
}
inline Error input_code(std::string_view code, std::string text) {
  return Error(ErrorKind::kInvalidInput, std::string(code), std::move(text));
}

/// M01: the first bytes are of no kind that is read.
inline Error unknown_kind(std::string text) {
  return format_code("M01", std::move(text));
}
/// M02: cut off or damaged.
inline Error damaged(std::string text) {
  return format_code("M02", std::move(text));
}
/// M03: more pixels or samples than a limit allows.
inline Error too_large(std::string text) {
  return format_code("M03", std::move(text));
}
/// M04: a variety of the kind that is not read (CMYK, A-law ...).
inline Error unsupported(std::string text) {
  return format_code("M04", std::move(text));
}
/// M05: channels that the input does not take.
inline Error wrong_channels(std::string text) {
  return input_code("M05", std::move(text));
}
/// M06: a size or sample rate that the input does not take.
inline Error wrong_size(std::string text) {
  return input_code("M06", std::move(text));
}
/// M07: an input that takes no picture or no sound, or options that do not fit it.
inline Error wrong_input(std::string text) {
  return input_code("M07", std::move(text));
}

}  // namespace cyb::media
