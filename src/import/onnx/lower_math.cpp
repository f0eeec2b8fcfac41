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

void lower_same(Call& c) {
  const auto at = std::ranges::find(kSame, c.op(), &Pair::onnx);
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < c.n_in(); ++k) inputs.push_back(c.in(k));
  c.out(0, c.emit(at->ours, std::move(inputs)));
}

void lower_compare(Call& c) {
  constexpr std::array kKinds = {std::string_view("Equal"),   std::string_view("NotEqual"),
                                 std::string_view("Less"),    std::string_view("LessOrEqual"),
                                 std::string_view("Greater"), std::string_view("GreaterOrEqual")};
  const auto kind = std::ranges::find(kKinds, c.op()) - kKinds.begin();
  c.out(0, c.emit("Compare", {{"kind", std::int64_t{kind}}}, {c.in(0), c.in(1)}));
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

void lower_bit_shift(Call& c) {
  const std::string direction = c.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.refuse("a direction but LEFT and RIGHT");
  c.out(0, c.emit("BitShift", {{"left", std::int64_t{direction == "LEFT"}}}, {c.in(0), c.in(1)}));
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
                                       OpRow{"Add", 7, lower_same},
                                       OpRow{"And", 7, lower_same},
                                       OpRow{"Asin", 7, lower_same},
                                       OpRow{"Asinh", 9, lower_same},
                                       OpRow{"Atan", 7, lower_same},
                                       OpRow{"Atanh", 9, lower_same},
                                       OpRow{"BitCast", 7, lower_bit_cast},
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
                                       OpRow{"Div", 7, lower_same},
                                       OpRow{"Equal", 7, lower_compare},
                                       OpRow{"Erf", 9, lower_same},
                                       OpRow{"Exp", 6, lower_same},
                                       OpRow{"Floor", 6, lower_same},
                                       OpRow{"Greater", 7, lower_compare},
                                       OpRow{"GreaterOrEqual", 12, lower_compare},
                                       OpRow{"IsInf", 10, lower_is_inf},
                                       OpRow{"IsNaN", 9, lower_same},
                                       OpRow{"Less", 7, lower_compare},
                                       OpRow{"LessOrEqual", 12, lower_compare},
                                       OpRow{"Log", 6, lower_same},
                                       OpRow{"Max", 6, lower_extreme},
                                       OpRow{"Mean", 6, lower_sum},
                                       OpRow{"Min", 6, lower_extreme},
                                       OpRow{"Mod", 10, lower_mod},
                                       OpRow{"Mul", 7, lower_same},
                                       OpRow{"Neg", 6, lower_same},
                                       OpRow{"Not", 1, lower_same},
                                       OpRow{"Or", 7, lower_same},
                                       OpRow{"Pow", 7, lower_same},
                                       OpRow{"Reciprocal", 6, lower_same},
                                       OpRow{"Round", 11, lower_same},
                                       OpRow{"Sign", 9, lower_same},
                                       OpRow{"Sin", 7, lower_same},
                                       OpRow{"Sinh", 9, lower_same},
                                       OpRow{"Sqrt", 6, lower_same},
                                       OpRow{"Sub", 7, lower_same},
                                       OpRow{"Sum", 6, lower_sum},
                                       OpRow{"Tan", 7, lower_same},
                                       OpRow{"Where", 9, lower_where},
                                       OpRow{"Xor", 7, lower_same}};
  return kRows;
}

}  // namespace cyb::onnx
