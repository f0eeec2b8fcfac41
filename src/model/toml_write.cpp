// write_toml: the canonical text of a ConfigTable, so that the same tree gives the same bytes
// (identities hash them as stored).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "model/config.hpp"
#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

/// Shortest digits that read back as the same value, with a point or an exponent; exponents without
/// a plus sign or leading zeros.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), written.ptr);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) {
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  std::string out = text.substr(0, e + 1);
  std::string_view exponent = std::string_view(text).substr(e + 1);
  if (exponent.starts_with('-')) out += '-';
  exponent.remove_prefix(1);  // to_chars always writes a sign
  exponent.remove_prefix(std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
  return out.append(exponent);
}

bool is_table_array(const ConfigValue& value) {
  const ConfigArray* array = value.array();
  return array != nullptr && !array->empty() &&
         std::ranges::all_of(*array, [](const ConfigValue& v) { return v.table() != nullptr; });
}

class Writer {
 public:
  std::string out;

  // NOLINTBEGIN(misc-no-recursion): depth is that of a tree built by parse_toml (bounded) or code.
  void body(const ConfigTable& table, const std::string& path) {
    for (const auto& [key, value] : table.items()) {
      if (value.table() != nullptr || is_table_array(value)) continue;
      append_toml_key(out, key);
      out += " = ";
      inline_value(value);
      out += '\n';
    }
    for (const auto& [key, value] : table.items()) {
      std::string inner = path;
      if (!inner.empty()) inner += '.';
      append_toml_key(inner, key);
      if (const ConfigTable* child = value.table()) {
        if (needs_header(*child)) header("[", inner, "]\n");
        body(*child, inner);
      } else if (is_table_array(value)) {
        for (const ConfigValue& element : *value.array()) {
          header("[[", inner, "]]\n");
          body(*element.table(), inner);
        }
      }
    }
  }

 private:
  /// A table that holds nothing but tables is implied by their headers.
  static bool needs_header(const ConfigTable& table) {
    return table.empty() || std::ranges::any_of(table.items(), [](const auto& item) {
             return item.second.table() == nullptr && !is_table_array(item.second);
           });
  }

  void header(std::string_view open, std::string_view path, std::string_view close) {
    if (!out.empty()) out += '\n';
    out.append(open).append(path).append(close);
  }

  void inline_value(const ConfigValue& value) {
    if (const bool* flag = value.boolean()) {
      out += *flag ? "true" : "false";
    } else if (const std::int64_t* integer = value.integer()) {
      out += fmt::format("{}", *integer);
    } else if (const double* real = value.real()) {
      out += float_text(*real);
    } else if (const std::string* text = value.string()) {
      append_toml_string(out, *text, false);
    } else if (const ConfigTable* table = value.table()) {
      inline_table(*table);
    } else {
      out += '[';
      for (std::size_t i = 0; i < value.array()->size(); ++i) {
        if (i != 0) out += ", ";
        inline_value((*value.array())[i]);
      }
      out += ']';
    }
  }

  void inline_table(const ConfigTable& table) {
    out += '{';
    for (std::size_t i = 0; i < table.items().size(); ++i) {
      if (i != 0) out += ", ";
      append_toml_key(out, table.items()[i].first);
      out += " = ";
      inline_value(table.items()[i].second);
    }
    out += '}';
  }
  // NOLINTEND(misc-no-recursion)
};

bool is_bare(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

bool is_control(char c) noexcept {
  const auto u = static_cast<unsigned char>(c);
  return u < 0x20 || u == 0x7F;
}

}  // namespace

std::string write_toml(const ConfigTable& table) {
  Writer writer;
  writer.body(table, "");
  return std::move(writer.out);
}

void append_toml_string(std::string& out, std::string_view text, bool ascii_only) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (is_control(c)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else if (static_cast<unsigned char>(c) < 0x80 || !ascii_only) {
      out += c;
    } else {
      const Utf8Char decoded = utf8_next(text, at);
      const auto code_point = static_cast<std::uint32_t>(decoded.code_point);
      out += code_point > 0xFFFF ? fmt::format("\\U{:08x}", code_point)
                                 : fmt::format("\\u{:04x}", code_point);
      at += decoded.size - 1;
    }
    ++at;
  }
  out += '"';
}

void append_toml_key(std::string& out, std::string_view key) {
  if (!key.empty() && std::ranges::all_of(key, is_bare)) {
    out += key;
  } else {
    append_toml_string(out, key, false);
  }
}

}  // namespace cyb
