// The table of filters.
#include "text/template/filters.hpp"

#include <algorithm>
#include <array>

namespace cyb::tmpl {
namespace {

constexpr std::array<std::pair<std::string_view, Filter>, 53> kFilters{{
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", filter_case},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"format", filter_format},
    {"groupby", filter_groupby},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_case},
    {"map", filter_map},
    {"max", filter_extreme},
    {"min", filter_extreme},
    {"reject", filter_select},
    {"rejectattr", filter_select},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", filter_select},
    {"selectattr", filter_select},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", filter_case},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", filter_case},
    {"wordcount", filter_wordcount},
    {"filesizeformat", filter_filesizeformat},
    {"forceescape", filter_forceescape},
    {"pprint", filter_pprint},
    {"striptags", filter_striptags},
    {"urlencode", filter_urlencode},
    {"wordwrap", filter_wordwrap},
    {"xmlattr", filter_xmlattr},
    {"", nullptr},
}};

constexpr std::array<std::string_view, 2> kRefused{"random", "urlize"};

Filter find_filter(std::string_view name) noexcept {
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace

Support filter_support(std::string_view name) noexcept {
  if (find_filter(name) != nullptr) return Support::kYes;
  return std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end() ? Support::kRefused
                                                                             : Support::kUnknown;
}

Value call_filter(Context& context, Host& host, std::string_view name, const Value& value,
                  const Args& args) {
  return find_filter(name)({context, host, name, value, args});
}

}  // namespace cyb::tmpl
