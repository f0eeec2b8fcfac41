// Activations, softmax and its kin.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

void lower_plain(Call& c) {
  c.out(0, c.emit(c.op(), {c.in(0)}));
}

/// One float attribute `name` with the default of the schema, under our name.
template <std::size_t N>
struct Text {
  constexpr Text(const char (&text)[N]) { std::copy_n(text, N, data); }
  char data[N];
};

template <Text Ours, Text Theirs, int Thousandths>
void lower_one(Call& c) {
  const double value = c.f(Theirs.data, Thousandths / 1000.0);
  c.out(0, c.emit(c.op(), {{Ours.data, static_cast<float>(value)}}, {c.in(0)}));
}

void lower_selu(Call& c) {
  const double alpha = c.f("alpha", 1.67326319217681884765625);
  const double gamma = c.f("gamma", 1.05070102214813232421875);
  c.out(0,
        c.emit("Selu", {{"alpha", static_cast<float>(alpha)}, {"gamma", static_cast<float>(gamma)}},
               {c.in(0)}));
}

void lower_hard_sigmoid(Call& c) {
  const double alpha = c.f("alpha", 0.2F), beta = c.f("beta", 0.5F);
  c.out(0, c.emit("HardSigmoid",
                  {{"alpha", static_cast<float>(alpha)}, {"beta", static_cast<float>(beta)}},
                  {c.in(0)}));
}

void lower_shrink(Call& c) {
  const double lambd = c.f("lambd", 0.5F), bias = c.f("bias", 0);
  c.out(0,
        c.emit("Shrink", {{"lambd", static_cast<float>(lambd)}, {"bias", static_cast<float>(bias)}},
               {c.in(0)}));
}

void lower_swiglu(Call& c) {
  const auto alpha = static_cast<float>(c.f("alpha", 1));
  c.out(0, c.emit("Mul", {c.emit("Swish", {{"alpha", alpha}}, {c.in(0)}), c.in(1)}));
}

void lower_gelu(Call& c) {
  const std::string approximate = c.s("approximate", "none");
  if (approximate != "none" && approximate != "tanh") c.refuse("approximate " + approximate);
  c.out(0, c.emit("Gelu", {{"mode", std::int64_t{approximate == "tanh"}}}, {c.in(0)}));
}

/// The slope broadcasts from the right; ours of rank 1 is per channel, so that it gets all ranks.
void lower_prelu(Call& c) {
  const Val x = c.in(0);
  Val slope = c.in(1);
  const std::size_t rank = c.rank(x), own = c.rank(slope);
  const bool by_channel = c.opset() < 7 && own == 1;
  if (!by_channel && own <= 1 && rank > 1 && c.dim(slope, 0) != Dim(1)) {
    std::vector<std::int64_t> shape(rank, 1);
    if (own == 1) shape[rank - 1] = -1;
    slope = c.reshape(slope, std::move(shape));
  } else if (own == 0) {
    slope = c.reshape(slope, {1});
  }
  c.out(0, c.emit("PRelu", {x, slope}));
}

/// Softmax as its formula: a row of -Inf gives NaN, which the graph asks for, and is no error.
Val softmax_with_nan(Call& c, Val x, std::int64_t dim) {
  const auto reduce = [&](Val v, std::int64_t kind) {
    return c.emit("Reduce", {{"kind", kind}, {"keep", std::int64_t{1}}},
                  {v, c.int_list(std::span(&dim, 1))});
  };
  const Val e = c.emit("Exp", {c.emit("Sub", {x, reduce(x, 2)})});
  return c.emit("Div", {e, reduce(e, 0)});
}

/// Before opset 13 the dimensions from `axis` on are one row.
void lower_softmax(Call& c) {
  const Val x = c.in(0);
  const std::size_t rank = c.rank(x);
  const bool rows = c.opset() < 13;
  const std::size_t axis = c.axis(c.i("axis", rows ? 1 : -1), rank);
  const auto run = [&](Val v, std::size_t dim) {
    const bool nan_wanted = c.op() == "Softmax" && (c.nan_tested() || c.dtype(v) == DType::kF64);
    if (nan_wanted) return softmax_with_nan(c, v, static_cast<std::int64_t>(dim));
    return c.emit(c.op(), {{"dim", static_cast<std::int64_t>(dim)}}, {v});
  };
  if (!rows || axis + 1 == rank) return c.out(0, run(x, axis));
  const Val flat = c.emit("Flatten", {{"axis", static_cast<std::int64_t>(axis)}}, {x});
  c.out(0, c.reshape_like(run(flat, 1), x));
}

}  // namespace

std::span<const OpRow> rows_activation() noexcept {
  static constexpr std::array kRows = {
      OpRow{"Celu", 12, lower_one<"alpha", "alpha", 1000>},
      OpRow{"Elu", 6, lower_one<"alpha", "alpha", 1000>},
      OpRow{"Gelu", 20, lower_gelu},
      OpRow{"HardSigmoid", 6, lower_hard_sigmoid},
      OpRow{"HardSwish", 14, lower_plain},
      OpRow{"Hardmax", 1, lower_softmax},
      OpRow{"LeakyRelu", 6, lower_one<"slope", "alpha", 10>},
      OpRow{"LogSoftmax", 1, lower_softmax},
      OpRow{"Mish", 18, lower_plain},
      OpRow{"PRelu", 6, lower_prelu},
      OpRow{"Relu", 6, lower_plain},
      OpRow{"Selu", 6, lower_selu},
      OpRow{"Shrink", 9, lower_shrink},
      OpRow{"Sigmoid", 6, lower_plain},
      OpRow{"Softmax", 1, lower_softmax},
      OpRow{"Softplus", 1, lower_plain},
      OpRow{"Softsign", 1, lower_plain},
      OpRow{"SwiGLU", 28, lower_swiglu},
      OpRow{"Swish", 24, lower_one<"alpha", "alpha", 1000>},
      OpRow{"Tanh", 6, lower_plain},
      OpRow{"ThresholdedRelu", 10, lower_one<"alpha", "alpha", 1000>}};
  return kRows;
}

}  // namespace cyb::onnx
