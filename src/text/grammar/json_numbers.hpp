// Numbers of JSON as expressions: integers and decimals between two bounds, digit by digit.
#pragma once

#include <optional>
#include <string>

#include "text/grammar/expression.hpp"

namespace cyb::text {

/// A decimal number: whole part without leading zeros ("0" alone), fraction without trailing ones.
struct Decimal {
  bool negative = false;
  std::string whole = "0", fraction{};
  bool operator==(const Decimal&) const = default;
};

/// Of "-12.50", "1e3", "2.5E-7": what a JSON number or fmt writes. Empty for exponents beyond 400.
std::optional<Decimal> decimal_of(std::string_view number);
/// -1, 0, 1.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal at{};
  bool exclusive = false;
};
struct NumberRange {
  std::optional<NumberBound> low{}, high{};
  bool bounded() const noexcept { return low || high; }
};

/// Integers of the range, without leading zeros, "-0", fraction or exponent.
ExprId integer_between(GrammarRules& rules, const NumberRange& range);
/// Decimals of the range, without exponent and "-0".
ExprId decimal_between(GrammarRules& rules, const NumberRange& range);
/// Multiples of `factor` (1 to 1000), of any size.
ExprId integer_multiples(GrammarRules& rules, std::uint64_t factor);

}  // namespace cyb::text
