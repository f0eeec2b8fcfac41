// Attention and rotary embeddings of the standard domain.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

void lower_attention(Call& c) {
  c.ignore({"softmax_precision"});  // sums and exponentials are f32 or better here
  const std::int64_t q_heads = c.i("q_num_heads", 0), kv_heads = c.i("kv_num_heads", 0);
  const double scale = c.f("scale", 0), softcap = c.f("softcap", 0);
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < 7; ++k) inputs.push_back(c.in(k));
  const auto out = c.emit_all("Attention",
                              {{"q_heads", q_heads},
                               {"kv_heads", kv_heads},
                               {"causal", c.i("is_causal", 0)},
                               {"scale", static_cast<float>(scale)},
                               {"softcap", static_cast<float>(softcap)},
                               {"left_window", c.i("left_window_size", -1)},
                               {"right_window", c.i("right_window_size", -1)},
                               {"scores", c.i("qk_matmul_output_mode", 0)}},
                              std::move(inputs));
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

void lower_rotary(Call& c) {
  c.out(0, c.emit("RotaryEmbedding",
                  {{"rope_dim", c.i("rotary_embedding_dim", 0)},
                   {"num_heads", c.i("num_heads", 0)},
                   {"interleaved", c.i("interleaved", 0)}},
                  {c.in(0), c.in(1), c.in(2), c.in(3)}));
}

void lower_linear_attention(Call& c) {
  c.ignore({"chunk_size"});  // how a kernel may cut the sequence
  constexpr std::array kRules = {std::string_view("linear"), std::string_view("gated"),
                                 std::string_view("delta"), std::string_view("gated_delta")};
  const std::string rule = c.s("update_rule", "gated_delta");
  const auto at = std::ranges::find(kRules, rule);
  if (at == kRules.end()) c.refuse("the update_rule " + rule);
  const auto scale = static_cast<float>(c.f("scale", 0));
  const auto out = c.emit_all("LinearAttention",
                              {{"q_heads", c.i("q_num_heads", 0)},
                               {"kv_heads", c.i("kv_num_heads", 0)},
                               {"rule", std::int64_t{at - kRules.begin()}},
                               {"scale", scale}},
                              {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.in(5)});
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

void lower_causal_conv(Call& c) {
  const std::string activation = c.s("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") c.refuse("the activation " + activation);
  const auto out = c.emit_all("CausalConvState", {{"activation", std::int64_t{silu}}},
                              {c.in(0), c.in(1), c.in(2), c.in(3)});
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

}  // namespace

std::span<const OpRow> rows_attention() noexcept {
  static constexpr std::array kRows = {OpRow{"Attention", 23, lower_attention},
                                       OpRow{"CausalConvWithState", 27, lower_causal_conv},
                                       OpRow{"LinearAttention", 27, lower_linear_attention},
                                       OpRow{"RotaryEmbedding", 23, lower_rotary}};
  return kRows;
}

}  // namespace cyb::onnx
