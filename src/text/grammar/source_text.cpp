// Characters, numbers and words of a grammar's source.
#include "text/grammar/source_text.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace cyb::text {
namespace {

bool is_alphanumeric(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

Result<SourceText> SourceText::open(std::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return fail(grammar_error(
        "source", fmt::format("{} bytes, at most {} are read", text.size(), kMaxGrammarBytes)));
  }
  const std::size_t bad = utf8_find_invalid(text);
  if (bad != std::string_view::npos)
    return fail(grammar_error(line_and_column(text, bad), "not UTF-8"));
  return SourceText(text);
}

Result<SourceText> SourceText::open_grammar(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    return fail(grammar_error("line 1, column 1",
                              "a byte order mark: save the grammar as UTF-8 without one"));
  }
  return open(text);
}

char32_t SourceText::take_char() noexcept {
  const Utf8Char c = utf8_next(text_, at_);
  at_ += c.size;
  return c.code_point;
}

Result<char32_t> SourceText::take_hex(std::size_t digits) {
  std::uint64_t value = 0;
  const std::size_t from = at_;
  for (std::size_t i = 0; i < digits; ++i) {
    const int digit = hex_digit(peek());
    if (digit < 0) return error(fmt::format("{} hexadecimal digits belong here", digits));
    value = 16 * value + static_cast<std::uint64_t>(digit);
    skip();
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    return error_at(from, "the escape is no Unicode character");
  return static_cast<char32_t>(value);
}

Result<std::uint64_t> SourceText::take_number() {
  const std::size_t from = at_;
  std::uint64_t value = 0;
  while (peek() >= '0' && peek() <= '9') {
    const std::uint64_t digit = static_cast<std::uint64_t>(peek() - '0');
    if (value > (kUnbounded - 1 - digit) / 10) return error_at(from, "the number is too large");
    value = 10 * value + digit;
    skip();
  }
  if (at_ == from) return error("a number belongs here");
  return value;
}

std::string_view SourceText::take_word(std::string_view more) noexcept {
  const std::size_t from = at_;
  while (!done() && (is_alphanumeric(peek()) || more.find(peek()) != std::string_view::npos))
    skip();
  return since(from);
}

RuleNames::Name& RuleNames::name_of(GrammarRules& rules, std::string_view word, std::size_t at) {
  const auto found = names_.find(std::string(word));
  if (found != names_.end()) return found->second;
  const RuleId rule = rules.declare(fmt::format("rule \"{}\"", word), true);
  return names_.emplace(std::string(word), Name{rule, at}).first->second;
}

RuleId RuleNames::use(GrammarRules& rules, std::string_view word, std::size_t at) {
  return name_of(rules, word, at).rule;
}

std::optional<RuleId> RuleNames::define(GrammarRules& rules, std::string_view word,
                                        std::size_t at) {
  Name& name = name_of(rules, word, at);
  if (name.defined) return std::nullopt;
  name.defined = true;
  return name.rule;
}

std::optional<RuleId> RuleNames::find(std::string_view word) const {
  const auto found = names_.find(std::string(word));
  if (found == names_.end()) return std::nullopt;
  return found->second.rule;
}

std::optional<RuleNames::Missing> RuleNames::first_missing() const {
  std::optional<Missing> out;
  for (const auto& [word, name] : names_) {
    if (name.defined || (out && out->first_use <= name.first_use)) continue;
    out = Missing{word, name.first_use};
  }
  return out;
}

}  // namespace cyb::text
