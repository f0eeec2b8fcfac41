// Operators of the domain com.microsoft that exported models carry, as compositions of ours.
// Formulas: onnxruntime's ContribOperators.md.
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

Val added(Call& c, Val x, Val bias) {
  return bias == 0 ? x : c.emit("Add", {x, bias});
}

Val gelu(Call& c, Val x, std::int64_t mode) {
  return c.emit("Gelu", {{"mode", mode}}, {x});
}

void lower_gelu(Call& c) {
  c.out(0, gelu(c, added(c, c.in(0), c.in(1)), c.op() == "FastGelu" ? 1 : 0));
}

void lower_quick_gelu(Call& c) {
  const auto alpha = static_cast<float>(c.f("alpha", 1.702F));
  c.out(0, c.emit("Swish", {{"alpha", alpha}}, {c.in(0)}));
}

void lower_fused_matmul(Call& c) {
  if (c.i("transBatchA", 0) != 0 || c.i("transBatchB", 0) != 0)
    c.refuse("transBatchA, transBatchB");
  const bool trans_a = c.i("transA", 0) != 0, trans_b = c.i("transB", 0) != 0;
  const double alpha = c.f("alpha", 1);
  const Val a = trans_a ? c.swapped(c.in(0)) : c.in(0);
  const Val b = c.in(1);
  const bool weight =
      c.known(b) != nullptr && c.rank(b) == 2 && c.known(a) == nullptr && c.dtype(a) == c.dtype(b);
  Val y = 0;
  if (weight) {
    y = c.emit("Matmul", {a, trans_b ? b : c.swapped(b)});
  } else {
    const Val right =
        trans_b ? c.emit("Transpose", {{"perm", std::vector<std::int64_t>{}}}, {b}) : b;
    y = c.emit("BatchMatmul", {a, right});
  }
  c.out(0, alpha == 1 ? y : c.emit("Mul", {y, c.scalar(alpha, c.dtype(y))}));
}

NamedAttr eps(Call& c, double fallback) {
  return {"eps", static_cast<float>(c.f("epsilon", fallback))};
}

/// 1 / sqrt(mean(x²) + eps) is asked for by training only.
void lower_simplified_norm(Call& c) {
  c.ignore({"stash_type"});
  if (c.i("axis", -1) != -1) c.refuse("an axis but the last");
  c.out(0, c.emit("RmsNorm", {eps(c, 1e-5F)}, {c.in(0), c.in(1)}));
}

/// input, skip, gamma, beta?, bias? (simplified: input, skip, gamma, bias?).
void lower_skip_norm(Call& c) {
  const bool simplified = c.op() == "SkipSimplifiedLayerNormalization";
  const Val sum = added(c, c.emit("Add", {c.in(0), c.in(1)}), c.in(simplified ? 3 : 4));
  const NamedAttr e = eps(c, 1e-12F);
  c.out(0, simplified ? c.emit("RmsNorm", {e}, {sum, c.in(2)})
                      : c.emit("LayerNorm", {e}, {sum, c.in(2), c.in(3)}));
  c.out(3, sum);
}

/// ids, segments?, words, positions, segment table?, gamma, beta, mask?, position ids?
void lower_embed_norm(Call& c) {
  c.ignore({"mask_index_type"});
  if (c.wants(1)) {  // how many tokens count; 0 where no mask says it
    const Val ids = c.cast(c.in(0), DType::kI32);
    const Val mask = c.has(7) ? c.in(7) : c.emit("Mul", {ids, c.scalar(0, DType::kI32)});
    c.out(1, c.emit("Reduce", {{"keep", std::int64_t{0}}},
                    {mask, c.int_list(std::array{std::int64_t{1}})}));
  }
  const auto rows = [&](Val table, Val ids) {
    return c.emit("Gather", {{"axis", std::int64_t{0}}}, {table, ids});
  };
  Val sum = rows(c.in(2), c.in(0));
  if (c.has(8)) {
    sum = c.emit("Add", {sum, rows(c.in(3), c.in(8))});
  } else {
    const Val shape = c.shape_of(c.in(0));
    const Val length = c.reshape(c.slice(shape, 0, 1, 2), {});
    const auto number = [&](double v) { return c.scalar(v, DType::kI64); };
    const Val ids = c.emit("Range", {number(0), length, number(1)});
    sum = c.emit("Add", {sum, rows(c.in(3), ids)});
  }
  if (c.has(1) && c.has(4)) sum = c.emit("Add", {sum, rows(c.in(4), c.in(1))});
  c.out(0, c.emit("LayerNorm", {eps(c, 1e-12F)}, {sum, c.in(5), c.in(6)}));
  c.out(2, sum);
}

/// (a - za)(b - zb)·sa·sb + bias, the product in integers.
Val integer_product(Call& c, Val a, Val b, Val scale, std::array<Val, 2> zeros, Val bias) {
  const Val y = c.cast(c.emit("MatmulInteger", {a, b, zeros[0], zeros[1]}), DType::kF32);
  return added(c, c.emit("Mul", {y, scale}), bias);
}

void lower_integer_to_float(Call& c) {
  const Val scale = c.emit("Mul", {c.in(2), c.in(3)});
  c.out(0, integer_product(c, c.in(0), c.in(1), scale, {c.in(4), c.in(5)}, c.in(6)));
}

void lower_dynamic_matmul(Call& c) {
  const auto q = c.emit_all("DynamicQuantizeLinear", {}, {c.in(0)});
  if (q.size() != 3) return;
  const Val scale = c.emit("Mul", {q[1], c.in(2)});
  c.out(0, integer_product(c, q[0], c.in(1), scale, {q[2], c.in(3)}, c.in(4)));
}

Val dequantized(Call& c, Val x, Val scale, Val zero) {
  return c.emit("DequantizeLinear", {{"axis", std::int64_t{1}}}, {x, scale, zero});
}

Val quantized(Call& c, Val x, Val scale, Val zero, DType fallback) {
  const DType dtype = zero == 0 ? fallback : c.dtype(zero);
  return c.emit("QuantizeLinear",
                {{"axis", std::int64_t{1}}, {"dtype", static_cast<std::int64_t>(dtype)}},
                {x, scale, zero});
}

/// A, scale, zero, B, scale, zero, C scale, zero.
void lower_qlinear_binary(Call& c) {
  const Val a = dequantized(c, c.in(0), c.in(1), c.in(2));
  const Val b = dequantized(c, c.in(3), c.in(4), c.in(5));
  const Val y = c.emit(c.op() == "QLinearAdd" ? "Add" : "Mul", {a, b});
  c.out(0, quantized(c, y, c.in(6), c.in(7), c.dtype(c.in(0))));
}

/// X, scale, zero, Y scale, zero.
void lower_qlinear_unary(Call& c) {
  const Val x = dequantized(c, c.in(0), c.in(1), c.in(2));
  Val y = 0;
  if (c.op() == "QLinearLeakyRelu") {
    y = c.emit("LeakyRelu", {{"slope", static_cast<float>(c.f("alpha", 0.01F))}}, {x});
  } else if (c.op() == "QLinearGlobalAveragePool") {
    if (c.i("channels_last", 0) != 0) c.refuse("channels_last");
    std::vector<std::int64_t> axes;
    for (std::size_t k = 2; k < c.rank(x); ++k) axes.push_back(static_cast<std::int64_t>(k));
    y = c.emit("Reduce", {{"kind", std::int64_t{1}}, {"keep", std::int64_t{1}}},
               {x, c.int_list(axes)});
  } else {
    y = c.emit("Sigmoid", {x});
  }
  c.out(0, quantized(c, y, c.in(3), c.in(4), c.dtype(c.in(0))));
}

/// Y scale, zero, then X, scale, zero of each part.
void lower_qlinear_concat(Call& c) {
  std::vector<Val> parts;
  for (std::size_t k = 2; k + 1 < c.n_in(); k += 3)
    parts.push_back(dequantized(c, c.in(k), c.in(k + 1), c.in(k + 2)));
  if (parts.empty()) return c.refuse("no parts");
  const Val all = c.concat(parts, c.axis(c.i("axis", 0), c.rank(parts[0])));
  c.out(0, quantized(c, all, c.in(0), c.in(1), c.dtype(c.in(2))));
}

/// A, scale, zero, B, scale, zero, C i32?, Y scale?, zero?
void lower_qgemm(Call& c) {
  const double alpha = c.f("alpha", 1);
  const bool trans_a = c.i("transA", 0) != 0, trans_b = c.i("transB", 0) != 0;
  const auto turned = [&](Val v, bool turn) {
    return turn ? c.emit("Transpose", {{"perm", std::vector<std::int64_t>{}}}, {v}) : v;
  };
  const Val product = c.emit(
      "MatmulInteger", {turned(c.in(0), trans_a), turned(c.in(3), trans_b), c.in(2), c.in(5)});
  const Val sum = c.cast(added(c, product, c.in(6)), DType::kF32);
  Val scale = c.emit("Mul", {c.in(1), c.in(4)});
  if (alpha != 1) scale = c.emit("Mul", {scale, c.scalar(alpha, DType::kF32)});
  const Val y = c.emit("Mul", {sum, scale});
  c.out(0, c.has(7) ? quantized(c, y, c.in(7), c.in(8), c.dtype(c.in(0))) : y);
}

Val activated(Call& c, Val x) {
  const std::string name = c.s("activation", "");
  const std::vector<float> p = c.floats("activation_params");
  const auto at = [&](std::size_t k, float fallback) { return k < p.size() ? p[k] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") return c.emit(name, {x});
  if (name == "LeakyRelu") return c.emit("LeakyRelu", {{"slope", at(0, 0.01F)}}, {x});
  if (name == "HardSigmoid")
    return c.emit("HardSigmoid", {{"alpha", at(0, 0.2F)}, {"beta", at(1, 0.5F)}}, {x});
  if (name == "Clip" && p.size() == 2) {
    const DType dtype = c.dtype(x);
    return c.emit("Clip", {x, c.scalar(static_cast<double>(p[0]), dtype),
                           c.scalar(static_cast<double>(p[1]), dtype)});
  }
  c.refuse("the activation " + name);
  return 0;
}

/// X, W, B?, Z?: Conv, + Z, activation.
void lower_fused_conv(Call& c) {
  const std::size_t n = c.rank(c.in(0)) < 3 ? 1 : c.rank(c.in(0)) - 2;
  c.ignore({"kernel_shape"});
  if (c.s("auto_pad", "NOTSET") != "NOTSET") c.refuse("auto_pad");
  using Ints = std::vector<std::int64_t>;
  const Val y = c.emit("Conv",
                       {{"strides", c.ints("strides", Ints(n, 1))},
                        {"dilations", c.ints("dilations", Ints(n, 1))},
                        {"pads", c.ints("pads", Ints(2 * n, 0))},
                        {"groups", c.i("group", 1)}},
                       {c.in(0), c.in(1), c.in(2)});
  c.out(0, activated(c, added(c, y, c.in(3))));
}

/// input, position ids, cos, sin; ours takes the positions last.
void lower_rotary(Call& c) {
  c.ignore({"is_packed_batching", "scale"});
  if (c.rank(c.in(1)) == 1) c.refuse("position_ids that are one offset");
  std::int64_t heads = c.i("num_heads", 0);
  const std::int64_t dim = c.i("rotary_embedding_dim", 0);
  if (heads == 0 && c.rank(c.in(0)) == 3) {
    const std::int64_t head = 2 * c.size(c.in(2), 1, "the width of the tables");
    if (head > 0) heads = c.size(c.in(0), 2, "the width of the input") / head;
  }
  c.out(0, c.emit("RotaryEmbedding",
                  {{"rope_dim", dim}, {"num_heads", heads}, {"interleaved", c.i("interleaved", 0)}},
                  {c.in(0), c.in(2), c.in(3), c.in(1)}));
}

}  // namespace

std::span<const OpRow> rows_contrib() noexcept {
  static constexpr std::array kRows = {
      OpRow{"BiasGelu", 1, lower_gelu},
      OpRow{"DynamicQuantizeMatMul", 1, lower_dynamic_matmul},
      OpRow{"DynamicQuantizeLSTM", 1, lower_dynamic_lstm},
      OpRow{"EmbedLayerNormalization", 1, lower_embed_norm},
      OpRow{"FastGelu", 1, lower_gelu},
      OpRow{"FusedConv", 1, lower_fused_conv},
      OpRow{"FusedMatMul", 1, lower_fused_matmul},
      OpRow{"Gelu", 1, lower_gelu},
      OpRow{"MatMulIntegerToFloat", 1, lower_integer_to_float},
      OpRow{"QGemm", 1, lower_qgemm},
      OpRow{"QLinearAdd", 1, lower_qlinear_binary},
      OpRow{"QLinearConcat", 1, lower_qlinear_concat},
      OpRow{"QLinearGlobalAveragePool", 1, lower_qlinear_unary},
      OpRow{"QLinearLeakyRelu", 1, lower_qlinear_unary},
      OpRow{"QLinearMul", 1, lower_qlinear_binary},
      OpRow{"QLinearSigmoid", 1, lower_qlinear_unary},
      OpRow{"QuickGelu", 1, lower_quick_gelu},
      OpRow{"RotaryEmbedding", 1, lower_rotary},
      OpRow{"SimplifiedLayerNormalization", 1, lower_simplified_norm},
      OpRow{"SkipLayerNormalization", 1, lower_skip_norm},
      OpRow{"SkipSimplifiedLayerNormalization", 1, lower_skip_norm}};
  return kRows;
}

}  // namespace cyb::onnx
