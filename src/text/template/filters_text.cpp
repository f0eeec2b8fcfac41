// Filters on texts and numbers.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/filters.hpp"
#include "text/template/lexer.hpp"
#include "text/template/text_case.hpp"
#include "text/template/text_methods.hpp"

namespace cyb::tmpl {
namespace {

const Str& soft_text(const FilterCall& call) {
  return *to_text(call.context, call.value).text;
}

// The filter's own idea of words: what follows white space, a hyphen or an opening bracket.
std::string title_filter(std::string_view text) {
  std::string out;
  std::size_t begin = 0;
  const auto is_break = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_python_space(c);
  };
  const auto flush = [&](std::size_t end) {
    if (begin == end) return;
    const std::size_t first = text::valid_size(static_cast<unsigned char>(text[begin]));
    out += upper(text.substr(begin, first));
    out += lower(text.substr(begin + first, end - begin - first));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[at]));
    if (is_break(text::decode_valid(text, at, size))) {
      flush(at);
      out.append(text.substr(at, size));
      begin = at + size;
    }
    at += size;
  }
  flush(text.size());
  return out;
}

/// int(text, base): sign, the base's prefix, digits with single underscores, white space around.
std::optional<std::int64_t> parse_int(std::string_view text, int base) {
  text = text.substr(0, rstrip_end(text));
  text = text.substr(lstrip_begin(text));
  std::string digits(text.starts_with('-') ? "-" : "");
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const char letter = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 32) : '\0';
  const bool prefixed =
      (base == 16 && letter == 'x') || (base == 8 && letter == 'o') || (base == 2 && letter == 'b');
  if (prefixed) text.remove_prefix(2);
  if (text.empty() || text[0] == '-') return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool inner = text[i] == '_' && (i > 0 || prefixed) && i + 1 < text.size() &&
                       (i == 0 || text[i - 1] != '_');
    if (!inner) digits += text[i];
  }
  std::int64_t out = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) return std::nullopt;
  return out;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789+-_ \t\n") == std::string_view::npos;
}

}  // namespace

std::optional<double> parse_float(std::string_view text) {
  text = text.substr(0, rstrip_end(text));
  text = text.substr(lstrip_begin(text));
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    digits += text[i];
  }
  text = digits;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('+') || text.empty()) return std::nullopt;
  double out = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  if (result.ptr != text.data() + text.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) return std::nullopt;
  return result.ec == std::errc() ? std::optional(out) : std::nullopt;
}

Value filter_case(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"s"});
  const Str& self = soft_text(call);
  const std::string_view text = self.view();
  call.context.step(self.size / 256);
  return remade(call.context, self,
                call.name == "upper"   ? upper(text)
                : call.name == "lower" ? lower(text)
                : call.name == "title" ? title_filter(text)
                                       : capitalize(text));
}

Value filter_trim(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"chars"});
  return strip(call.context, soft_text(call), given[0], true, true);
}

Value filter_replace(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"old", "new", "count"}, 2);
  const Value from = to_text(call.context, *given[0]), to = to_text(call.context, *given[1]);
  const bool all = given[2] == nullptr || given[2]->is(Kind::kNone);
  return replace(call.context, soft_text(call), *from.text, *to.text,
                 all ? -1 : int_argument(call.context, given[2], -1));
}

Value filter_indent(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"width", "first", "blank"});
  std::string indention(4, ' ');
  if (given[0] != nullptr && given[0]->is(Kind::kString)) {
    indention = given[0]->text->view();
  } else if (given[0] != nullptr) {
    const std::int64_t width = int_argument(call.context, given[0], 4);
    if (width > 1000) call.context.fail("indent: the width is too large");
    indention.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  if (!call.value.is(Kind::kString))
    call.context.fail(fmt::format("indent of {} is not supported", type_name(call.value)));
  // A line end is added first, so that a last empty line counts.
  const Str& self = *call.value.text;
  Builder with_end;
  with_end.add(self);
  with_end.add("\n", self.control);
  const Str& text = *with_end.finish(call.context).text;
  const bool blank = bool_argument(given[2], false);
  Builder out;
  bool first = true;
  for (const auto& [begin, end] : line_ranges(text.view())) {
    if (!first) out.add("\n", self.control);
    const bool indents = first ? bool_argument(given[1], false) : blank || end > begin;
    if (indents) out.add(indention, false);
    out.add_slice(text, begin, end);
    if (out.size() > kMaxTemplateOutput) call.context.fail("a string is too long");
    first = false;
  }
  return out.finish(call.context);
}

Value filter_center(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"width"});
  return center(call.context, soft_text(call), int_argument(call.context, given[0], 80), " ");
}

Value filter_truncate(const FilterCall& call) {
  const auto given =
      bind(call.context, call.name, call.args, {"length", "killwords", "end", "leeway"});
  Context& context = call.context;
  const std::int64_t length_limit = int_argument(context, given[0], 255);
  const Value end = given[2] != nullptr ? *given[2] : text_of(context, "...", true);
  const std::int64_t end_size =
      static_cast<std::int64_t>(char_count(text_argument(context, end).view()));
  const bool no_leeway = given[3] == nullptr || given[3]->is(Kind::kNone);
  const std::int64_t leeway = no_leeway ? 5 : int_argument(context, given[3], 5);
  if (length_limit < end_size || leeway < 0)
    context.fail("truncate: the length or the leeway is too small");
  if (call.value.is(Kind::kUndefined)) return call.value;  // its length is 0
  if (!call.value.is(Kind::kString)) {
    context.fail(fmt::format("truncate of {} is not supported", type_name(call.value)));
  }
  const Value text = call.value;
  if (static_cast<std::int64_t>(char_count(text.text->view())) <= length_limit + leeway)
    return text;
  Value head = get_slice(context, text, none(), of(length_limit - end_size), none());
  const std::size_t space = head.text->view().rfind(' ');
  if (!bool_argument(given[1], false) && space != std::string_view::npos)
    head = slice_text(context, *head.text, 0, space);
  Builder out;
  out.add(*head.text);
  out.add(*end.text);
  return out.finish(context);
}

Value filter_wordcount(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"s"});
  const std::string_view text = soft_text(call).view();
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[at]));
    const char32_t c = text::decode_valid(text, at, size);
    const auto kind = text::class_of(c);
    const bool word =
        c == '_' || kind == text::CharClass::kLetter || kind == text::CharClass::kNumber;
    words += word && !inside ? 1 : 0;
    inside = word;
    at += size;
  }
  return of(words);
}

Value filter_string(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"object"});
  return to_text(call.context, call.value);
}

Value filter_format(const FilterCall& call) {
  if (!call.args.named.empty()) {
    if (!call.args.positional.empty())
      call.context.fail("can't handle positional and keyword arguments at the same time");
    Dict* dict = call.context.make(Dict{});
    for (const auto& [key, value] : call.args.named)
      dict->set(call.context, text_of(call.context, key), value);
    return format_percent(call.context, soft_text(call), of(dict));
  }
  return format_percent(call.context, soft_text(call),
                        list_of(call.context, call.args.positional, Kind::kTuple));
}

Value filter_escape(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  return escape_html(call.context, call.value);
}

Value filter_safe(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  Str text = soft_text(call);
  text.markup = true;
  return of(call.context.make(text));
}

Value filter_tojson(const FilterCall& call) {
  return to_json(call.context, call.value, call.args);
}

Value filter_int(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"default", "base"});
  Context& context = call.context;
  const Value fallback = given[0] != nullptr ? *given[0] : of(std::int64_t{0});
  const std::int64_t base = int_argument(context, given[1], 10);
  if (base < 2 || base > 36) context.fail("int: this base is not supported");
  const Value& value = call.value;
  if (value.is_integral()) return of(value.as_int());
  std::optional<double> number;
  if (value.is(Kind::kString)) {
    if (const auto parsed = parse_int(value.text->view(), static_cast<int>(base)))
      return of(*parsed);
    if (all_digits(value.text->view()) && parse_float(value.text->view()))
      context.fail("an integer is out of range");
    number = parse_float(value.text->view());
  } else if (value.is(Kind::kFloat)) {
    number = value.number;
  } else if (value.is(Kind::kUndefined)) {
    context.fail(std::string(value.text->view()));
  }
  if (!number || !std::isfinite(*number)) return fallback;
  if (std::abs(*number) >= 9.2e18) context.fail("an integer is out of range");
  return of(static_cast<std::int64_t>(*number));
}

Value filter_float(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"default"});
  if (call.value.is_number()) return of(call.value.as_double());
  if (call.value.is(Kind::kUndefined)) call.context.fail(std::string(call.value.text->view()));
  if (call.value.is(Kind::kString)) {
    if (const auto parsed = parse_float(call.value.text->view())) return of(*parsed);
  }
  return given[0] != nullptr ? *given[0] : of(0.0);
}

Value filter_abs(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"x"});
  if (call.value.is(Kind::kFloat)) return of(std::abs(call.value.number));
  if (!call.value.is_integral())
    call.context.fail(fmt::format("bad operand type for abs(): '{}'", type_name(call.value)));
  if (call.value.as_int() == INT64_MIN) call.context.fail("an integer is out of range");
  return of(std::abs(call.value.as_int()));
}

Value filter_round(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"precision", "method"});
  Context& context = call.context;
  const std::int64_t precision = int_argument(context, given[0], 0);
  const std::string_view method =
      given[1] == nullptr ? std::string_view("common") : text_argument(context, *given[1]).view();
  if (!call.value.is_number())
    context.fail(fmt::format("type {} doesn't define __round__ method", type_name(call.value)));
  if (precision < 0 || precision > 300) context.fail("round: this precision is not supported");
  const double value = call.value.as_double();
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    return of((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) / scale);
  }
  if (method != "common") context.fail("method must be common, ceil or floor");
  if (call.value.is_integral()) return of(call.value.as_int());
  // Exact decimal expansion, rounded half to even: what Python's round() does.
  char buffer[768];
  const int size = std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), value);
  double out = value;
  if (size > 0 && size < static_cast<int>(sizeof buffer))
    std::from_chars(buffer, buffer + size, out);
  return of(out);
}

}  // namespace cyb::tmpl
