// Arithmetic and comparison of values. Integers are 64 bits; what would not fit is an error.
#include <fmt/format.h>

#include <cmath>

#include "base/limits.hpp"
#include "text/template/interpreter.hpp"

namespace cyb::tmpl {
namespace {

std::string_view op_text(Op op) noexcept {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSub:
      return "-";
    case Op::kMul:
      return "*";
    case Op::kDiv:
      return "/";
    case Op::kFloorDiv:
      return "//";
    default:
      return "%";
  }
}

[[noreturn]] void unsupported(Context& context, std::string_view op, const Value& a,
                              const Value& b) {
  for (const Value* v : {&a, &b}) {
    if (v->is(Kind::kUndefined)) context.fail(std::string(v->text->view()));
  }
  context.fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(a),
                           type_name(b)));
}

std::int64_t floor_div(Context& context, std::int64_t a, std::int64_t b) {
  if (b == 0) context.fail("integer division or modulo by zero");
  if (b == -1) {
    if (a == INT64_MIN) context.fail("an integer is out of range");
    return -a;
  }
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::int64_t floor_mod(Context& context, std::int64_t a, std::int64_t b) {
  if (b == 0) context.fail("integer division or modulo by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integers(Context& context, Op op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case Op::kAdd:
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case Op::kSub:
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case Op::kMul:
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case Op::kFloorDiv:
      return of(floor_div(context, a, b));
    case Op::kMod:
      return of(floor_mod(context, a, b));
    default:
      if (b == 0) context.fail("division by zero");
      return of(static_cast<double>(a) / static_cast<double>(b));
  }
  if (overflow) context.fail("an integer is out of range");
  return of(out);
}

Value floats(Context& context, Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return of(a + b);
    case Op::kSub:
      return of(a - b);
    case Op::kMul:
      return of(a * b);
    default:
      break;
  }
  if (b == 0.0)
    context.fail(op == Op::kDiv ? "float division by zero" : "float floor division by zero");
  if (op == Op::kDiv) return of(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0.0 && (rest < 0) != (b < 0)) rest += b;
  if (op == Op::kMod) return of(rest == 0.0 ? std::copysign(0.0, b) : rest);
  const double quotient = (a - rest) / b;
  const double whole = std::floor(quotient);
  return of(quotient - whole > 0.5 ? whole + 1.0 : whole);
}

Value repeated(Context& context, const Value& value, std::int64_t count) {
  const bool empty = value.is(Kind::kString) ? value.text->size == 0 : value.list->size == 0;
  const std::uint64_t n = count < 0 || empty ? 0 : static_cast<std::uint64_t>(count);
  if (value.is(Kind::kString)) {
    if (n != 0 && value.text->size > kMaxTemplateOutput / n) context.fail("a string is too long");
    Builder out;
    for (std::uint64_t i = 0; i < n; ++i) out.add(*value.text);
    return out.finish(context);
  }
  if (n != 0 && value.list->size > kMaxTemplateSteps / n) context.fail("a list is too long");
  std::vector<Value> items;
  for (std::uint64_t i = 0; i < n; ++i)
    items.insert(items.end(), value.list->items, value.list->items + value.list->size);
  return list_of(context, items, value.kind);
}

Value joined(Context& context, const Value& a, const Value& b) {
  if (a.is(Kind::kString)) {
    // Markup escapes what is added to it, on either side.
    const bool markup = a.text->markup || b.text->markup;
    const Value left = markup ? escape_html(context, a) : a;
    const Value right = markup ? escape_html(context, b) : b;
    Builder out;
    out.add(*left.text);
    out.add(*right.text);
    Value made = out.finish(context);
    if (markup) {
      Str str = *made.text;
      str.markup = true;
      made = of(context.make(str));
    }
    return made;
  }
  context.step((a.list->size + b.list->size) / 16);
  std::vector<Value> items(a.list->items, a.list->items + a.list->size);
  items.insert(items.end(), b.list->items, b.list->items + b.list->size);
  return list_of(context, items, a.kind);
}

bool is_sequence(const Value& value) noexcept {
  return value.is(Kind::kString) || value.is(Kind::kList) || value.is(Kind::kTuple);
}

bool contains(Context& context, const Value& holder, const Value& item) {
  switch (holder.kind) {
    case Kind::kString:
      if (!item.is(Kind::kString)) {
        context.fail(
            fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
      }
      return holder.text->view().find(item.text->view()) != std::string_view::npos;
    case Kind::kDict:
      return holder.dict->find(context, item) != nullptr;
    case Kind::kUndefined:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
    case Kind::kRange: {
      for (const Value& other : iterate(context, holder)) {
        if (equal(context, other, item)) return true;
      }
      return false;
    }
    case Kind::kIterator:
      // Walks up to the item, and uses up what it passed.
      while (holder.iterator->next < holder.iterator->list->size) {
        if (equal(context, holder.iterator->list->items[holder.iterator->next++], item))
          return true;
      }
      check_end(*holder.iterator);
      return false;
    default:
      context.fail(fmt::format("argument of type '{}' is not iterable", type_name(holder)));
  }
}

}  // namespace

Value negate(Context& context, const Value& value) {
  if (value.is(Kind::kFloat)) return of(-value.number);
  if (value.is_integral()) return integers(context, Op::kSub, 0, value.as_int());
  if (value.is(Kind::kUndefined)) context.fail(std::string(value.text->view()));
  context.fail(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

Value arithmetic(Context& context, Op op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return integers(context, op, a.as_int(), b.as_int());
    return floats(context, op, a.as_double(), b.as_double());
  }
  if (op == Op::kAdd && a.kind == b.kind && is_sequence(a)) return joined(context, a, b);
  if (op == Op::kAdd && a.is(Kind::kString) && !b.is(Kind::kUndefined)) {
    context.fail(fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
  }
  if (op == Op::kMul && is_sequence(a) && b.is_integral()) return repeated(context, a, b.as_int());
  if (op == Op::kMul && a.is_integral() && is_sequence(b)) return repeated(context, b, a.as_int());
  if (op == Op::kMod && a.is(Kind::kString)) return format_percent(context, *a.text, b);
  unsupported(context, op_text(op), a, b);
}

Value add(Context& context, const Value& a, const Value& b) {
  return arithmetic(context, Op::kAdd, a, b);
}

Value power(Context& context, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) unsupported(context, "** or pow()", a, b);
  if (a.is_integral() && b.is_integral() && b.as_int() >= 0) {
    std::int64_t out = 1, base = a.as_int();
    for (std::int64_t n = b.as_int(); n > 0; n >>= 1) {
      if ((n & 1) != 0 && __builtin_mul_overflow(out, base, &out))
        context.fail("an integer is out of range");
      if (n > 1 && __builtin_mul_overflow(base, base, &base))
        context.fail("an integer is out of range");
    }
    return of(out);
  }
  const double x = a.as_double(), y = b.as_double();
  if (x == 0.0 && y < 0) context.fail("0.0 cannot be raised to a negative power");
  if (x < 0 && y != std::floor(y)) context.fail("complex numbers are not supported");
  const double out = std::pow(x, y);
  if (std::isinf(out) && std::isfinite(x) && std::isfinite(y))
    context.fail("a number is out of range");
  return of(out);
}

bool compare(Context& context, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEq:
      return equal(context, a, b);
    case Op::kNe:
      return !equal(context, a, b);
    case Op::kLt:
      return order(context, a, b) < 0;
    case Op::kLe:
      return order(context, a, b) <= 0;
    case Op::kGt:
      return order(context, a, b) > 0;
    case Op::kGe:
      return order(context, a, b) >= 0;
    case Op::kIn:
      return contains(context, b, a);
    default:
      return !contains(context, b, a);
  }
}

}  // namespace cyb::tmpl
