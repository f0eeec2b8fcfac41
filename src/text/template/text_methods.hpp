// Methods of strings; filters use the same functions.
#pragma once

#include <string_view>
#include <vector>

#include "text/template/library.hpp"

namespace cyb::tmpl {

Value string_method(Context& context, const Str& self, std::string_view name, const Args& args);

/// strip(): white space, or the characters of `chars` (may be null), on the sides asked for.
Value strip(Context& context, const Str& self, const Value* chars, bool left, bool right);
/// replace(old, new, count); count < 0: all.
Value replace(Context& context, const Str& self, const Str& from, const Str& to,
              std::int64_t count);
/// separator.join(texts of the items)
Value join(Context& context, const Str& separator, std::span<const Value> items);
/// splitlines() as byte ranges, line ends not included.
std::vector<std::pair<std::size_t, std::size_t>> line_ranges(std::string_view text);
Value center(Context& context, const Str& self, std::int64_t width, std::string_view fill);

}  // namespace cyb::tmpl
