// Attention and rotary embeddings of the standard domain.
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

}  // namespace

std::span<const OpRow> rows_attention() noexcept {
  static constexpr std::array kRows = {OpRow{"Attention", 23, lower_attention},
                                       OpRow{"RotaryEmbedding", 23, lower_rotary}};
  return kRows;
}

}  // namespace cyb::onnx
