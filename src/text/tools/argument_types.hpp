// What a function's schema says of the types of its arguments, for formats whose values are texts
// without a type of their own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tools/tool_format.hpp"

namespace cyb {

/// Of one function. Types are bits of text::SchemaType; 0: nothing is said.
struct ArgumentTypes {
  std::string function;
  std::vector<std::pair<std::string, unsigned>> types{};

  unsigned of(std::string_view argument) const noexcept;
};

/// `schema`: the JSON Schema of the arguments, as text. It is read as far as it is understood; one
/// that cannot be read says nothing.
ArgumentTypes read_argument_types(std::string_view function, std::string_view schema);

/// Values of these types are texts as they stand, never JSON.
bool is_plain_text(unsigned types, const ToolTags& tags) noexcept;

/// A value that a model wrote as text, as JSON of one of `types` where it can be read so (Python's
/// literals too), else as a JSON string. `types` 0: of any.
std::string typed_json(std::string_view value, unsigned types);

}  // namespace cyb
