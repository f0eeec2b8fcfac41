// Attributes of the block ops (tags 480..): the pieces of a decoder layer that backends fuse. Each
// decomposes into plain ops. "rows" = all leading dimensions: [N, E] in a plan, [B, S, E] in a
// graph.
#pragma once

#include <cstdint>

#include "ops/op.hpp"

namespace cyb {

/// BlockNormLinear: n = RmsNorm(x, g); y_i = n W_i^T (+ b_i).
/// Inputs x [rows, E], g [E], then W_1 [O_1, E] .. W_n, then b_1 [O_1] .. b_n (each may be absent).
/// Outputs y_i [rows, O_i].
struct BlockNormLinearAttrs {
  float eps;
  std::uint32_t n_weights;  // 1..6
  static BlockNormLinearAttrs from(const Attrs& a);
  Attrs to_attrs() const;
};

/// How rope frequencies depend on T. kLonger: long_freqs where T > rope_original. kDynamic: base
/// theta' = theta·(factor·T/original - (factor - 1))^(R/(R-2)) where T > original.
enum class RopeRule : std::uint8_t { kFixed = 0, kLonger = 1, kDynamic = 2 };

/// BlockAttention: per-head RmsNorm of q and k (where gains are given), Rope, cache write, causal
/// attention over the cache. Inputs q [rows, H*D], k [rows, G*D], v [rows, G*D], q_gain [D]?,
/// k_gain [D]?, rope_freqs f32 [R/2]?, then for a rope that depends on it length i32 [1] (T, the
/// whole length of the rows' sequence), long_freqs f32 [R/2]?. Output [rows, H*D]. Positions and
/// the cache come from the run (StepParams); in a graph from the input `pos` and a KvCache node.
struct BlockAttentionAttrs {
  std::uint32_t layer;
  std::uint32_t n_heads;     // H
  std::uint32_t n_kv_heads;  // G
  std::uint32_t head_dim;    // D
  float scale;               // > 0
  float softcap;             // 0: off
  std::uint32_t window;      // 0: full; else keys j > a - window
  std::uint32_t rope_dim;    // R, 0: no rope in this layer
  float rope_base;
  std::uint8_t rope_style;  // 0 neox, 1 gptj, 2 proportional
  float norm_eps;           // of the per-head norms
  RopeRule rope_rule = RopeRule::kFixed;
  std::uint32_t rope_original = 0;  // > 0 unless kFixed
  float rope_factor = 1;            // of kDynamic, >= 1
  static BlockAttentionAttrs from(const Attrs& a);
  Attrs to_attrs() const;
};

/// BlockLinearAdd: y = residual + x W^T (+ b). Inputs x [rows, K], residual [rows, O], W [O, K], b
/// [O]?.
struct BlockLinearAddAttrs {
  Attrs to_attrs() const { return {}; }
};

enum class Activation : std::uint8_t {
  kSilu = 0,
  kGeluErf = 1,
  kGeluTanh = 2,
  kGeluQuick = 3,
  kRelu = 4
};

/// The plain op of an activation.
Op activation_op(Activation activation);

/// BlockGatedMlp: n = RmsNorm(x, g); y = act(n Wg^T) * (n Wu^T). Inputs x [rows, E], g [E], Wg [F,
/// E], Wu [F, E]. Output [rows, F].
struct BlockGatedMlpAttrs {
  float eps;
  Activation activation;
  static BlockGatedMlpAttrs from(const Attrs& a);
  Attrs to_attrs() const;
};

/// BlockNormAdd: y = x + RmsNorm(z, g). Inputs x [rows, E], z [rows, E], g [E].
struct BlockNormAddAttrs {
  float eps;
  static BlockNormAddAttrs from(const Attrs& a);
  Attrs to_attrs() const;
};

/// BlockSoftcap: y = cap * tanh(x / cap).
struct BlockSoftcapAttrs {
  float cap;
  static BlockSoftcapAttrs from(const Attrs& a);
  Attrs to_attrs() const;
};

}  // namespace cyb
