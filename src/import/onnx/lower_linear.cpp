// Matrix products. A product with a constant matrix becomes Matmul with that matrix stored as
// [out, in], which is what backends pack.
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16;
}

/// x [..., K] times a constant W [K, N].
bool is_weight(Call& c, Val x, Val w) {
  return c.known(w) != nullptr && c.known(x) == nullptr && c.rank(w) == 2 && is_float(c.dtype(w)) &&
         c.dtype(x) == c.dtype(w) && c.rank(x) >= 1 && c.dim(w, 0) != Dim(0);
}

void lower_matmul(Call& c) {
  const Val a = c.in(0), b = c.in(1);
  if (is_weight(c, a, b)) return c.out(0, c.emit("Matmul", {a, c.swapped(b)}));
  c.out(0, c.emit("BatchMatmul", {a, b}));
}

void lower_gemm(Call& c) {
  c.ignore({"broadcast"});  // before opset 7; the shapes say it
  const Val a = c.in(0), b = c.in(1), bias = c.in(2);
  const double alpha = c.f("alpha", 1), beta = c.f("beta", 1);
  const bool trans_a = c.i("transA", 0) != 0, trans_b = c.i("transB", 0) != 0;
  const bool plain = alpha == 1 && beta == 1 && !trans_a && c.known(b) != nullptr &&
                     c.known(a) == nullptr && c.rank(a) == 2 && c.rank(b) == 2 &&
                     is_float(c.dtype(b)) && c.dtype(a) == c.dtype(b);
  if (plain && c.dim(b, trans_b ? 1 : 0) != Dim(0)) {
    const Val w = trans_b ? b : c.swapped(b);
    const bool row_bias = bias != 0 && c.rank(bias) == 1 && c.dim(bias, 0) == c.dim(w, 0);
    if (row_bias) return c.out(0, c.emit("Matmul", {a, w, bias}));
    const Val product = c.emit("Matmul", {a, w});
    return c.out(0, bias == 0 ? product : c.emit("Add", {product, bias}));
  }
  c.out(0, c.emit("Gemm",
                  {{"alpha", static_cast<float>(alpha)},
                   {"beta", static_cast<float>(beta)},
                   {"trans_a", std::int64_t{trans_a}},
                   {"trans_b", std::int64_t{trans_b}}},
                  {a, b, bias}));
}

void lower_einsum(Call& c) {
  const std::string equation = c.s("equation", "");
  std::vector<std::byte> bytes;
  for (const char ch : equation) bytes.push_back(static_cast<std::byte>(ch));
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < c.n_in(); ++k) inputs.push_back(c.in(k));
  c.out(0, c.emit("Einsum", {{"equation", std::move(bytes)}}, std::move(inputs)));
}

}  // namespace

std::span<const OpRow> rows_linear() noexcept {
  static constexpr std::array kRows = {OpRow{"Einsum", 12, lower_einsum},
                                       OpRow{"Gemm", 6, lower_gemm},
                                       OpRow{"MatMul", 1, lower_matmul}};
  return kRows;
}

}  // namespace cyb::onnx
