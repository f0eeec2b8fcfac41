// com.microsoft's attention: projections and masks around our Attention. Formulas: onnxruntime's
// ContribOperators.md. A masked key is skipped, where onnxruntime adds a large negative number.
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

/// A key mask of 0 and 1, [B, T], as a bool mask over queries and heads.
Val key_mask(Call& c, Val mask) {
  if (mask == 0) return 0;
  if (c.rank(mask) != 2) {
    c.refuse("a mask that is not [batch, keys]");
    return 0;
  }
  const Val two = c.int_list(std::array{std::int64_t{1}, std::int64_t{2}});
  return c.emit("Unsqueeze", {c.cast(mask, DType::kBool), two});
}

struct Heads {
  Val q = 0, k = 0, v = 0, mask = 0, past_k = 0, past_v = 0;
  std::int64_t count = 0;
  double scale = 0;
  bool causal = false;
};

std::vector<Val> attend(Call& c, const Heads& h) {
  return c.emit_all("Attention",
                    {{"q_heads", h.count},
                     {"kv_heads", h.count},
                     {"causal", std::int64_t{h.causal}},
                     {"scale", static_cast<float>(h.scale)},
                     {"left_window", std::int64_t{-1}},
                     {"right_window", std::int64_t{-1}}},
                    {h.q, h.k, h.v, h.mask, h.past_k, h.past_v});
}

/// The options that Attention, QAttention and MultiHeadAttention share.
Heads options(Call& c) {
  c.ignore({"mask_filter_value"});
  Heads h;
  h.count = c.i("num_heads", 0);
  h.scale = c.f("scale", 0);
  h.causal = c.i("unidirectional", 0) != 0;
  if (c.i("do_rotary", 0) != 0) c.refuse("do_rotary");
  return h;
}

/// q, k and v are thirds of the last dimension, or parts of `sizes`.
void split_projection(Call& c, Val all, std::vector<std::int64_t> sizes, Heads& h) {
  const std::size_t last = c.rank(all) == 0 ? 0 : c.rank(all) - 1;
  if (sizes.empty()) {
    const std::int64_t width = c.size(all, last, "the width of the projection");
    if (width % 3 != 0) return c.refuse("a width that is no multiple of 3");
    sizes.assign(3, width / 3);
  }
  const auto parts = c.emit_all(
      "Split", {{"axis", static_cast<std::int64_t>(last)}, {"sizes", std::move(sizes)}}, {all});
  if (parts.size() != 3) return;
  h.q = parts[0];
  h.k = parts[1];
  h.v = parts[2];
}

/// input, weights [D, 3D], bias?, mask?, past?, attention bias?
void lower_attention(Call& c) {
  Heads h = options(c);
  const std::vector<std::int64_t> sizes = c.ints("qkv_hidden_sizes");
  if (c.has(4)) c.refuse("past");
  const bool weight = c.known(c.in(1)) != nullptr && c.rank(c.in(1)) == 2;
  Val all = weight ? c.emit("Matmul", {c.in(0), c.swapped(c.in(1))})
                   : c.emit("BatchMatmul", {c.in(0), c.in(1)});
  if (c.has(2)) all = c.emit("Add", {all, c.in(2)});
  split_projection(c, all, sizes, h);
  if (c.has(3) && c.has(5)) c.refuse("a mask and an attention bias");
  h.mask = c.has(5) ? c.in(5) : key_mask(c, c.in(3));
  const auto out = attend(c, h);
  if (!out.empty()) c.out(0, out[0]);
}

/// input u8, weights i8, bias, two scales, mask?, two zeros?, past?
void lower_qattention(Call& c) {
  Heads h = options(c);
  if (c.has(8)) c.refuse("past");
  const Val product =
      c.cast(c.emit("MatmulInteger", {c.in(0), c.in(1), c.in(6), c.in(7)}), DType::kF32);
  const Val scaled = c.emit("Mul", {product, c.emit("Mul", {c.in(3), c.in(4)})});
  split_projection(c, c.emit("Add", {scaled, c.in(2)}), {}, h);
  h.mask = key_mask(c, c.in(5));
  const auto out = attend(c, h);
  if (!out.empty()) c.out(0, out[0]);
}

/// query, key, value, bias?, key mask?, attention bias?, past key?, past value?
void lower_multi_head(Call& c) {
  Heads h = options(c);
  if (c.rank(c.in(0)) != 3 || c.rank(c.in(1)) != 3 || c.rank(c.in(2)) != 3)
    c.refuse("packed inputs");
  h.q = c.in(0);
  h.k = c.in(1);
  h.v = c.in(2);
  if (c.has(3)) {
    Heads bias;
    const std::int64_t q = c.size(h.q, 2, "the width"), v = c.size(h.v, 2, "the width");
    split_projection(c, c.in(3), {q, q, v}, bias);
    h.q = c.emit("Add", {h.q, bias.q});
    h.k = c.emit("Add", {h.k, bias.k});
    h.v = c.emit("Add", {h.v, bias.v});
  }
  if (c.has(4) && c.has(5)) c.refuse("a mask and an attention bias");
  h.mask = c.has(5) ? c.in(5) : key_mask(c, c.in(4));
  h.past_k = c.in(6);
  h.past_v = c.in(7);
  const auto out = attend(c, h);
  for (std::size_t k = 0; k < out.size() && k < 3; ++k) c.out(k, out[k]);
}

}  // namespace

std::span<const OpRow> rows_contrib_attention() noexcept {
  static constexpr std::array kRows = {OpRow{"Attention", 1, lower_attention},
                                       OpRow{"MultiHeadAttention", 1, lower_multi_head},
                                       OpRow{"QAttention", 1, lower_qattention}};
  return kRows;
}

}  // namespace cyb::onnx
