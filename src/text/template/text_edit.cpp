// What methods and filters of strings share: strip, replace, join, lines, center. Bytes keep their
// origins.
#include <algorithm>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/lexer.hpp"
#include "text/template/text_methods.hpp"

namespace cyb::tmpl {
namespace {

bool has_char(std::string_view chars, std::string_view c) {
  return chars.find(c) != std::string_view::npos;
}

}  // namespace

Value strip(Context& context, const Str& self, const Value* chars, bool left, bool right) {
  std::size_t begin = 0, end = self.size;
  if (chars == nullptr || chars->is(Kind::kNone)) {
    if (right) end = rstrip_end(self.view());
    if (left) begin = std::min(lstrip_begin(self.view()), end);
    return slice_text(context, self, begin, end);
  }
  const std::string_view set = text_argument(context, *chars).view();
  while (left && begin < end) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(self.data[begin]));
    if (!has_char(set, self.view().substr(begin, size))) break;
    begin += size;
  }
  while (right && end > begin) {
    std::size_t start = end - 1;
    while (start > begin && (static_cast<unsigned char>(self.data[start]) & 0xC0U) == 0x80U)
      --start;
    if (!has_char(set, self.view().substr(start, end - start))) break;
    end = start;
  }
  return slice_text(context, self, begin, end);
}

Value replace(Context& context, const Str& self, const Str& from, const Str& to,
              std::int64_t count) {
  Builder out;
  std::size_t at = 0;
  const auto check = [&] {
    if (out.size() > kMaxTemplateOutput) context.fail("a string is too long");
  };
  if (from.size == 0) {
    // Between all characters, and at both ends.
    for (; count != 0; --count) {
      out.add(to);
      check();
      if (at == self.size) return out.finish(context);
      const std::size_t next = at + text::valid_size(static_cast<unsigned char>(self.data[at]));
      out.add_slice(self, at, next);
      at = next;
    }
  }
  for (; count != 0 && from.size != 0; --count) {
    const std::size_t found = self.view().find(from.view(), at);
    if (found == std::string_view::npos) break;
    out.add_slice(self, at, found);
    out.add(to);
    check();
    at = found + from.size;
  }
  if (at == 0) return of(&self);
  out.add_slice(self, at, self.size);
  return out.finish(context);
}

Value join(Context& context, const Str& separator, std::span<const Value> items) {
  Builder out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(separator);
    append_text(context, out, items[i]);
    if (out.size() > kMaxTemplateOutput) context.fail("a string is too long");
  }
  return out.finish(context);
}

std::vector<std::pair<std::size_t, std::size_t>> line_ranges(std::string_view text) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[at]));
    const char32_t c = text::decode_valid(text, at, size);
    const std::size_t end = at;
    at += size;
    const bool ends =
        (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    out.emplace_back(begin, end);
    begin = at;
  }
  if (begin < text.size()) out.emplace_back(begin, text.size());
  return out;
}

Value center(Context& context, const Str& self, std::int64_t width, std::string_view fill) {
  const std::int64_t missing = width - static_cast<std::int64_t>(char_count(self.view()));
  if (missing <= 0) return of(&self);
  if (missing > static_cast<std::int64_t>(kMaxTemplateOutput)) context.fail("a string is too long");
  const std::int64_t left = missing / 2 + (missing & width & 1);
  const auto padding = [&](std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += fill;
    return out;
  };
  Builder out;
  out.add(padding(left), false);
  out.add(self);
  out.add(padding(missing - left), false);
  return out.finish(context);
}

}  // namespace cyb::tmpl
