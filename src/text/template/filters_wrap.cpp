// wordwrap: Python's textwrap.wrap of every line, as jinja2 calls it (tabs and white space stay).
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/filters.hpp"
#include "text/template/lexer.hpp"
#include "text/template/text_methods.hpp"
#include "text/template/white_space.hpp"

namespace cyb::tmpl {
namespace {

bool is_space(char32_t c) {
  return c == ' ' || (c >= 9 && c <= 13);
}

bool is_word(char32_t c) {
  const auto kind = text::class_of(c);
  return c == '_' || kind == text::CharClass::kLetter || kind == text::CharClass::kNumber;
}

/// [^\d\W]
bool is_letter(char32_t c) {
  return is_word(c) && utf8proc_category(static_cast<utf8proc_int32_t>(c)) != UTF8PROC_CATEGORY_ND;
}

/// [\w!"'&.,?]
bool is_word_mark(char32_t c) {
  return is_word(c) ||
         (c < 0x80 && c != 0 &&
          std::string_view("!\"'&.,?").find(static_cast<char>(c)) != std::string_view::npos);
}

/// Cuts one line into pieces that are not broken, as the expressions of textwrap do.
class Cutter {
 public:
  explicit Cutter(const std::u32string_view text) : text_(text), after_hyphens_(text.size() + 1) {
    after_hyphens_[text.size()] = text.size();
    for (std::size_t i = text.size(); i-- > 0;)
      after_hyphens_[i] = text[i] == '-' ? after_hyphens_[i + 1] : i;
  }

  std::vector<std::u32string_view> cut(bool on_hyphens) const {
    std::vector<std::u32string_view> out;
    for (std::size_t at = 0; at < text_.size();) {
      std::size_t end = at;
      if (is_space(text_[at])) {
        while (end < text_.size() && is_space(text_[end])) ++end;
      } else if (!on_hyphens) {
        while (end < text_.size() && !is_space(text_[end])) ++end;
      } else if (at > 0 && is_word_mark(text_[at - 1]) && is_dash(at)) {
        end = after_hyphens_[at];
      } else {
        end = word_end(at);
      }
      out.push_back(text_.substr(at, end - at));
      at = end;
    }
    return out;
  }

 private:
  bool letter(std::size_t i) const { return i < text_.size() && is_letter(text_[i]); }

  /// Two hyphens or more, then a letter or digit.
  bool is_dash(std::size_t at) const {
    const std::size_t end = after_hyphens_[at];
    return end >= at + 2 && end < text_.size() && is_word(text_[end]);
  }

  bool is_inner_hyphen(std::size_t at) const {
    if (text_[at] != '-' || at < 2) return false;
    const bool before =
        letter(at - 1) && (letter(at - 2) || (text_[at - 2] == '-' && at >= 3 && letter(at - 3)));
    const std::size_t next = at + 1;
    if (!before || !letter(next)) return false;
    const bool hyphen = next + 1 < text_.size() && text_[next + 1] == '-';
    return letter(next + 1) || (hyphen && letter(next + 2));
  }

  std::size_t word_end(std::size_t at) const {
    for (std::size_t j = at + 1;; ++j) {
      if (j == text_.size() || is_space(text_[j])) return j;
      if (is_inner_hyphen(j)) return j + 1;
      if (is_word_mark(text_[j - 1]) && is_dash(j)) return j;
    }
  }

  std::u32string_view text_;
  std::vector<std::size_t> after_hyphens_;
};

struct WrapRules {
  std::size_t width = 79;
  bool break_long_words = true, break_on_hyphens = true, cut_on_hyphens = true;
};

bool is_blank(std::u32string_view text) {
  return std::ranges::all_of(text, [](char32_t c) { return is_python_space(c); });
}

/// Puts the beginning of a piece that is too long for any line behind `line`.
void take_part(std::deque<std::u32string_view>& pieces, std::vector<std::u32string_view>& line,
               std::size_t room, const WrapRules& rules) {
  if (!rules.break_long_words) {
    if (!line.empty()) return;
    line.push_back(pieces.front());
    pieces.pop_front();
    return;
  }
  std::u32string_view& piece = pieces.front();
  std::size_t end = room;
  if (rules.break_on_hyphens && piece.size() > room && room > 0) {
    const std::size_t hyphen = piece.rfind(U'-', room - 1);
    const bool found = hyphen != std::u32string_view::npos && hyphen > 0;
    const bool before = found && piece.substr(0, hyphen).find_first_not_of(U'-') < hyphen;
    if (before) end = hyphen + 1;
  }
  end = std::min(end, piece.size());
  line.push_back(piece.substr(0, end));
  piece.remove_prefix(end);
}

void wrap_line(std::deque<std::u32string_view> pieces, const WrapRules& rules, Context& context,
               std::vector<std::u32string>& lines) {
  const std::size_t first = lines.size();
  while (!pieces.empty()) {
    context.step();
    std::vector<std::u32string_view> line;
    std::size_t used = 0;
    if (lines.size() > first && is_blank(pieces.front())) pieces.pop_front();
    while (!pieces.empty() && used + pieces.front().size() <= rules.width) {
      used += pieces.front().size();
      line.push_back(pieces.front());
      pieces.pop_front();
    }
    if (!pieces.empty() && pieces.front().size() > rules.width)
      take_part(pieces, line, rules.width - used, rules);
    if (!line.empty() && is_blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::u32string whole;
    for (const std::u32string_view piece : line) whole += piece;
    lines.push_back(std::move(whole));
  }
}

std::u32string decoded(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[at]));
    out += text::decode_valid(text, at, size);
    at += size;
  }
  return out;
}

}  // namespace

Value filter_wordwrap(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args,
                          {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  Context& context = call.context;
  const std::int64_t width = int_argument(context, given[0], 79);
  WrapRules rules;
  rules.break_long_words = bool_argument(given[1], true);
  rules.break_on_hyphens = bool_argument(given[3], true);
  rules.cut_on_hyphens = given[3] == nullptr || (given[3]->is(Kind::kBool) && given[3]->boolean);
  const bool no_wrapstring = given[2] == nullptr || given[2]->is(Kind::kNone);
  const std::string_view joint =
      no_wrapstring ? std::string_view("\n") : text_argument(context, *given[2]).view();
  if (call.value.is(Kind::kUndefined)) context.fail(std::string(call.value.text->view()));
  if (!call.value.is(Kind::kString))
    context.fail(fmt::format("'{}' object has no attribute 'splitlines'", type_name(call.value)));
  const Str& self = *call.value.text;
  context.step(self.size / 16);
  std::string out;
  bool is_first_line = true;
  for (const auto& [begin, end] : line_ranges(self.view())) {
    if (width <= 0) context.fail(fmt::format("invalid width {} (must be > 0)", width));
    rules.width = static_cast<std::size_t>(width);
    const std::u32string line = decoded(self.view().substr(begin, end - begin));
    const std::vector<std::u32string_view> pieces = Cutter(line).cut(rules.cut_on_hyphens);
    std::vector<std::u32string> lines;
    wrap_line({pieces.begin(), pieces.end()}, rules, context, lines);
    if (!is_first_line) out += joint;
    is_first_line = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) out += joint;
      for (const char32_t c : lines[i]) utf8_append(out, c);
    }
    if (out.size() > kMaxTemplateOutput) context.fail("a string is too long");
  }
  return remade(context, self, out);
}

}  // namespace cyb::tmpl
