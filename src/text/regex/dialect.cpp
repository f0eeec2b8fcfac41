// One pass over the pattern. \s, \d and \w become the sets that Oniguruma and Rust give them,
// scripts are asked for as scripts (not script extensions), `{n,m}+` is no possessive form there,
// and the intersection of classes becomes a lookahead.
#include "text/regex/dialect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "text/pretokenizers/char_class.hpp"
#include "text/unicode_tables.hpp"

namespace cyb::text {
namespace {

// Unicode's White_Space, and all else, as members of a class.
constexpr std::string_view kSpaces =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNotSpaces =
    R"(\x00-\x08\x0E-\x1F\x21-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";

/// \w as a member of a class.
const std::string& word_members() {
  static const std::string kMembers = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})" + newer_members("L") +
                                      newer_members("M") + newer_members("Nd") +
                                      newer_members("Pc");
  return kMembers;
}
/// \w by itself, and what \b looks at: there Oniguruma counts the fractions and raised digits below
/// U+0100, too.
const std::string& word_chars() {
  static const std::string kMembers = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})" + word_members();
  return kMembers;
}

// Han since Unicode 15.
constexpr std::string_view kNewerHan = R"(\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";

constexpr std::array<std::pair<std::string_view, std::string_view>, 30> kCategories{{
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"casedletter", "L&"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"other", "C"},
}};
constexpr std::array<std::string_view, 8> kBinary{
    "alphabetic", "uppercase",     "lowercase",         "emoji",
    "math",       "emojimodifier", "emojipresentation", "extendedpictographic"};

Error refused(std::string_view what) {
  return not_built(fmt::format("regular expression: {}", what));
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == ' ' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  }
  return out;
}

bool is_alnum(char c) noexcept {
  return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> run() {
    while (at_ < in_.size()) CYB_TRY(one());
    if (!groups_.empty()) return fail(refused("an open group"));
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view text) const noexcept { return in_.substr(at_).starts_with(text); }

  Result<void> one() {
    switch (peek()) {
      case '\\':
        atom_ = out_.size();
        return escape();
      case '[':
        atom_ = out_.size();
        return char_class();
      case '(':
        return open_group();
      case ')':
        if (groups_.empty()) return fail(refused("a group that is not open"));
        atom_ = groups_.back();
        groups_.pop_back();
        out_ += in_[at_++];
        return {};
      case '*':
      case '+':
      case '?':
        out_ += in_[at_++];
        return {};
      case '{':
        return interval();
      case '|':
      case '^':
      case '$':
        out_ += in_[at_++];
        atom_ = out_.size();
        return {};
      default:
        break;
    }
    atom_ = out_.size();
    const std::size_t size = valid_size(static_cast<unsigned char>(in_[at_]));
    out_.append(in_.substr(at_, size));
    at_ += size;
    return {};
  }

  Result<void> open_group() {
    constexpr std::array<std::string_view, 9> kForms{"(?:", "(?=",  "(?!",   "(?<=", "(?<!",
                                                     "(?>", "(?i:", "(?-i:", "(?i)"};
    const auto take = [&](std::string_view text) {
      out_.append(text);
      at_ += text.size();
    };
    for (const std::string_view form : kForms) {
      if (!starts(form)) continue;
      if (form != "(?i)") groups_.push_back(out_.size());
      take(form);
      return {};
    }
    if (peek(1) == '?' || peek(1) == '*') {
      return fail(refused(fmt::format("the group {}", in_.substr(at_, 4))));
    }
    if (groups_.size() > 100) return fail(refused("groups that are nested too deeply"));
    groups_.push_back(out_.size());
    take("(");
    return {};
  }

  /// `{n}`, `{n,}`, `{n,m}`, `{,m}`; any other brace stands for itself.
  Result<void> interval() {
    const std::size_t close = in_.find('}', at_);
    const std::string_view body =
        close == std::string_view::npos ? "" : in_.substr(at_ + 1, close - at_ - 1);
    const std::size_t comma = body.find(',');
    const bool digits =
        body.find_first_not_of("0123456789,") == std::string_view::npos &&
        body.find_first_of("0123456789") != std::string_view::npos &&
        (comma == std::string_view::npos || body.find(',', comma + 1) == std::string_view::npos);
    if (!digits) {
      atom_ = out_.size();
      out_ += "\\{";
      ++at_;
      return {};
    }
    out_ += fmt::format("{{{}{}}}", comma == 0 ? "0" : "", body);
    at_ = close + 1;
    if (peek() == '?' && comma == std::string_view::npos) {
      return fail(refused("a question mark after {n}"));
    }
    if (peek() != '+') return {};
    out_.insert(std::min(atom_, out_.size()), "(?:");
    out_ += ")";
    return {};
  }

  Result<void> escape() {
    const char c = peek(1);
    const auto emit = [&](const std::string& text) -> Result<void> {
      out_ += text;
      at_ += 2;
      return {};
    };
    switch (c) {
      case 's':
        return emit(fmt::format("[{}]", kSpaces));
      case 'S':
        return emit(fmt::format("[^{}]", kSpaces));
      case 'w':
        return emit(fmt::format("[{}]", word_chars()));
      case 'W':
        return emit(fmt::format("[^{}]", word_chars()));
      case 'b':
        return emit(fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", word_chars()));
      case 'B':
        return emit(fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", word_chars()));
      case 'h':
        return emit("[0-9a-fA-F]");
      case 'A':
      case 'z':
        return emit(std::string("\\") + c);
      case 'd':
        return emit(fmt::format("[\\p{{Nd}}{}]", newer_members("Nd")));
      case 'D':
        return emit(fmt::format("[^\\p{{Nd}}{}]", newer_members("Nd")));
      case 'p':
      case 'P':
        return whole_property();
      default:
        return member_escape();
    }
  }

  /// A property outside of a class becomes a class where it has members that PCRE2 does not know.
  Result<void> whole_property() {
    const std::size_t start = out_.size();
    bool negative = false;
    CYB_ASSIGN(const std::string name, property(negative));
    const std::string more = newer_of(name);
    if (more.empty()) return {};
    out_.resize(start);
    out_ += fmt::format("[{}\\p{{{}}}{}]", negative ? "^" : "", name, more);
    return {};
  }

  static std::string newer_of(std::string_view name) {
    return plain_name(name) == "sc:han" ? std::string(kNewerHan) : newer_members(name);
  }

  /// An escape that has the same form inside and outside of a class.
  Result<void> member_escape() {
    const char c = peek(1);
    const auto emit = [&](std::string_view text) -> Result<void> {
      out_ += text;
      at_ += 2;
      return {};
    };
    switch (c) {
      case '\0':
        return fail(refused("a backslash at the end"));
      case 'd':
        return emit("\\p{Nd}" + newer_members("Nd"));
      case 'D':
        return emit("\\P{Nd}");
      case 'v':
        return emit("\\x0B");
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return emit(in_.substr(at_, 2));
      case 'p':
      case 'P': {
        bool negative = false;
        CYB_ASSIGN(const std::string name, property(negative));
        if (!negative && !without_newer_) out_ += newer_of(name);
        return {};
      }
      case 'u':
        return hex(2, 4);
      case 'x':
        if (peek(2) != '{') return hex(2, 2);
        return braced_hex();
      default:
        break;
    }
    if (is_alnum(c)) return fail(refused(fmt::format("\\{}", c)));
    out_ += '\\';
    ++at_;
    const std::size_t size = valid_size(static_cast<unsigned char>(in_[at_]));
    if (size > 1) out_.pop_back();
    out_.append(in_.substr(at_, size));
    at_ += size;
    return {};
  }

  Result<void> hex(std::size_t skip, std::size_t digits) {
    const std::string_view text = in_.substr(at_).substr(std::min(skip, in_.size() - at_), digits);
    const bool good = text.size() == digits && std::ranges::all_of(text, [](char c) {
                        return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
                      });
    if (!good) return fail(refused("an escape with bad digits"));
    out_ += fmt::format("\\x{{{}}}", text);
    at_ += skip + digits;
    return {};
  }

  Result<void> braced_hex() {
    const std::size_t close = in_.find('}', at_);
    if (close == std::string_view::npos || close - at_ > 11) {
      return fail(refused("an escape with bad digits"));
    }
    out_.append(in_.substr(at_, close + 1 - at_));
    at_ = close + 1;
    return {};
  }

  /// Its name as PCRE2 has it.
  Result<std::string> property(bool& negative) {
    negative = peek(1) == 'P';
    std::string_view name;
    if (peek(2) != '{') {
      name = in_.substr(at_ + 2, 1);
      at_ += 3;
    } else {
      const std::size_t close = in_.find('}', at_);
      if (close == std::string_view::npos) return fail(refused("\\p without a name"));
      name = in_.substr(at_ + 3, close - at_ - 3);
      at_ = close + 1;
    }
    if (name.starts_with('^')) {
      negative = !negative;
      name.remove_prefix(1);
    }
    const std::string_view given = name;
    for (const std::string_view key : {"script=", "Script=", "sc=", "gc=", "general_category="}) {
      if (name.starts_with(key)) name.remove_prefix(key.size());
    }
    const bool good = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
      return is_alnum(c) || c == '_' || c == ' ' || c == '-' || c == '&';
    });
    if (!good) return fail(refused(fmt::format("the property \\p{{{}}}", given)));
    std::string known = pcre_name(name);
    out_ += fmt::format("\\{}{{{}}}", negative ? 'P' : 'p', known);
    return known;
  }

  static std::string pcre_name(std::string_view name) {
    std::string plain = plain_name(name);
    if (plain.size() <= 2) return std::string(name);
    if (plain == "any") return "Any";
    for (const auto& [text, category] : kCategories) {
      if (plain == text) return std::string(category);
    }
    if (std::ranges::find(kBinary, std::string_view(plain)) != kBinary.end()) return plain;
    return fmt::format("sc:{}", name);
  }

  /// `[...]`; `[A&&B]` becomes `(?:(?=B)A)`.
  Result<void> char_class() {
    const std::size_t start = out_.size();
    ++at_;
    bool negative = false;
    const std::size_t begin = at_;
    CYB_ASSIGN(std::string first, members(negative));
    if (starts("&&")) {
      // Without the newer characters: beside them PCRE2 no longer sees at once that a run which
      // failed fails from its next character on, too, and the search is quadratic.
      at_ = begin;
      without_newer_ = true;
      CYB_ASSIGN(first, members(negative));
      without_newer_ = false;
    }
    std::string ahead;
    while (starts("&&")) {
      if (negative) return fail(refused("a negated intersection of classes"));
      at_ += 2;
      bool inner_negative = false;
      std::string inner;
      if (peek() == '[') {
        ++at_;
        CYB_ASSIGN(inner, members(inner_negative));
        if (peek() != ']') return fail(refused("classes that are nested too deeply"));
        ++at_;
        if (peek() != ']' && !starts("&&")) return fail(refused("an intersection with a union"));
      } else {
        CYB_ASSIGN(inner, members(inner_negative));
      }
      ahead += fmt::format("(?=[{}{}])", inner_negative ? "^" : "", inner);
    }
    if (peek() != ']') return fail(refused("a class inside a class"));
    ++at_;
    out_.resize(start);
    if (first.empty()) return fail(refused("an empty class"));
    if (const std::string one = difference(first, ahead); !negative && !one.empty()) {
      out_ += one;
      return {};
    }
    const std::string body = fmt::format("[{}{}]", negative ? "^" : "", first);
    out_ += ahead.empty() ? body : fmt::format("(?:{}{})", ahead, body);
    return {};
  }

  /// `[\p{Lu}\p{M}&&[^B]]` as one class, which repeats without a stack: the general categories
  /// divide all characters, so the others and B are what it must not be. "" for other forms.
  static std::string difference(std::string_view members, std::string_view ahead) {
    constexpr std::string_view kAhead = "(?=[^";
    if (!ahead.starts_with(kAhead) || ahead.find("(?=", 1) != std::string_view::npos) return {};
    constexpr std::string_view kAll =
        "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";
    std::string others(kAll);
    for (; !members.empty(); members.remove_prefix(members.find('}') + 1)) {
      const std::size_t close = members.find('}');
      if (!members.starts_with("\\p{") || close > 5 || close < 4) return {};
      const std::string_view name = members.substr(3, close - 3);
      bool known = false;
      for (std::size_t at = 0; at < others.size();) {
        const bool hit = std::string_view(others).substr(at, 2).starts_with(name);
        if (hit) others.erase(at, 2);
        known = known || hit;
        at += hit ? 0 : 2;
      }
      if (!known) return {};
    }
    std::string out = "[^";
    for (std::size_t at = 0; at < others.size(); at += 2) {
      out += fmt::format("\\p{{{}}}", std::string_view(others).substr(at, 2));
    }
    return out.append(ahead.substr(kAhead.size(), ahead.size() - kAhead.size() - 2)) + "]";
  }

  /// The members up to "]", "&&" or "[".
  Result<std::string> members(bool& negative) {
    const std::size_t start = out_.size();
    if (peek() == '^') {
      negative = true;
      ++at_;
    }
    bool first = true;
    while (true) {
      const char c = peek();
      if (at_ >= in_.size()) return fail(refused("an open class"));
      if ((c == ']' && !first) || starts("&&")) break;
      if (c == '[') return fail(refused("a class inside a class"));
      first = false;
      if (c == '\\') {
        CYB_TRY(class_escape());
        continue;
      }
      const std::size_t size = valid_size(static_cast<unsigned char>(c));
      if (c == ']') out_ += '\\';
      out_.append(in_.substr(at_, size));
      at_ += size;
    }
    std::string text = out_.substr(start);
    out_.resize(start);
    return text;
  }

  Result<void> class_escape() {
    const char c = peek(1);
    const std::string_view set = c == 's'   ? kSpaces
                                 : c == 'S' ? kNotSpaces
                                 : c == 'w' ? word_members()
                                 : c == 'h' ? std::string_view("0-9a-fA-F")
                                            : std::string_view();
    if (set.empty()) return c == 'b' ? fail(refused("\\b in a class")) : member_escape();
    out_ += set;
    at_ += 2;
    return {};
  }

  bool without_newer_ = false;
  std::string_view in_;
  std::string out_;
  std::vector<std::size_t> groups_;  // where in the output each open group starts
  std::size_t at_ = 0, atom_ = 0;
};

}  // namespace

Result<std::string> pcre_pattern(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) return fail(refused("a pattern that is too long"));
  if (pattern.find('\0') != std::string_view::npos) return fail(refused("a zero byte"));
  return Translator(pattern).run();
}

}  // namespace cyb::text
