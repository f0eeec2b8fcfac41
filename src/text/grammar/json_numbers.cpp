// A number is at least a bound where it has the bound's digits up to a place and a larger digit
// there; the expressions are built from the last digit to the first.
#include "text/grammar/json_numbers.hpp"

#include <algorithm>

namespace cyb::text {
namespace {

constexpr std::size_t kMostDigits = 15;  // of a bounded decimal: as many as a double tells apart
constexpr int kMostExponent = 400;

int compare_whole(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const int compared = a.compare(b);
  return compared < 0 ? -1 : compared > 0 ? 1 : 0;
}

int compare_size(const Decimal& a, const Decimal& b) {
  const int whole = compare_whole(a.whole, b.whole);
  if (whole != 0) return whole;
  const int compared = a.fraction.compare(b.fraction);  // no trailing zeros: as texts
  return compared < 0 ? -1 : compared > 0 ? 1 : 0;
}

std::string plus_one(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
    digits[i] = '0';
  }
  return "1" + digits;
}

/// `digits` must not be "0".
std::string minus_one(std::string digits) {
  std::size_t i = digits.size() - 1;
  for (; digits[i] == '0'; --i) digits[i] = '9';
  --digits[i];
  const std::size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

/// Digits of one sign: sizes between two bounds.
class Sizes {
 public:
  explicit Sizes(GrammarRules& rules) : rules_(rules) {}

  ExprId any(std::uint64_t min, std::uint64_t max) {
    return rules_.repeat(digit('0', '9'), min, max);
  }
  ExprId digit(char first, char last) {
    if (first > last) return rules_.never();
    return rules_.one_of(CharSet::range(static_cast<char32_t>(first), static_cast<char32_t>(last)));
  }
  ExprId text(std::string_view digits) { return rules_.literal(digits); }

  /// Whole numbers from `low` to `high` (none: without end).
  ExprId whole(const std::string& low, const std::optional<std::string>& high);
  /// Fractions of at least `low`, or at most `high`, from digit `at` on; with the dot where `at` is
  /// 0.
  ExprId fraction_from(const std::string& low, bool exclusive, std::size_t at);
  ExprId fraction_to(const std::string& high, bool exclusive, std::size_t at);
  ExprId fraction_between(const NumberBound& low, const NumberBound& high);
  ExprId any_fraction() {
    return rules_.optional(rules_.sequence({text("."), any(1, most_fraction)}));
  }

  std::size_t most_fraction = kMostDigits - 1;

 private:
  ExprId same_length(const std::string& low, const std::string& high);
  ExprId with_dot(ExprId digits, bool none) {
    const ExprId written = rules_.sequence({text("."), digits});
    return none ? rules_.optional(written) : written;
  }
  GrammarRules& rules_;
};

ExprId Sizes::same_length(const std::string& low, const std::string& high) {
  const std::size_t n = low.size();
  const auto parting = std::ranges::mismatch(low, high);
  const std::size_t at = static_cast<std::size_t>(parting.in1 - low.begin());
  if (at == n) return text(low);
  ExprId from = rules_.empty(), to = rules_.empty();
  for (std::size_t i = n; i-- > at + 1;) {
    const std::uint64_t rest = n - 1 - i;
    const char above = static_cast<char>(low[i] + 1), below = static_cast<char>(high[i] - 1);
    from = rules_.choice({rules_.sequence({text(low.substr(i, 1)), from}),
                          rules_.sequence({digit(above, '9'), any(rest, rest)})});
    to = rules_.choice({rules_.sequence({text(high.substr(i, 1)), to}),
                        rules_.sequence({digit('0', below), any(rest, rest)})});
  }
  const std::uint64_t rest = n - 1 - at;
  const char above = static_cast<char>(low[at] + 1), below = static_cast<char>(high[at] - 1);
  return rules_.sequence({text(low.substr(0, at)),
                          rules_.choice({rules_.sequence({text(low.substr(at, 1)), from}),
                                         rules_.sequence({digit(above, below), any(rest, rest)}),
                                         rules_.sequence({text(high.substr(at, 1)), to})})});
}

ExprId Sizes::whole(const std::string& low, const std::optional<std::string>& high) {
  if (high && compare_whole(low, *high) > 0) return rules_.never();
  if (high && low.size() == high->size()) return same_length(low, *high);
  std::vector<ExprId> parts{same_length(low, std::string(low.size(), '9'))};
  const std::uint64_t next = low.size();  // digits behind the first of a number one digit longer
  if (!high) {
    parts.push_back(rules_.sequence({digit('1', '9'), any(next, kUnbounded)}));
    return rules_.choice(parts);
  }
  if (high->size() > next + 1)
    parts.push_back(rules_.sequence({digit('1', '9'), any(next, high->size() - 2)}));
  parts.push_back(same_length("1" + std::string(high->size() - 1, '0'), *high));
  return rules_.choice(parts);
}

ExprId Sizes::fraction_from(const std::string& low, bool exclusive, std::size_t at) {
  const std::uint64_t most = std::max(most_fraction, low.size() + 1);
  const ExprId some =
      rules_.sequence({rules_.repeat(text("0"), 0, most), digit('1', '9'), any(0, most)});
  if (at >= low.size()) {
    const ExprId more = exclusive ? some : any(at == 0 ? 1 : 0, most);
    return at == 0 ? with_dot(more, !exclusive) : more;
  }
  ExprId out = exclusive ? some : any(0, most);
  for (std::size_t i = low.size(); i-- > at;) {
    out =
        rules_.choice({rules_.sequence({text(low.substr(i, 1)), out}),
                       rules_.sequence({digit(static_cast<char>(low[i] + 1), '9'), any(0, most)})});
  }
  return at == 0 ? with_dot(out, false) : out;
}

ExprId Sizes::fraction_to(const std::string& high, bool exclusive, std::size_t at) {
  const std::uint64_t most = std::max(most_fraction, high.size() + 1);
  const bool at_end = at >= high.size();
  ExprId out =
      exclusive ? rules_.never() : rules_.repeat(text("0"), at_end && at == 0 ? 1 : 0, most);
  for (std::size_t i = high.size(); i-- > at;) {
    out = rules_.choice(
        {rules_.sequence({text(high.substr(i, 1)), out}),
         rules_.sequence({digit('0', static_cast<char>(high[i] - 1)), any(0, most)})});
    if (i > 0) out = rules_.optional(out);  // a shorter fraction is less
  }
  if (at != 0) return out;
  const bool none = !high.empty() || !exclusive;
  if (out == rules_.never()) return none ? rules_.empty() : out;
  return with_dot(out, none);
}

/// Of one whole part; low <= high.
ExprId Sizes::fraction_between(const NumberBound& low, const NumberBound& high) {
  const std::string& to = high.at.fraction;
  std::string from = low.at.fraction;
  if (from == to) {
    if (low.exclusive || high.exclusive) return rules_.never();
    const ExprId zeros = rules_.repeat(text("0"), from.empty() ? 1 : 0, kMostDigits);
    return with_dot(rules_.sequence({text(from), zeros}), from.empty());
  }
  from.resize(std::max(from.size(), to.size()), '0');
  const auto parting = std::ranges::mismatch(from, to);
  const std::size_t at = static_cast<std::size_t>(parting.in1 - from.begin());
  const std::uint64_t most = std::max(most_fraction, to.size());
  // A fraction that ends early is as if zeros followed.
  const auto may_end = [&](std::size_t i) {
    return !low.exclusive && from.find_first_not_of('0', i) == std::string::npos;
  };
  const auto after = [&](ExprId expr, std::size_t i) {
    return may_end(i) ? rules_.optional(expr) : expr;
  };
  const char above = static_cast<char>(from[at] + 1), below = static_cast<char>(to[at] - 1);
  ExprId out = rules_.choice(
      {rules_.sequence({text(from.substr(at, 1)),
                        after(fraction_from(low.at.fraction, low.exclusive, at + 1), at + 1)}),
       rules_.sequence({digit(above, below), any(0, most)}),
       rules_.sequence({text(to.substr(at, 1)), fraction_to(to, high.exclusive, at + 1)})});
  for (std::size_t i = at; i-- > 0;)
    out = rules_.sequence({text(from.substr(i, 1)), after(out, i + 1)});
  return with_dot(out, may_end(0));
}

struct SizeRange {
  NumberBound low;
  std::optional<NumberBound> high;
};

/// Decimals without a sign.
ExprId decimals(GrammarRules& rules, const SizeRange& range) {
  Sizes sizes(rules);
  const std::string& from = range.low.at.whole;
  const std::size_t longest = std::max(from.size(), range.high ? range.high->at.whole.size() : 1);
  sizes.most_fraction = kMostDigits - std::min(longest, kMostDigits - 1);
  std::vector<ExprId> parts;
  if (range.high && range.high->at.whole == from) {
    if (compare_size(range.low.at, range.high->at) > 0) return rules.never();
    return rules.sequence({sizes.text(from), sizes.fraction_between(range.low, *range.high)});
  }
  if (range.high && compare_whole(from, range.high->at.whole) > 0) return rules.never();
  parts.push_back(rules.sequence(
      {sizes.text(from), sizes.fraction_from(range.low.at.fraction, range.low.exclusive, 0)}));
  std::optional<std::string> last;
  if (range.high) {
    const std::string& to = range.high->at.whole;
    last = minus_one(to);
    parts.push_back(rules.sequence(
        {sizes.text(to), sizes.fraction_to(range.high->at.fraction, range.high->exclusive, 0)}));
  }
  parts.push_back(rules.sequence({sizes.whole(plus_one(from), last), sizes.any_fraction()}));
  return rules.choice(parts);
}

const Decimal kZero{};

Decimal minus(Decimal value) {
  value.negative = !value.negative && !(value == kZero);
  return value;
}

}  // namespace

std::optional<Decimal> decimal_of(std::string_view number) {
  Decimal out;
  out.negative = number.starts_with('-');
  if (out.negative) number.remove_prefix(1);
  const std::size_t e = number.find_first_of("eE");
  std::string digits(number.substr(0, e));
  int exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view power = number.substr(e + 1);
    const bool down = power.starts_with('-');
    if (down || power.starts_with('+')) power.remove_prefix(1);
    for (const char c : power) exponent = std::min(10 * exponent + (c - '0'), 10000);
    if (exponent > kMostExponent) return std::nullopt;
    if (down) exponent = -exponent;
  }
  const std::size_t dot = digits.find('.');
  int point = static_cast<int>(dot == std::string::npos ? digits.size() : dot) + exponent;
  if (dot != std::string::npos) digits.erase(dot, 1);
  if (point < 0) digits.insert(0, static_cast<std::size_t>(-point), '0');
  point = std::max(point, 0);
  const std::size_t at = static_cast<std::size_t>(point);
  if (digits.size() < at) digits.resize(at, '0');
  out.whole = digits.substr(0, at);
  out.fraction = digits.substr(at);
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  if (out.whole.empty()) out.whole = "0";
  out.fraction.resize(out.fraction.find_last_not_of('0') + 1);  // npos + 1 is 0
  if (out.whole == "0" && out.fraction.empty()) out.negative = false;
  return out;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? -compare_size(a, b) : compare_size(a, b);
}

namespace {

/// The least integer of the range's low bound, as a size and its sign.
Decimal first_integer(const NumberBound& low) {
  Decimal out{low.at.negative, low.at.whole};
  const bool between = !low.at.fraction.empty();
  if (low.at.negative) {
    if (!between && low.exclusive) out.whole = minus_one(out.whole);
  } else if (between || low.exclusive) {
    out.whole = plus_one(out.whole);
  }
  if (out.whole == "0") out.negative = false;
  return out;
}

Decimal last_integer(const NumberBound& high) {
  return minus(first_integer({minus(high.at), high.exclusive}));
}

}  // namespace

ExprId integer_between(GrammarRules& rules, const NumberRange& range) {
  Sizes sizes(rules);
  std::optional<Decimal> low, high;
  if (range.low) low = first_integer(*range.low);
  if (range.high) high = last_integer(*range.high);
  std::vector<ExprId> parts;
  if (!high || !high->negative) {
    const std::string from = low && !low->negative ? low->whole : "0";
    parts.push_back(sizes.whole(from, high ? std::optional(high->whole) : std::nullopt));
  }
  if (!low || low->negative) {
    const std::string from = high && high->negative ? high->whole : "1";
    parts.push_back(rules.sequence(
        {rules.literal("-"), sizes.whole(from, low ? std::optional(low->whole) : std::nullopt)}));
  }
  return rules.choice(parts);
}

ExprId decimal_between(GrammarRules& rules, const NumberRange& range) {
  std::vector<ExprId> parts;
  if (!range.high || !range.high->at.negative) {
    const bool from_zero = !range.low || range.low->at.negative;
    parts.push_back(decimals(rules, {from_zero ? NumberBound{} : *range.low, range.high}));
  }
  if (!range.low || range.low->at.negative) {
    SizeRange below{NumberBound{{}, true}, std::nullopt};
    if (range.high && range.high->at.negative)
      below.low = {minus(range.high->at), range.high->exclusive};
    if (range.low) below.high = NumberBound{minus(range.low->at), range.low->exclusive};
    parts.push_back(rules.sequence({rules.literal("-"), decimals(rules, below)}));
  }
  return rules.choice(parts);
}

ExprId integer_multiples(GrammarRules& rules, std::uint64_t factor) {
  std::vector<RuleId> remainder;  // of the digits so far
  for (std::uint64_t r = 0; r < factor; ++r)
    remainder.push_back(rules.declare("the remainder of multipleOf"));
  const auto digit_rules = [&](std::uint64_t r, char first) {
    std::vector<ExprId> parts;
    for (char c = first; c <= '9'; ++c) {
      const std::uint64_t next = (10 * r + static_cast<std::uint64_t>(c - '0')) % factor;
      parts.push_back(
          rules.sequence({rules.literal(std::string(1, c)), rules.rule(remainder[next])}));
    }
    return parts;
  };
  for (std::uint64_t r = 0; r < factor; ++r) {
    std::vector<ExprId> parts = digit_rules(r, '0');
    if (r == 0) parts.push_back(rules.empty());
    rules.define(remainder[r], rules.choice(parts));
  }
  const std::vector<ExprId> first = digit_rules(0, '1');
  return rules.choice({rules.literal("0"),
                       rules.sequence({rules.optional(rules.literal("-")), rules.choice(first)})});
}

}  // namespace cyb::text
