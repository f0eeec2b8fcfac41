// Case of texts as Python's str methods see it: full mappings, the final sigma, words.
#pragma once

#include <string>
#include <string_view>

namespace cyb::tmpl {

std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// First character in title case, the rest lower.
std::string capitalize(std::string_view text);
/// str.title(): every run of letters begins in title case.
std::string title_words(std::string_view text);
/// isupper() and islower(): some letter has a case, and all that have one have this.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

}  // namespace cyb::tmpl
