// Filters by group; filters.cpp has the table of names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/template/library.hpp"

namespace cyb::tmpl {

/// A filter at work.
struct FilterCall {
  Context& context;
  Host& host;
  std::string_view name;
  const Value& value;
  const Args& args;
};

using Filter = Value (*)(const FilterCall&);

// filters_text.cpp
Value filter_case(const FilterCall& call);  // upper lower capitalize title
Value filter_trim(const FilterCall& call);
Value filter_replace(const FilterCall& call);
Value filter_indent(const FilterCall& call);
Value filter_center(const FilterCall& call);
Value filter_truncate(const FilterCall& call);
Value filter_wordcount(const FilterCall& call);
Value filter_string(const FilterCall& call);
Value filter_format(const FilterCall& call);
Value filter_escape(const FilterCall& call);
Value filter_safe(const FilterCall& call);
Value filter_tojson(const FilterCall& call);
Value filter_int(const FilterCall& call);
Value filter_float(const FilterCall& call);
Value filter_abs(const FilterCall& call);
Value filter_round(const FilterCall& call);

/// float() of a text; nullopt: it is none, or too large.
std::optional<double> parse_float(std::string_view text);

// filters_web.cpp
Value filter_forceescape(const FilterCall& call);
Value filter_striptags(const FilterCall& call);
Value filter_urlencode(const FilterCall& call);
Value filter_xmlattr(const FilterCall& call);
Value filter_filesizeformat(const FilterCall& call);

Value filter_wordwrap(const FilterCall& call);  // filters_wrap.cpp
Value filter_pprint(const FilterCall& call);    // filters_pprint.cpp

// filters_list.cpp
Value filter_default(const FilterCall& call);
Value filter_length(const FilterCall& call);
Value filter_first(const FilterCall& call);
Value filter_last(const FilterCall& call);
Value filter_list(const FilterCall& call);
Value filter_join(const FilterCall& call);
Value filter_reverse(const FilterCall& call);
Value filter_sort(const FilterCall& call);
Value filter_unique(const FilterCall& call);
Value filter_extreme(const FilterCall& call);  // min max
Value filter_sum(const FilterCall& call);
Value filter_items(const FilterCall& call);
Value filter_dictsort(const FilterCall& call);
Value filter_batch(const FilterCall& call);
Value filter_slice(const FilterCall& call);
Value filter_groupby(const FilterCall& call);

// filters_select.cpp
Value filter_map(const FilterCall& call);
Value filter_select(const FilterCall& call);  // select reject selectattr rejectattr
Value filter_attr(const FilterCall& call);

/// The attribute path of `attribute="a.b.0"`, or of a number; null: the item itself.
class Getter {
 public:
  Getter(Context& context, const Value* attribute, const Value* fallback = nullptr);
  Value operator()(const Value& item) const;

 private:
  Context& context_;
  std::vector<Value> parts_;
  const Value* fallback_;
};

/// Strings in lower case, everything else as it is.
Value ignoring_case(Context& context, const Value& value);

}  // namespace cyb::tmpl
