// str() and repr() of values, as Python writes them.
#include <fmt/format.h>
#include <utf8proc.h>

#include <charconv>
#include <cmath>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/interpreter.hpp"
#include "text/template/value.hpp"

namespace cyb::tmpl {
namespace {

/// str.isprintable() of one character.
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_escaped(std::string& out, char32_t c) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c < 0x100) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
  }
}

void append_string_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[at]));
    const char32_t c = text::decode_valid(text, at, size);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (is_printable(c)) {
      out.append(text.substr(at, size));
    } else {
      append_escaped(out, c);
    }
    at += size;
  }
  out += quote;
}

void append_items(Context& context, std::string& out, const Value& value, unsigned depth) {
  bool first = true;
  for (const Value& item : value.list->span()) {
    if (!first) out += ", ";
    first = false;
    append_repr(context, out, item, depth + 1);
  }
}

void append_dict(Context& context, std::string& out, const Dict& dict, unsigned depth) {
  out += '{';
  for (std::uint32_t i = 0; i < dict.size; ++i) {
    if (i > 0) out += ", ";
    append_repr(context, out, dict.entries[i].key, depth + 1);
    out += ": ";
    append_repr(context, out, dict.entries[i].value, depth + 1);
  }
  out += '}';
}

void append_range(std::string& out, const Range& range) {
  out += fmt::format("range({}, {}", range.start, range.stop);
  if (range.step != 1) out += fmt::format(", {}", range.step);
  out += ')';
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  const char* digits = shortest.data() + e + 1;
  std::from_chars(*digits == '+' ? digits + 1 : digits, end, exponent);
  // repr() writes exponents below -4 and from 16 on.
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02d}", shortest.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  const auto fixed_end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string out(buffer, fixed_end);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

void append_repr(Context& context, std::string& out, const Value& value, unsigned depth) {
  if (depth > kMaxTemplateDepth) context.fail("values are nested too deeply");
  if (out.size() > 16 * kMaxTemplateOutput) context.fail("a string is too long");
  context.step();
  switch (value.kind) {
    case Kind::kUndefined:
      out += "Undefined";
      return;
    case Kind::kNone:
      out += "None";
      return;
    case Kind::kBool:
      out += value.boolean ? "True" : "False";
      return;
    case Kind::kInt:
      out += fmt::format("{}", value.integer);
      return;
    case Kind::kFloat:
      out += float_text(value.number);
      return;
    case Kind::kString:
      if (value.text->markup) context.fail("the text of a list with safe strings is not supported");
      append_string_repr(out, value.text->view());
      return;
    case Kind::kList:
      out += '[';
      append_items(context, out, value, depth);
      out += ']';
      return;
    case Kind::kTuple:
      out += '(';
      append_items(context, out, value, depth);
      out += value.list->size == 1 ? ",)" : ")";
      return;
    case Kind::kView:
      out += value.list->name;
      out += "([";
      append_items(context, out, value, depth);
      out += "])";
      return;
    case Kind::kDict:
      append_dict(context, out, *value.dict, depth);
      return;
    case Kind::kRange:
      append_range(out, *value.range);
      return;
    case Kind::kNamespace:
      out += "<Namespace ";
      append_dict(context, out, *value.dict, depth);
      out += '>';
      return;
    case Kind::kMacro:
      out += "<Macro ";
      if (value.macro->node->kind == NodeKind::kMacro) {
        append_string_repr(out, value.macro->node->text);
      } else {
        out += "anonymous";
      }
      out += '>';
      return;
    default:
      context.fail(fmt::format("the text of a {} is not supported", type_name(value)));
  }
}

void append_text(Context& context, Builder& out, const Value& value) {
  if (value.is(Kind::kString)) return out.add(*value.text);
  if (value.is(Kind::kUndefined)) return;
  std::string text;
  append_repr(context, text, value);
  out.add(text, false);
}

Value to_text(Context& context, const Value& value) {
  if (value.is(Kind::kString)) return value;
  Builder out;
  append_text(context, out, value);
  return out.finish(context);
}

}  // namespace cyb::tmpl
