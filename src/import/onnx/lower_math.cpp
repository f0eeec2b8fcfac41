// Elementwise arithmetic, functions of one input, comparisons and logic.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

struct Pair {
  std::string_view onnx, ours;
};

// The same inputs in the same order, no attributes.
constexpr std::array kSame = {Pair{"Abs", "Abs"},
                              Pair{"Acos", "Acos"},
                              Pair{"Acosh", "Acosh"},
                              Pair{"Add", "Add"},
                              Pair{"And", "And"},
                              Pair{"Asin", "Asin"},
                              Pair{"Asinh", "Asinh"},
                              Pair{"Atan", "Atan"},
                              Pair{"Atanh", "Atanh"},
                              Pair{"BitwiseAnd", "BitwiseAnd"},
                              Pair{"BitwiseNot", "BitwiseNot"},
                              Pair{"BitwiseOr", "BitwiseOr"},
                              Pair{"BitwiseXor", "BitwiseXor"},
                              Pair{"Ceil", "Ceil"},
                              Pair{"Cos", "Cos"},
                              Pair{"Cosh", "Cosh"},
                              Pair{"Det", "Det"},
                              Pair{"Div", "Div"},
                              Pair{"Erf", "Erf"},
                              Pair{"Exp", "Exp"},
                              Pair{"Floor", "Floor"},
                              Pair{"IsNaN", "IsNan"},
                              Pair{"Log", "Log"},
                              Pair{"Mul", "Mul"},
                              Pair{"Neg", "Neg"},
                              Pair{"Not", "Not"},
                              Pair{"Or", "Or"},
                              Pair{"Pow", "Pow"},
                              Pair{"Reciprocal", "Reciprocal"},
                              Pair{"Round", "Round"},
                              Pair{"Sign", "Sign"},
                              Pair{"Sin", "Sin"},
                              Pair{"Sinh", "Sinh"},
                              Pair{"Sqrt", "Sqrt"},
                              Pair{"Sub", "Sub"},
                              Pair{"Tan", "Tan"},
                              Pair{"Xor", "Xor"}};

/// The second operand before opset 7: broadcast only if it says so, from dimension `axis` on.
Val second(Call& c) {
  const Val a = c.in(0), b = c.in(1);
  if (c.opset() >= 7 || b == 0) return b;
  const std::int64_t broadcast = c.i("broadcast", 0);
  const bool placed = c.has_attr("axis");
  const std::size_t rank = c.rank(a), own = c.rank(b);
  const std::size_t axis = placed ? c.axis(c.i("axis", 0), rank) : 0;
  if (broadcast == 0 || !placed || axis + own >= rank || own == 0) return b;
  std::vector<std::int64_t> shape(own + rank - axis - own, 1);
  std::fill_n(shape.begin(), own, 0);
  return c.reshape(b, std::move(shape));
}

void lower_same(Call& c) {
  const auto at = std::ranges::find(kSame, c.op(), &Pair::onnx);
  c.out(0, c.emit(at->ours, {c.in(0), second(c)}));
}

void lower_compare(Call& c) {
  constexpr std::array kKinds = {std::string_view("Equal"),   std::string_view("NotEqual"),
                                 std::string_view("Less"),    std::string_view("LessOrEqual"),
                                 std::string_view("Greater"), std::string_view("GreaterOrEqual")};
  const auto kind = std::ranges::find(kKinds, c.op()) - kKinds.begin();
  c.out(0, c.emit("Compare", {{"kind", std::int64_t{kind}}}, {c.in(0), second(c)}));
}

/// Max and Min of any number of inputs.
void lower_extreme(Call& c) {
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < c.n_in(); ++k) inputs.push_back(c.in(k));
  c.out(0, inputs.size() == 1 ? inputs[0] : c.emit(c.op(), std::move(inputs)));
}

/// Sum and Mean of any number of inputs, left to right.
void lower_sum(Call& c) {
  Val sum = c.in(0);
  for (std::size_t k = 1; k < c.n_in(); ++k) sum = c.emit("Add", {sum, c.in(k)});
  if (c.op() == "Mean" && c.n_in() > 1)
    sum = c.emit("Div", {sum, c.scalar(static_cast<double>(c.n_in()), c.dtype(sum))});
  c.out(0, sum);
}

void lower_mod(Call& c) {
  c.out(0, c.emit("Mod", {{"fmod", c.i("fmod", 0)}}, {c.in(0), c.in(1)}));
}

/// The unsigned type of the same width; the type itself where it is unsigned.
DType unsigned_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return DType::kU8;
    case DType::kI16:
      return DType::kUint16;
    case DType::kI32:
      return DType::kUint32;
    case DType::kI64:
      return DType::kUint64;
    default:
      return dtype;
  }
}

Val bits_as(Call& c, Val value, DType dtype) {
  if (c.dtype(value) == dtype) return value;
  return c.emit("BitCast", {{"dtype", static_cast<std::int64_t>(dtype)}}, {value});
}

/// A signed shift is one of the bits: ours gives 0 from the width on, and a negative amount is a
/// large one. To the right a negative number is shifted as its complement, which fills with ones.
void lower_bit_shift(Call& c) {
  const std::string direction = c.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.refuse("a direction but LEFT and RIGHT");
  const bool left = direction == "LEFT";
  const DType dtype = c.dtype(c.in(0)), plain = unsigned_of(dtype);
  const bool complement = dtype != plain && !left;
  Val x = c.in(0), negative = 0;
  if (complement) {
    negative = c.emit("Compare", {{"kind", std::int64_t{2}}}, {x, c.scalar(0, dtype)});
    x = c.emit("Where", {negative, c.emit("BitwiseNot", {x}), x});
  }
  const Val shifted = c.emit("BitShift", {{"left", std::int64_t{left}}},
                             {bits_as(c, x, plain), bits_as(c, c.in(1), plain)});
  const Val y = bits_as(c, shifted, dtype);
  c.out(0, complement ? c.emit("Where", {negative, c.emit("BitwiseNot", {y}), y}) : y);
}

void lower_clip(Call& c) {
  Val low = c.in(1), high = c.in(2);
  const DType dtype = c.dtype(c.in(0));
  if (c.opset() < 11) {
    if (c.has_attr("min")) low = c.scalar(c.f("min", 0), dtype);
    if (c.has_attr("max")) high = c.scalar(c.f("max", 0), dtype);
  }
  c.out(0, c.emit("Clip", {c.in(0), low, high}));
}

void lower_cast(Call& c) {
  c.ignore({"saturate", "round_mode"});  // of 8-bit floats, which are refused as a type
  c.out(0, c.cast(c.in(0), c.type("to", DType::kF32)));
}

void lower_cast_like(Call& c) {
  c.ignore({"saturate", "round_mode"});
  c.out(0, c.cast(c.in(0), c.dtype(c.in(1))));
}

void lower_bit_cast(Call& c) {
  const DType to = c.type("to", DType::kF32);
  c.out(0, c.emit("BitCast", {{"dtype", static_cast<std::int64_t>(to)}}, {c.in(0)}));
}

void lower_is_inf(Call& c) {
  c.out(0,
        c.emit("IsInf",
               {{"positive", c.i("detect_positive", 1)}, {"negative", c.i("detect_negative", 1)}},
               {c.in(0)}));
}

void lower_where(Call& c) {
  c.out(0, c.emit("Where", {c.in(0), c.in(1), c.in(2)}));
}

}  // namespace

std::span<const OpRow> rows_math() noexcept {
  static constexpr std::array kRows = {OpRow{"Abs", 6, lower_same},
                                       OpRow{"Acos", 7, lower_same},
                                       OpRow{"Acosh", 9, lower_same},
                                       OpRow{"Add", 1, lower_same},
                                       OpRow{"And", 1, lower_same},
                                       OpRow{"Asin", 7, lower_same},
                                       OpRow{"Asinh", 9, lower_same},
                                       OpRow{"Atan", 7, lower_same},
                                       OpRow{"Atanh", 9, lower_same},
                                       OpRow{"BitCast", 26, lower_bit_cast},
                                       OpRow{"BitShift", 11, lower_bit_shift},
                                       OpRow{"BitwiseAnd", 18, lower_same},
                                       OpRow{"BitwiseNot", 18, lower_same},
                                       OpRow{"BitwiseOr", 18, lower_same},
                                       OpRow{"BitwiseXor", 18, lower_same},
                                       OpRow{"Cast", 6, lower_cast},
                                       OpRow{"CastLike", 15, lower_cast_like},
                                       OpRow{"Ceil", 6, lower_same},
                                       OpRow{"Clip", 6, lower_clip},
                                       OpRow{"Cos", 7, lower_same},
                                       OpRow{"Cosh", 9, lower_same},
                                       OpRow{"Det", 11, lower_same},
                                       OpRow{"Div", 1, lower_same},
                                       OpRow{"Equal", 1, lower_compare},
                                       OpRow{"Erf", 9, lower_same},
                                       OpRow{"Exp", 6, lower_same},
                                       OpRow{"Floor", 6, lower_same},
                                       OpRow{"Greater", 1, lower_compare},
                                       OpRow{"GreaterOrEqual", 12, lower_compare},
                                       OpRow{"IsInf", 10, lower_is_inf},
                                       OpRow{"IsNaN", 9, lower_same},
                                       OpRow{"Less", 1, lower_compare},
                                       OpRow{"LessOrEqual", 12, lower_compare},
                                       OpRow{"Log", 6, lower_same},
                                       OpRow{"Max", 6, lower_extreme},
                                       OpRow{"Mean", 6, lower_sum},
                                       OpRow{"Min", 6, lower_extreme},
                                       OpRow{"Mod", 10, lower_mod},
                                       OpRow{"Mul", 1, lower_same},
                                       OpRow{"Neg", 6, lower_same},
                                       OpRow{"Not", 1, lower_same},
                                       OpRow{"Or", 1, lower_same},
                                       OpRow{"Pow", 1, lower_same},
                                       OpRow{"Reciprocal", 6, lower_same},
                                       OpRow{"Round", 11, lower_same},
                                       OpRow{"Sign", 9, lower_same},
                                       OpRow{"Sin", 7, lower_same},
                                       OpRow{"Sinh", 9, lower_same},
                                       OpRow{"Sqrt", 6, lower_same},
                                       OpRow{"Sub", 1, lower_same},
                                       OpRow{"Sum", 6, lower_sum},
                                       OpRow{"Tan", 7, lower_same},
                                       OpRow{"Where", 9, lower_where},
                                       OpRow{"Xor", 1, lower_same}};
  return kRows;
}

}  // namespace cyb::onnx
