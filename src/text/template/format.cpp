// str.format with plain fields, and printf-like % formatting; the parts that templates use.
// Everything else is refused.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/limits.hpp"
#include "text/template/library.hpp"

namespace cyb::tmpl {
namespace {

/// One "{...}" field: the value it names.
Value field_value(Context& context, std::string_view name, const Args& args, std::size_t& next) {
  if (name.find_first_of(".[") != std::string_view::npos)
    context.fail("format(): attributes and items in a field are not supported");
  if (name.empty()) {
    if (next >= args.positional.size())
      context.fail("Replacement index out of range for positional args tuple");
    return args.positional[next++];
  }
  std::size_t index = 0;
  const auto result = std::from_chars(name.data(), name.data() + name.size(), index);
  if (result.ec == std::errc() && result.ptr == name.data() + name.size()) {
    if (index >= args.positional.size())
      context.fail("Replacement index out of range for positional args tuple");
    return args.positional[index];
  }
  for (const auto& [key, value] : args.named) {
    if (key == name) return value;
  }
  context.fail(fmt::format("format(): there is no argument '{}'", name));
}

struct Percent {
  bool left = false, zero = false, plus = false, space = false;
  int width = 0, precision = -1;
  char type = 's';
};

int number_in(std::string_view text, std::size_t& at, Context& context) {
  int out = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    out = out * 10 + (text[at++] - '0');
    if (out > 10000) context.fail("a format's width is too large");
  }
  return out;
}

Percent read_percent(Context& context, std::string_view text, std::size_t& at) {
  Percent out;
  for (; at < text.size(); ++at) {
    if (text[at] == '-')
      out.left = true;
    else if (text[at] == '0')
      out.zero = true;
    else if (text[at] == '+')
      out.plus = true;
    else if (text[at] == ' ')
      out.space = true;
    else
      break;
  }
  out.width = number_in(text, at, context);
  if (at < text.size() && text[at] == '.') {
    ++at;
    out.precision = number_in(text, at, context);
  }
  if (at >= text.size()) context.fail("incomplete format");
  out.type = text[at++];
  return out;
}

std::string signed_digits(const Percent& spec, bool negative, std::string digits) {
  const std::string sign = negative ? "-" : spec.plus ? "+" : spec.space ? " " : "";
  const std::size_t width = static_cast<std::size_t>(spec.width);
  if (spec.zero && !spec.left && sign.size() + digits.size() < width) {
    digits.insert(0, width - sign.size() - digits.size(), '0');
  }
  return sign + digits;
}

std::string integer_text(Context& context, const Percent& spec, const Value& value) {
  if (!value.is_number())
    context.fail(
        fmt::format("%{} format: a real number is required, not {}", spec.type, type_name(value)));
  if (value.is(Kind::kFloat) && !(std::abs(value.number) < 9.0e18))
    context.fail("a number is out of range");
  const std::int64_t i =
      value.is(Kind::kFloat) ? static_cast<std::int64_t>(value.number) : value.as_int();
  const std::uint64_t magnitude =
      i < 0 ? ~static_cast<std::uint64_t>(i) + 1 : static_cast<std::uint64_t>(i);
  if (spec.precision >= 0) context.fail("a precision of an integer format is not supported");
  std::string digits = spec.type == 'x'   ? fmt::format("{:x}", magnitude)
                       : spec.type == 'X' ? fmt::format("{:X}", magnitude)
                       : spec.type == 'o' ? fmt::format("{:o}", magnitude)
                                          : fmt::format("{}", magnitude);
  return signed_digits(spec, i < 0, std::move(digits));
}

std::string real_text(Context& context, const Percent& spec, const Value& value) {
  if (!value.is_number())
    context.fail(fmt::format("must be real number, not {}", type_name(value)));
  const double d = value.as_double();
  if (!std::isfinite(d)) context.fail("formats of infinite numbers are not supported");
  const char pattern[] = {'%', '.', '*', spec.type, '\0'};
  char buffer[512];
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  if (precision > 100) context.fail("a format's precision is too large");
  const int size = std::snprintf(buffer, sizeof buffer, pattern, precision, std::abs(d));
  return signed_digits(spec, std::signbit(d), std::string(buffer, static_cast<std::size_t>(size)));
}

void append_percent(Context& context, Builder& out, const Percent& spec, const Value& value) {
  Value text;
  switch (spec.type) {
    case 's':
      text = to_text(context, value);
      break;
    case 'r': {
      std::string repr;
      append_repr(context, repr, value);
      text = text_of(context, repr);
      break;
    }
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      text = text_of(context, integer_text(context, spec, value));
      break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
      text = text_of(context, real_text(context, spec, value));
      break;
    default:
      context.fail(fmt::format("the format '%{}' is not supported", spec.type));
  }
  const bool cuts = (spec.type == 's' || spec.type == 'r') && spec.precision >= 0;
  if (cuts) text = get_slice(context, text, none(), of(std::int64_t{spec.precision}), none());
  const std::size_t size = char_count(text.text->view());
  const std::size_t width = static_cast<std::size_t>(spec.width);
  const std::string padding(size < width ? width - size : 0, ' ');
  if (!spec.left) out.add(padding, false);
  out.add(*text.text);
  if (spec.left) out.add(padding, false);
}

}  // namespace

Value format_braces(Context& context, const Str& format, const Args& args) {
  Builder out;
  const std::string_view text = format.view();
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t brace = std::min(text.find_first_of("{}", at), text.size());
    out.add_slice(format, at, brace);
    if (brace == text.size()) break;
    if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
      out.add_slice(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const std::size_t end = text.find('}', brace);
    if (text[brace] == '}' || end == std::string_view::npos)
      context.fail("Single brace encountered in format string");
    const std::string_view field = text.substr(brace + 1, end - brace - 1);
    if (field.find_first_of(":!{") != std::string_view::npos)
      context.fail("format(): conversions and format specifications are not supported");
    const Value value = field_value(context, field, args, next);
    if (value.is(Kind::kUndefined)) context.fail("format(): undefined arguments are not supported");
    append_text(context, out, value);
    if (out.size() > kMaxTemplateOutput) context.fail("a string is too long");
    at = end + 1;
  }
  return out.finish(context);
}

Value format_percent(Context& context, const Str& format, const Value& values) {
  Builder out;
  const std::string_view text = format.view();
  const std::span<const Value> items =
      values.is(Kind::kTuple) ? values.list->span() : std::span<const Value>(&values, 1);
  std::size_t next = 0;
  const auto take = [&]() -> const Value& {
    if (next >= items.size()) context.fail("not enough arguments for format string");
    return items[next++];
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t percent = std::min(text.find('%', at), text.size());
    out.add_slice(format, at, percent);
    if (percent == text.size()) break;
    at = percent + 1;
    if (at < text.size() && text[at] == '%') {
      out.add_slice(format, percent, percent + 1);
      ++at;
      continue;
    }
    if (at < text.size() && text[at] == '(') {
      const std::size_t end = text.find(')', at);
      if (end == std::string_view::npos || !values.is(Kind::kDict))
        context.fail("format requires a mapping");
      const Value* value = values.dict->find(text.substr(at + 1, end - at - 1));
      if (value == nullptr) context.fail("format: a key is missing");
      at = end + 1;
      append_percent(context, out, read_percent(context, text, at), *value);
      next = items.size();
      continue;
    }
    const Percent spec = read_percent(context, text, at);
    append_percent(context, out, spec, take());
    if (out.size() > kMaxTemplateOutput) context.fail("a string is too long");
  }
  // Python lets whatever has items by key go unused.
  const bool keyed = values.is(Kind::kDict) || values.is(Kind::kList) || values.is(Kind::kRange) ||
                     values.is(Kind::kUndefined);
  if (next < items.size() && !keyed)
    context.fail("not all arguments converted during string formatting");
  return out.finish(context);
}

Value escape_html(Context& context, const Value& value) {
  const Value text = to_text(context, value);
  if (text.text->markup) return text;
  Builder out;
  const Str& str = *text.text;
  for (std::uint32_t i = 0; i < str.size; ++i) {
    switch (str.data[i]) {
      case '&':
        out.add("&amp;", false);
        break;
      case '<':
        out.add("&lt;", false);
        break;
      case '>':
        out.add("&gt;", false);
        break;
      case '"':
        out.add("&#34;", false);
        break;
      case '\'':
        out.add("&#39;", false);
        break;
      default:
        out.add_slice(str, i, i + 1);
    }
  }
  Str made = *out.finish(context).text;
  made.markup = true;
  return of(context.make(made));
}

}  // namespace cyb::tmpl
