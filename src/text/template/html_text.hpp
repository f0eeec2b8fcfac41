// Character references of HTML in texts.
#pragma once

#include <string>
#include <string_view>

namespace cyb::tmpl {

/// Python's html.unescape: references as the HTML 5 standard reads them, names also without their
/// semicolon where it allows that.
std::string unescape_html(std::string_view text);

}  // namespace cyb::tmpl
