// Tests: what stands after `is`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text/template/interpreter.hpp"
#include "text/template/text_case.hpp"

namespace cyb::tmpl {
namespace {

constexpr std::array<std::pair<std::string_view, Op>, 17> kComparisons{{
    {"==", Op::kEq},
    {"eq", Op::kEq},
    {"equalto", Op::kEq},
    {"!=", Op::kNe},
    {"ne", Op::kNe},
    {">", Op::kGt},
    {"gt", Op::kGt},
    {"greaterthan", Op::kGt},
    {">=", Op::kGe},
    {"ge", Op::kGe},
    {"<", Op::kLt},
    {"lt", Op::kLt},
    {"lessthan", Op::kLt},
    {"<=", Op::kLe},
    {"le", Op::kLe},
    {"in", Op::kIn},
    {"", Op::kEq},
}};

using Check = bool (*)(const Value&);

bool is_iterable(const Value& v) {
  return !v.is_number() && !v.is(Kind::kNone) && !v.is(Kind::kMacro) && !v.is(Kind::kFunction) &&
         !v.is(Kind::kMethod) && !v.is(Kind::kNamespace) && !v.is(Kind::kCycler) &&
         !v.is(Kind::kJoiner);
}

bool is_sequence(const Value& v) {
  return v.is(Kind::kUndefined) || v.is(Kind::kString) || v.is(Kind::kList) || v.is(Kind::kTuple) ||
         v.is(Kind::kDict) || v.is(Kind::kRange);
}

bool is_callable(const Value& v) {
  return v.is(Kind::kUndefined) || v.is(Kind::kMacro) || v.is(Kind::kFunction) ||
         v.is(Kind::kMethod) || v.is(Kind::kLoop) || v.is(Kind::kJoiner);
}

constexpr std::array<std::pair<std::string_view, Check>, 15> kChecks{{
    {"defined", [](const Value& v) { return !v.is(Kind::kUndefined); }},
    {"undefined", [](const Value& v) { return v.is(Kind::kUndefined); }},
    {"none", [](const Value& v) { return v.is(Kind::kNone); }},
    {"boolean", [](const Value& v) { return v.is(Kind::kBool); }},
    {"true", [](const Value& v) { return v.is(Kind::kBool) && v.boolean; }},
    {"false", [](const Value& v) { return v.is(Kind::kBool) && !v.boolean; }},
    {"integer", [](const Value& v) { return v.is(Kind::kInt); }},
    {"float", [](const Value& v) { return v.is(Kind::kFloat); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"string", [](const Value& v) { return v.is(Kind::kString); }},
    {"mapping", [](const Value& v) { return v.is(Kind::kDict); }},
    {"iterable", is_iterable},
    {"sequence", is_sequence},
    {"callable", is_callable},
    {"escaped", [](const Value& v) { return v.is(Kind::kString) && v.text->markup; }},
}};

constexpr std::array<std::string_view, 8> kOthers{"odd",   "even",   "divisibleby", "lower",
                                                  "upper", "sameas", "filter",      "test"};

// Identity. Python shares small integers and constants; larger numbers and texts would depend on
// its memory.
bool same(Context& context, const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.boolean == b.boolean;
    case Kind::kInt:
      if (a.integer != b.integer) return false;
      if (a.integer >= -5 && a.integer <= 256) return true;
      context.fail("sameas of large integers is not supported");
    case Kind::kFloat:
    case Kind::kString:
      context.fail(fmt::format("sameas of {} is not supported", type_name(a)));
    default:
      return a.dict == b.dict;
  }
}

bool is_remainder(Context& context, const Value& value, const Value& divisor, std::int64_t rest) {
  return equal(context, arithmetic(context, Op::kMod, value, divisor), of(rest));
}

}  // namespace

Support test_support(std::string_view name) noexcept {
  const auto is_named = [&](const auto& row) { return row.first == name; };
  const bool known = std::any_of(kComparisons.begin(), kComparisons.end(), is_named) ||
                     std::any_of(kChecks.begin(), kChecks.end(), is_named) ||
                     std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
  return known && !name.empty() ? Support::kYes : Support::kUnknown;
}

bool call_test(Context& context, std::string_view name, const Value& value, const Args& args) {
  for (const auto& [known, check] : kChecks) {
    if (known != name) continue;
    bind(context, name, args, {"value"});
    if (!args.positional.empty())
      context.fail(fmt::format("the test '{}' takes no argument", name));
    return check(value);
  }
  for (const auto& [known, op] : kComparisons) {
    if (known == name)
      return compare(context, op, value, *bind(context, name, args, {"other"}, 1)[0]);
  }
  if (name == "divisibleby")
    return is_remainder(context, value, *bind(context, name, args, {"num"}, 1)[0], 0);
  if (name == "sameas") return same(context, value, *bind(context, name, args, {"other"}, 1)[0]);
  if (!args.positional.empty() || !args.named.empty())
    context.fail(fmt::format("the test '{}' takes no argument", name));
  const std::int64_t two = 2;
  if (name == "odd") return is_remainder(context, value, of(two), 1);
  if (name == "even") return is_remainder(context, value, of(two), 0);
  if (name == "filter" || name == "test") {
    // A name is looked up in a dict: what cannot be a key is an error, what is no text is not
    // there.
    if (!value.is(Kind::kString)) {
      hash(context, value);
      return false;
    }
    const std::string_view wanted = value.text->view();
    const Support support = name == "filter" ? filter_support(wanted) : test_support(wanted);
    return support != Support::kUnknown;
  }
  const Value text = to_text(context, value);
  return name == "upper" ? is_upper(text.text->view()) : is_lower(text.text->view());
}

}  // namespace cyb::tmpl
