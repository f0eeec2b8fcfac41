// Quantisation and integer products.
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

void lower_quantize(Call& c) {
  c.ignore({"saturate"});  // of 8-bit floats, which are refused as a type
  const Val zero = c.in(2);
  const DType named = c.type("output_dtype", DType::kU8);
  const DType dtype = zero != 0 ? c.dtype(zero) : named;
  const DType precision = c.type("precision", DType::kF32);
  if (precision != DType::kF32) c.refuse("a precision but FLOAT");
  c.out(0, c.emit("QuantizeLinear",
                  {{"axis", c.i("axis", 1)},
                   {"block", c.i("block_size", 0)},
                   {"dtype", static_cast<std::int64_t>(dtype)}},
                  {c.in(0), c.in(1), zero}));
}

void lower_dequantize(Call& c) {
  const Val scale = c.in(1);
  const DType dtype = c.type("output_dtype", c.dtype(scale));
  const Val y =
      c.emit("DequantizeLinear", {{"axis", c.i("axis", 1)}, {"block", c.i("block_size", 0)}},
             {c.in(0), scale, c.in(2)});
  c.out(0, c.cast(y, dtype));
}

void lower_dynamic_quantize(Call& c) {
  const auto out = c.emit_all("DynamicQuantizeLinear", {}, {c.in(0)});
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

void lower_matmul_integer(Call& c) {
  c.out(0, c.emit("MatmulInteger", {c.in(0), c.in(1), c.in(2), c.in(3)}));
}

void lower_qlinear_matmul(Call& c) {
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < 8; ++k) inputs.push_back(c.in(k));
  c.out(0, c.emit("QLinearMatmul", std::move(inputs)));
}

}  // namespace

std::span<const OpRow> rows_quant() noexcept {
  static constexpr std::array kRows = {OpRow{"DequantizeLinear", 10, lower_dequantize},
                                       OpRow{"DynamicQuantizeLinear", 11, lower_dynamic_quantize},
                                       OpRow{"MatMulInteger", 10, lower_matmul_integer},
                                       OpRow{"QLinearMatMul", 10, lower_qlinear_matmul},
                                       OpRow{"QuantizeLinear", 10, lower_quantize}};
  return kRows;
}

}  // namespace cyb::onnx
