// The built-in filters, tests, methods and functions, and how they are called.
#pragma once

#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "text/template/value.hpp"

namespace cyb::tmpl {

/// Evaluated arguments of a call.
struct Args {
  std::span<const Value> positional;
  std::span<const std::pair<std::string_view, Value>> named;
};

/// What a built-in needs from the interpreter.
class Host {
 public:
  virtual Value filter(std::string_view name, const Value& value, const Args& args) = 0;
  virtual bool test(std::string_view name, const Value& value, const Args& args) = 0;

 protected:
  ~Host() = default;
};

enum class Support : std::uint8_t {
  kYes,
  kRefused /* jinja2 has it, this engine does not */,
  kUnknown
};
Support filter_support(std::string_view name) noexcept;
Support test_support(std::string_view name) noexcept;

/// `name` must be supported.
Value call_filter(Context& context, Host& host, std::string_view name, const Value& value,
                  const Args& args);
bool call_test(Context& context, std::string_view name, const Value& value, const Args& args);

/// value.name and value[key], with jinja2's order of looking things up.
Value get_attribute(Context& context, const Value& value, std::string_view name);
Value get_item(Context& context, const Value& value, const Value& key);
/// value[start:stop:step]; bounds that are not given are none.
Value get_slice(Context& context, const Value& value, const Value& start, const Value& stop,
                const Value& step);

bool is_string_method(std::string_view name) noexcept;
Value call_method(Context& context, const Method& method, const Args& args);
Value call_function(Context& context, Function function, const Args& args, const std::tm& now);
Value call_cycler(Context& context, Cycler& cycler);

/// a + b
Value add(Context& context, const Value& a, const Value& b);

/// json.dumps as transformers' `tojson` calls it.
Value to_json(Context& context, const Value& value, const Args& args);
/// '...'.format(...) and '...' % ...
Value format_braces(Context& context, const Str& format, const Args& args);
Value format_percent(Context& context, const Str& format, const Value& values);
/// & < > " ' as HTML entities, unless the string is marked safe.
Value escape_html(Context& context, const Value& value);

/// A new string made from `source`, with its origin if that is one, else content.
Value remade(Context& context, const Str& source, std::string_view text);

/// Arguments by parameter: [i] is null where nothing was given.
template <std::size_t n>
struct Bound {
  const Value* given[n] = {};
  const Value* operator[](std::size_t i) const { return given[i]; }
};

/// Matches arguments to parameter names. Fails for too many, unknown or doubled ones, and where one
/// of the first `n_required` is missing.
void bind_into(Context& context, std::string_view what, const Args& args,
               std::span<const std::string_view> names, std::size_t n_required, const Value** out);

template <std::size_t n>
Bound<n> bind(Context& context, std::string_view what, const Args& args,
              const std::string_view (&names)[n], std::size_t n_required = 0) {
  Bound<n> out;
  bind_into(context, what, args, names, n_required, out.given);
  return out;
}

std::int64_t int_argument(Context& context, const Value* value, std::int64_t fallback);
bool bool_argument(const Value* value, bool fallback);
/// A string argument; fails for anything else.
const Str& text_argument(Context& context, const Value& value);

}  // namespace cyb::tmpl
