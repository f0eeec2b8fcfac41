// pprint: Python's pprint.pformat with a width of 80 and dicts sorted by key.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/filters.hpp"
#include "text/template/text_methods.hpp"
#include "text/template/white_space.hpp"

namespace cyb::tmpl {
namespace {

constexpr std::int64_t kWidth = 80;

/// Entries of a dict as pprint orders them: by key, keys of kinds that have no order by the names
/// of their types.
std::vector<Entry> sorted_entries(Context& context, const Dict& dict) {
  std::vector<Entry> out(dict.entries, dict.entries + dict.size);
  const auto comparable = [](const Value& a, const Value& b) {
    return (a.is_number() && b.is_number()) || (a.kind == b.kind && !a.is(Kind::kNone));
  };
  std::ranges::stable_sort(out, [&](const Entry& a, const Entry& b) {
    context.step();
    if (comparable(a.key, b.key)) return order(context, a.key, b.key) < 0;
    return type_name(a.key) < type_name(b.key);
  });
  return out;
}

class Printer {
 public:
  explicit Printer(Context& context) : context_(context) {}

  void print(const Value& value, std::int64_t indent, std::int64_t allowance, unsigned level) {
    check(level);
    std::string flat;
    repr(flat, value, level);
    if (static_cast<std::int64_t>(char_count(flat)) <= kWidth - indent - allowance) {
      out_ += flat;
      return;
    }
    if (value.is(Kind::kDict)) {
      out_ += '{';
      print_entries(*value.dict, indent + 1, allowance + 1, level + 1);
      out_ += '}';
    } else if (value.is(Kind::kList) || value.is(Kind::kTuple)) {
      const bool list = value.is(Kind::kList);
      const std::string_view end = list ? "]" : value.list->size == 1 ? ",)" : ")";
      out_ += list ? '[' : '(';
      print_items(value.list->span(), indent + 1, allowance + static_cast<std::int64_t>(end.size()),
                  level + 1);
      out_ += end;
    } else if (value.is(Kind::kString)) {
      print_text(value, indent, allowance, level + 1);
    } else {
      out_ += flat;
    }
  }

  const std::string& out() const noexcept { return out_; }

 private:
  void check(unsigned level) {
    context_.step();
    if (level > kMaxTemplateDepth) context_.fail("values are nested too deeply");
    if (out_.size() > kMaxTemplateOutput) context_.fail("a string is too long");
  }

  /// repr() on one line, dicts sorted.
  void repr(std::string& out, const Value& value, unsigned level) {
    check(level);
    if (value.is(Kind::kDict)) {
      out += '{';
      bool first = true;
      for (const Entry& entry : sorted_entries(context_, *value.dict)) {
        if (!first) out += ", ";
        first = false;
        repr(out, entry.key, level + 1);
        out += ": ";
        repr(out, entry.value, level + 1);
      }
      out += '}';
    } else if (value.is(Kind::kList) || value.is(Kind::kTuple)) {
      const bool list = value.is(Kind::kList);
      out += list ? '[' : '(';
      for (std::uint32_t i = 0; i < value.list->size; ++i) {
        if (i > 0) out += ", ";
        repr(out, value.list->items[i], level + 1);
      }
      out += list ? "]" : value.list->size == 1 ? ",)" : ")";
    } else {
      append_repr(context_, out, value, level);
    }
    context_.step(out.size() / 256);
  }

  void new_line(std::int64_t indent) {
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent), ' ');
  }

  void print_entries(const Dict& dict, std::int64_t indent, std::int64_t allowance,
                     unsigned level) {
    const std::vector<Entry> entries = sorted_entries(context_, dict);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::string key;
      repr(key, entries[i].key, level);
      out_ += key + ": ";
      const bool last = i + 1 == entries.size();
      print(entries[i].value, indent + static_cast<std::int64_t>(char_count(key)) + 2,
            last ? allowance : 1, level);
      if (last) break;
      out_ += ',';
      new_line(indent);
    }
  }

  void print_items(std::span<const Value> items, std::int64_t indent, std::int64_t allowance,
                   unsigned level) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        out_ += ',';
        new_line(indent);
      }
      print(items[i], indent, i + 1 == items.size() ? allowance : 1, level);
    }
  }

  std::string text_repr(std::string_view text) {
    std::string out;
    append_repr(context_, out, text_of(context_, text));
    context_.step(text.size() / 16);
    return out;
  }

  std::int64_t repr_size(std::string_view text) {
    return static_cast<std::int64_t>(char_count(text_repr(text)));
  }

  /// Lines that are too long are cut behind white space.
  void add_words(std::string_view line, std::int64_t width, std::int64_t last_width,
                 std::vector<std::string>& chunks) {
    std::string current;
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at;
      while (end < line.size() && lstrip_begin(line, end) == end)
        end += text::valid_size(static_cast<unsigned char>(line[end]));
      end = lstrip_begin(line, end);
      const std::string_view part = line.substr(at, end - at);
      at = end;
      if (repr_size(current + std::string(part)) > (at == line.size() ? last_width : width)) {
        if (!current.empty()) chunks.push_back(text_repr(current));
        current = part;
      } else {
        current += part;
      }
    }
    if (!current.empty()) chunks.push_back(text_repr(current));
  }

  void print_text(const Value& value, std::int64_t indent, std::int64_t allowance, unsigned level) {
    const std::string_view text = value.text->view();
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    const std::int64_t width = kWidth - indent;
    const auto lines = line_ranges(text);
    std::vector<std::string> chunks;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool last = i + 1 == lines.size();
      const std::size_t end = last ? text.size() : lines[i + 1].first;
      const std::string_view line = text.substr(lines[i].first, end - lines[i].first);
      std::string whole = text_repr(line);
      const std::int64_t last_width = last ? width - allowance : width;
      if (static_cast<std::int64_t>(char_count(whole)) <= last_width) {
        chunks.push_back(std::move(whole));
      } else {
        add_words(line, width, last_width, chunks);
      }
    }
    if (level == 1 && chunks.size() > 1) out_ += '(';
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) new_line(indent);
      out_ += chunks[i];
    }
    if (level == 1 && chunks.size() > 1) out_ += ')';
  }

  Context& context_;
  std::string out_;
};

}  // namespace

Value filter_pprint(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  Printer printer(call.context);
  printer.print(call.value, 0, 0, 0);
  return text_of(call.context, printer.out());
}

}  // namespace cyb::tmpl
