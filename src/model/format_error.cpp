// The texts of F codes that several files use, and the cleaning of names that come from a file.
#include "model/format_error.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace cyb {

Error format_error(std::string_view code, std::string message) {
  return Error(ErrorKind::kFormat, std::string(code), std::move(message));
}

Error toml_error(std::string_view part, std::uint64_t line, std::string_view why) {
  return format_error("F02", fmt::format("{}: TOML error at line {}: {}", part, line, why));
}

Error duplicate_error(std::string_view what, std::string_view name) {
  return format_error("F09", fmt::format("duplicate {} \"{}\"", what, printable(name)));
}

Error missing_part_error(std::string_view name) {
  return format_error("F10", fmt::format("missing part \"{}\"", name));
}

Error config_missing(std::string_view key) {
  return format_error("F31", fmt::format("config: {}: missing", key));
}

Error config_wrong_type(std::string_view key, std::string_view want) {
  return format_error("F31", fmt::format("config: {}: wrong type, want {}", key, want));
}

Error config_out_of_range(std::string_view key, std::string_view rule) {
  return format_error("F31", fmt::format("config: {}: out of range: {}", key, rule));
}

Error missing_family_tensor(std::string_view model_type, std::string_view tensor) {
  return format_error("F32",
                      fmt::format("model_type {}: missing tensor \"{}\"", model_type, tensor))
      .with("tensor", std::string(tensor));
}

Error family_shape_error(std::string_view tensor, const Shape& shape, const Shape& implied) {
  return format_error("F33", fmt::format("tensor \"{}\": shape {}, config implies {}", tensor,
                                         shape.text(), implied.text()))
      .with("tensor", std::string(tensor));
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  const bool cut = text.size() > max_bytes;
  if (cut) text = text.substr(0, utf8_complete_prefix(text.substr(0, max_bytes)));
  std::string out = utf8_replace_invalid(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return cut ? out + "..." : out;
}

}  // namespace cyb
