// Filters for markup, addresses and sizes.
#include <fmt/format.h>

#include <cmath>

#include "base/limits.hpp"
#include "text/template/filters.hpp"
#include "text/template/html_text.hpp"
#include "text/template/lexer.hpp"
#include "text/template/text_methods.hpp"
#include "text/template/white_space.hpp"

namespace cyb::tmpl {
namespace {

/// The text without its tags and comments; what is not closed stays.
std::string without_tags(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t start = text.find('<', at);
    if (start == std::string_view::npos) break;
    const bool comment = text.substr(start).starts_with("<!--");
    const std::size_t end = comment ? text.find("-->", start + 4) : text.find('>', start);
    if (end == std::string_view::npos) break;
    out += text.substr(at, start - at);
    at = end + (comment ? 3 : 1);
  }
  return out += text.substr(at);
}

/// Runs of white space as one space, none at the ends.
std::string with_single_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = lstrip_begin(text); at < text.size();) {
    if (!out.empty()) out += ' ';
    std::size_t end = at;
    while (end < text.size() && lstrip_begin(text, end) == end) ++end;
    out += text.substr(at, end - at);
    at = lstrip_begin(text, end);
  }
  return out;
}

void append_quoted(std::string& out, std::string_view text, bool in_query) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool safe = (byte >= '0' && byte <= '9') ||
                      ((byte | 32U) >= 'a' && (byte | 32U) <= 'z') || c == '_' || c == '.' ||
                      c == '-' || c == '~' || (c == '/' && !in_query);
    if (safe) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
}

bool is_iterable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kIterator:
    case Kind::kRange:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

/// float(value)
double float_of(Context& context, const Value& value) {
  if (value.is_number()) return value.as_double();
  if (value.is(Kind::kUndefined)) context.fail(std::string(value.text->view()));
  if (!value.is(Kind::kString)) {
    context.fail(fmt::format("float() argument must be a string or a real number, not '{}'",
                             type_name(value)));
  }
  const auto parsed = parse_float(value.text->view());
  if (!parsed) context.fail("could not convert string to float");
  return *parsed;
}

}  // namespace

Value filter_forceescape(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  Str text = *to_text(call.context, call.value).text;
  text.markup = false;
  return escape_html(call.context, of(call.context.make(text)));
}

Value filter_striptags(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  const Str& self = *to_text(call.context, call.value).text;
  call.context.step(self.size / 64);
  return remade(call.context, self, unescape_html(with_single_spaces(without_tags(self.view()))));
}

Value filter_urlencode(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  Context& context = call.context;
  std::string out;
  if (!is_iterable(call.value)) {
    const Str& self = *to_text(context, call.value).text;
    append_quoted(out, self.view(), false);
    context.step(self.size / 64);
    return remade(context, self, out);
  }
  const auto add = [&](const Value& key, const Value& value) {
    context.step();
    if (!out.empty()) out += '&';
    append_quoted(out, to_text(context, key).text->view(), true);
    out += '=';
    append_quoted(out, to_text(context, value).text->view(), true);
    if (out.size() > kMaxTemplateOutput) context.fail("a string is too long");
  };
  if (call.value.is(Kind::kDict)) {
    for (const Entry& entry : call.value.dict->span()) add(entry.key, entry.value);
    return text_of(context, out);
  }
  bool first = true;
  for (const Value& pair : iterate(context, call.value)) {
    const auto items = iterate(context, pair);
    if (items.size() != 2)
      context.fail(fmt::format("expected 2 values to unpack, got {}", items.size()));
    if (!first && out.empty()) out += '&';
    first = false;
    add(items[0], items[1]);
  }
  return text_of(context, out);
}

Value filter_xmlattr(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"autospace"});
  Context& context = call.context;
  if (!call.value.is(Kind::kDict))
    context.fail(fmt::format("'{}' object has no attribute 'items'", type_name(call.value)));
  Builder out;
  for (const Entry& entry : call.value.dict->span()) {
    context.step();
    if (entry.value.is(Kind::kNone) || entry.value.is(Kind::kUndefined)) continue;
    const std::string_view key = text_argument(context, entry.key).view();
    if (key.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      std::string shown;
      append_repr(context, shown, entry.key);
      context.fail("Invalid character in attribute name: " + shown);
    }
    if (out.size() > 0 || bool_argument(given[0], true)) out.add(" ", false);
    out.add(*escape_html(context, entry.key).text);
    out.add("=\"", false);
    out.add(*escape_html(context, entry.value).text);
    out.add("\"", false);
  }
  return out.finish(context);
}

Value filter_filesizeformat(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"binary"});
  Context& context = call.context;
  const bool binary = bool_argument(given[0], false);
  const double bytes = float_of(context, call.value), base = binary ? 1024 : 1000;
  if (bytes == 1) return text_of(context, "1 Byte");
  if (bytes < base) {
    if (std::isinf(bytes)) context.fail("cannot convert float infinity to integer");
    return text_of(context, fmt::format("{:.0f} Bytes", std::trunc(bytes) + 0.0));
  }
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  const long double wide_base = binary ? 1024 : 1000;
  long double unit = wide_base;  // powers up to 1000^9 are exact
  char prefix = 'k';
  for (const char next : kPrefixes) {
    unit *= wide_base;
    prefix = next;
    if (static_cast<long double>(bytes) < unit) break;
  }
  const double value = base * bytes / static_cast<double>(unit);
  if (binary && prefix == 'k') prefix = 'K';
  return text_of(context, fmt::format("{:.1f} {}{}", value, prefix, binary ? "iB" : "B"));
}

}  // namespace cyb::tmpl
