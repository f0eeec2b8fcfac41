// String methods, by name. Texts keep the origins of their bytes wherever bytes are only moved.
#include "text/template/text_methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/lexer.hpp"
#include "text/template/text_case.hpp"

namespace cyb::tmpl {
namespace {

using Call = Value (*)(Context&, const Str&, std::string_view, const Args&);

void no_arguments(Context& context, std::string_view name, const Args& args) {
  if (!args.positional.empty() || !args.named.empty())
    context.fail(fmt::format("str.{}() takes no arguments", name));
}

Value m_strip(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"chars"});
  return strip(context, self, given[0], name != "rstrip", name != "lstrip");
}

Value m_case(Context& context, const Str& self, std::string_view name, const Args& args) {
  no_arguments(context, name, args);
  const std::string_view text = self.view();
  return remade(context, self,
                name == "upper"   ? upper(text)
                : name == "lower" ? lower(text)
                : name == "title" ? title_words(text)
                                  : capitalize(text));
}

// Byte offset of character `index` (negative: from the end), clamped to the text.
std::size_t offset_of(std::string_view text, std::int64_t index) {
  const std::int64_t size = static_cast<std::int64_t>(char_count(text));
  std::int64_t left = std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  std::size_t at = 0;
  for (; left > 0; --left) at += text::valid_size(static_cast<unsigned char>(text[at]));
  return at;
}

struct Window {
  std::size_t begin = 0;
  std::string_view text;
  bool empty_range = false;
};

// The part of the text that optional start and stop arguments select.
Window window(Context& context, std::string_view text, const Value* start, const Value* stop) {
  const auto index = [&](const Value* value, std::int64_t fallback) {
    return value == nullptr || value->is(Kind::kNone) ? fallback
                                                      : int_argument(context, value, fallback);
  };
  const std::int64_t size = static_cast<std::int64_t>(char_count(text));
  const std::size_t begin = offset_of(text, index(start, 0));
  const std::size_t end = offset_of(text, index(stop, size));
  const bool beyond = index(start, 0) > size;
  return {begin, end < begin ? std::string_view() : text.substr(begin, end - begin),
          end < begin || beyond};
}

Value m_starts(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"prefix", "start", "end"}, 1);
  const Window w = window(context, self.view(), given[1], given[2]);
  const auto matches = [&](const Value& value) {
    const std::string_view affix = text_argument(context, value).view();
    return !w.empty_range &&
           (name == "startswith" ? w.text.starts_with(affix) : w.text.ends_with(affix));
  };
  if (!given[0]->is(Kind::kTuple)) return of(matches(*given[0]));
  const auto all = given[0]->list->span();
  return of(std::any_of(all.begin(), all.end(), matches));
}

Value m_find(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"sub", "start", "end"}, 1);
  const Window w = window(context, self.view(), given[1], given[2]);
  const std::string_view wanted = text_argument(context, *given[0]).view();
  const bool last = name.starts_with('r');
  std::size_t found = last ? w.text.rfind(wanted) : w.text.find(wanted);
  if (w.empty_range) found = std::string_view::npos;
  if (found == std::string_view::npos) {
    if (name.ends_with("index")) context.fail("substring not found");
    return of(std::int64_t{-1});
  }
  return of(static_cast<std::int64_t>(char_count(self.view().substr(0, w.begin + found))));
}

Value m_count(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"sub", "start", "end"}, 1);
  const Window w = window(context, self.view(), given[1], given[2]);
  const std::string_view wanted = text_argument(context, *given[0]).view();
  if (w.empty_range) return of(std::int64_t{0});
  if (wanted.empty()) return of(static_cast<std::int64_t>(char_count(w.text)) + 1);
  std::int64_t count = 0;
  for (std::size_t at = w.text.find(wanted); at != std::string_view::npos;
       at = w.text.find(wanted, at + wanted.size()))
    ++count;
  return of(count);
}

Value m_replace(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"old", "new", "count"}, 2);
  return replace(context, self, text_argument(context, *given[0]),
                 text_argument(context, *given[1]), int_argument(context, given[2], -1));
}

Value m_join(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"iterable"}, 1);
  const auto items = iterate(context, *given[0]);
  for (const Value& item : items) {
    if (!item.is(Kind::kString))
      context.fail(fmt::format("sequence item: expected str instance, {} found", type_name(item)));
  }
  return join(context, self, items);
}

Value m_format(Context& context, const Str& self, std::string_view, const Args& args) {
  return format_braces(context, self, args);
}

// Pieces between white space.
void split_space(Context& context, const Str& self, std::int64_t limit, std::vector<Value>& out) {
  std::size_t at = lstrip_begin(self.view());
  while (at < self.size) {
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.push_back(slice_text(context, self, at, rstrip_end(self.view())));
      return;
    }
    std::size_t end = at;
    while (end < self.size && lstrip_begin(self.view(), end) == end)
      end += text::valid_size(static_cast<unsigned char>(self.data[end]));
    out.push_back(slice_text(context, self, at, end));
    at = lstrip_begin(self.view(), end);
  }
}

void split_by(Context& context, const Str& self, std::string_view separator, std::int64_t limit,
              std::vector<Value>& out) {
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t found = self.view().find(separator, at);
    if (found == std::string_view::npos) break;
    out.push_back(slice_text(context, self, at, found));
    at = found + separator.size();
  }
  out.push_back(slice_text(context, self, at, self.size));
}

void rsplit_by(Context& context, const Str& self, std::string_view separator, std::int64_t limit,
               std::vector<Value>& out) {
  std::size_t end = self.size;
  while (static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t found = end < separator.size()
                                  ? std::string_view::npos
                                  : self.view().rfind(separator, end - separator.size());
    if (found == std::string_view::npos) break;
    out.push_back(slice_text(context, self, found + separator.size(), end));
    end = found;
  }
  out.push_back(slice_text(context, self, 0, end));
  std::reverse(out.begin(), out.end());
}

Value m_split(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"sep", "maxsplit"});
  const std::int64_t limit = int_argument(context, given[1], -1);
  std::vector<Value> out;
  const bool by_space = given[0] == nullptr || given[0]->is(Kind::kNone);
  if (by_space && name == "rsplit" && limit >= 0)
    context.fail("rsplit() at white space with a limit is not supported");
  if (by_space) {
    split_space(context, self, limit, out);
  } else {
    const std::string_view separator = text_argument(context, *given[0]).view();
    if (separator.empty()) context.fail("empty separator");
    if (name == "rsplit" && limit >= 0) {
      rsplit_by(context, self, separator, limit, out);
    } else {
      split_by(context, self, separator, limit, out);
    }
  }
  context.step(out.size() / 16);
  return list_of(context, out);
}

Value m_splitlines(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"keepends"});
  if (bool_argument(given[0], false)) context.fail("splitlines(keepends) is not supported");
  std::vector<Value> out;
  for (const auto& [begin, end] : line_ranges(self.view()))
    out.push_back(slice_text(context, self, begin, end));
  return list_of(context, out);
}

Value m_partition(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"sep"}, 1);
  const Str& separator = text_argument(context, *given[0]);
  if (separator.size == 0) context.fail("empty separator");
  const bool last = name.starts_with('r');
  const std::size_t found =
      last ? self.view().rfind(separator.view()) : self.view().find(separator.view());
  const Value empty = slice_text(context, self, 0, 0);
  Value parts[3] = {of(&self), empty, empty};
  if (found == std::string_view::npos) {
    if (last) std::swap(parts[0], parts[2]);
  } else {
    parts[0] = slice_text(context, self, 0, found);
    parts[1] = slice_text(context, self, found, found + separator.size);
    parts[2] = slice_text(context, self, found + separator.size, self.size);
  }
  return list_of(context, parts, Kind::kTuple);
}

Value m_remove(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"affix"}, 1);
  const std::string_view affix = text_argument(context, *given[0]).view();
  if (name == "removeprefix") {
    return slice_text(context, self, self.view().starts_with(affix) ? affix.size() : 0, self.size);
  }
  return slice_text(context, self, 0,
                    self.view().ends_with(affix) ? self.size - affix.size() : self.size);
}

Value m_is(Context& context, const Str& self, std::string_view name, const Args& args) {
  no_arguments(context, name, args);
  if (name == "isupper") return of(is_upper(self.view()));
  if (name == "islower") return of(is_lower(self.view()));
  const auto is = [&](char32_t c) {
    const auto kind = text::class_of(c);
    const bool letter = kind == text::CharClass::kLetter, number = kind == text::CharClass::kNumber;
    if (name == "isspace") return is_python_space(c);
    if (name == "isascii") return c < 0x80;
    if (name == "isalpha") return letter;
    if (name == "isalnum") return letter || number;
    if (c >= 0x80 && number)
      context.fail(fmt::format("str.{}() of digits beyond ASCII is not supported", name));
    return c >= '0' && c <= '9';
  };
  for (std::size_t at = 0; at < self.size;) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(self.data[at]));
    if (!is(text::decode_valid(self.view(), at, size))) return of(false);
    at += size;
  }
  return of(self.size > 0 || name == "isascii");
}

Value m_pad(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"width", "fillchar"}, 1);
  const std::string_view fill =
      given[1] == nullptr ? std::string_view(" ") : text_argument(context, *given[1]).view();
  if (char_count(fill) != 1) context.fail("The fill character must be exactly one character long");
  const std::int64_t width = int_argument(context, given[0], 0);
  if (name == "center") return center(context, self, width, fill);
  const std::int64_t missing = width - static_cast<std::int64_t>(char_count(self.view()));
  if (missing > static_cast<std::int64_t>(kMaxTemplateOutput)) context.fail("a string is too long");
  std::string padding;
  for (std::int64_t i = 0; i < missing; ++i) padding += fill;
  Builder out;
  if (name == "rjust") out.add(padding, false);
  out.add(self);
  if (name == "ljust") out.add(padding, false);
  return out.finish(context);
}

Value m_zfill(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"width"}, 1);
  const std::int64_t missing =
      int_argument(context, given[0], 0) - static_cast<std::int64_t>(char_count(self.view()));
  if (missing > static_cast<std::int64_t>(kMaxTemplateOutput)) context.fail("a string is too long");
  const std::size_t sign = self.view().starts_with('+') || self.view().starts_with('-') ? 1 : 0;
  Builder out;
  out.add_slice(self, 0, sign);
  if (missing > 0) out.add(std::string(static_cast<std::size_t>(missing), '0'), false);
  out.add_slice(self, sign, self.size);
  return out.finish(context);
}

/// Spaces up to the next multiple of the tab size; line ends begin to count anew.
Value m_expandtabs(Context& context, const Str& self, std::string_view name, const Args& args) {
  const auto given = bind(context, name, args, {"tabsize"});
  const std::int64_t size = int_argument(context, given[0], 8);
  if (size > INT32_MAX) context.fail("Python int too large to convert to C int");
  Builder out;
  std::int64_t column = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < self.size; ++at) {
    const unsigned char byte = static_cast<unsigned char>(self.data[at]);
    if (byte == '\t') {
      out.add_slice(self, begin, at);
      begin = at + 1;
      const std::int64_t n = size > 0 ? size - column % size : 0;
      if (out.size() + static_cast<std::uint64_t>(n) > kMaxTemplateOutput)
        context.fail("a string is too long");
      out.add(std::string(static_cast<std::size_t>(n), ' '), false);
      column += n;
    } else if (byte == '\n' || byte == '\r') {
      column = 0;
    } else if ((byte & 0xC0) != 0x80) {
      ++column;
    }
  }
  out.add_slice(self, begin, self.size);
  return out.finish(context);
}

constexpr std::array<std::pair<std::string_view, Call>, 38> kMethods{{
    {"capitalize", m_case},
    {"center", m_pad},
    {"count", m_count},
    {"endswith", m_starts},
    {"expandtabs", m_expandtabs},
    {"find", m_find},
    {"format", m_format},
    {"index", m_find},
    {"isalnum", m_is},
    {"isalpha", m_is},
    {"isascii", m_is},
    {"isdecimal", m_is},
    {"isdigit", m_is},
    {"islower", m_is},
    {"isnumeric", m_is},
    {"isspace", m_is},
    {"isupper", m_is},
    {"join", m_join},
    {"ljust", m_pad},
    {"lower", m_case},
    {"lstrip", m_strip},
    {"partition", m_partition},
    {"removeprefix", m_remove},
    {"removesuffix", m_remove},
    {"replace", m_replace},
    {"rfind", m_find},
    {"rindex", m_find},
    {"rjust", m_pad},
    {"rpartition", m_partition},
    {"rsplit", m_split},
    {"rstrip", m_strip},
    {"split", m_split},
    {"splitlines", m_splitlines},
    {"startswith", m_starts},
    {"strip", m_strip},
    {"title", m_case},
    {"upper", m_case},
    {"zfill", m_zfill},
}};

Call find_method(std::string_view name) noexcept {
  for (const auto& [known, call] : kMethods) {
    if (known == name) return call;
  }
  return nullptr;
}

}  // namespace

bool is_string_method(std::string_view name) noexcept {
  // The last three exist in Python; calling them is refused by name.
  return find_method(name) != nullptr || name == "casefold" || name == "swapcase" ||
         name == "istitle";
}

Value string_method(Context& context, const Str& self, std::string_view name, const Args& args) {
  const Call call = find_method(name);
  if (call == nullptr) context.fail(fmt::format("str.{}() is not supported", name));
  context.step(self.size / 256);
  return call(context, self, name, args);
}

}  // namespace cyb::tmpl
