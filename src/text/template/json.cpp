// tojson: json.dumps(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False), the
// order of keys kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/library.hpp"

namespace cyb::tmpl {
namespace {

class Writer {
 public:
  Writer(Context& context, const Args& args) : context_(context) {
    const auto given =
        bind(context, "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
    ascii_ = bool_argument(given[0], false);
    sort_ = bool_argument(given[3], false);
    if (given[1] != nullptr && given[1]->is(Kind::kString)) {
      indent_ = given[1]->text->view();
      lines_ = true;
    } else if (given[1] != nullptr && !given[1]->is(Kind::kNone)) {
      const std::int64_t width = int_argument(context, given[1], 0);
      if (width > 1000) context.fail("tojson: the indent is too large");
      indent_.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
      lines_ = true;
    }
    if (lines_) comma_ = ",";
    if (given[2] != nullptr && !given[2]->is(Kind::kNone)) {
      const auto parts = iterate(context, *given[2]);
      if (parts.size() != 2) context.fail("tojson: separators are two strings");
      comma_ = text_argument(context, parts[0]).view();
      colon_ = text_argument(context, parts[1]).view();
    }
  }

  std::string run(const Value& value) {
    write(value, 0);
    return std::move(out_);
  }

 private:
  void newline(unsigned depth) {
    if (!lines_) return;
    out_ += '\n';
    for (unsigned i = 0; i < depth; ++i) out_ += indent_;
  }

  void write(const Value& value, unsigned depth) {
    if (depth > kMaxTemplateDepth) context_.fail("tojson: nested too deeply");
    if (out_.size() > kMaxTemplateOutput) context_.fail("tojson: the text is too long");
    context_.step();
    switch (value.kind) {
      case Kind::kNone:
        out_ += "null";
        return;
      case Kind::kBool:
        out_ += value.boolean ? "true" : "false";
        return;
      case Kind::kInt:
        out_ += fmt::format("{}", value.integer);
        return;
      case Kind::kFloat:
        out_ += number(value.number);
        return;
      case Kind::kString:
        string(value.text->view());
        return;
      case Kind::kList:
      case Kind::kTuple:
        list(*value.list, depth);
        return;
      case Kind::kDict:
        dict(*value.dict, depth);
        return;
      default:
        context_.fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
    }
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  void list(const List& list, unsigned depth) {
    out_ += '[';
    for (std::uint32_t i = 0; i < list.size; ++i) {
      if (i > 0) out_ += comma_;
      newline(depth + 1);
      write(list.items[i], depth + 1);
    }
    if (list.size > 0) newline(depth);
    out_ += ']';
  }

  std::string key_text(const Value& key) {
    switch (key.kind) {
      case Kind::kString:
        return std::string(key.text->view());
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return key.boolean ? "true" : "false";
      case Kind::kInt:
        return fmt::format("{}", key.integer);
      case Kind::kFloat:
        return number(key.number);
      default:
        context_.fail(
            fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
  }

  void dict(const Dict& dict, unsigned depth) {
    std::vector<Entry> entries(dict.entries, dict.entries + dict.size);
    if (sort_) {
      std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        return order(context_, a.key, b.key) < 0;
      });
    }
    out_ += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += comma_;
      newline(depth + 1);
      string(key_text(entries[i].key));
      out_ += colon_;
      write(entries[i].value, depth + 1);
    }
    if (!entries.empty()) newline(depth);
    out_ += '}';
  }

  void string(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const unsigned char lead = static_cast<unsigned char>(text[at]);
      const std::size_t size = text::valid_size(lead);
      if (size > 1 && ascii_) {
        escape(text::decode_valid(text, at, size));
      } else if (size > 1 || (lead >= 0x20 && lead != '"' && lead != '\\')) {
        out_.append(text.substr(at, size));
      } else {
        control(lead);
      }
      at += size;
    }
    out_ += '"';
  }

  void control(unsigned char c) {
    static constexpr std::string_view kFrom = "\"\\\n\r\t\b\f", kTo = "\"\\nrtbf";
    const std::size_t found = kFrom.find(static_cast<char>(c));
    if (found == std::string_view::npos) {
      escape(c);
    } else {
      out_ += '\\';
      out_ += kTo[found];
    }
  }

  void escape(char32_t c) {
    if (c >= 0x10000) {
      const std::uint32_t v = static_cast<std::uint32_t>(c) - 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
    } else {
      out_ += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    }
  }

  Context& context_;
  bool ascii_ = false, sort_ = false, lines_ = false;
  std::string indent_, comma_ = ", ", colon_ = ": ", out_;
};

}  // namespace

Value to_json(Context& context, const Value& value, const Args& args) {
  return text_of(context, Writer(context, args).run(value));
}

}  // namespace cyb::tmpl
