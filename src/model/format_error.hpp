// Makers of F-code errors whose texts are used in more than one file. Texts are those of
// docs/model-format.md, section "What a reader refuses".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "tensor/shape.hpp"

namespace cyb {

/// A FormatError with one of the F codes.
Error format_error(std::string_view code, std::string message);

/// F02 `<part>: TOML error at line <l>: <why>`.
Error toml_error(std::string_view part, std::uint64_t line, std::string_view why);
/// F09 `duplicate key "<name>"` ("part" for what = part).
Error duplicate_error(std::string_view what, std::string_view name);
/// F10 `missing part "<name>"`.
Error missing_part_error(std::string_view name);
/// F31 `config: <key>: missing`, `wrong type, want <t>` or `out of range: <rule>`.
Error config_missing(std::string_view key);
Error config_wrong_type(std::string_view key, std::string_view want);
Error config_out_of_range(std::string_view key, std::string_view rule);
/// F32 `model_type <m>: missing tensor "<t>"`.
Error missing_family_tensor(std::string_view model_type, std::string_view tensor);
/// F33 `tensor "<t>": shape <s>, config implies <x>`.
Error family_shape_error(std::string_view tensor, const Shape& shape, const Shape& implied);

/// `text` made fit for a message: control bytes and bad UTF-8 replaced, cut after `max_bytes`.
std::string printable(std::string_view text, std::size_t max_bytes = 128);

}  // namespace cyb
