// Sdpa: scaled dot-product attention with grouped heads, causal and sliding-window rules, softcap.
#pragma once

#include "ops/op.hpp"
#include "ops/rules.hpp"

namespace cyb {

struct SdpaAttrs {
  std::uint32_t num_heads;  // H
  std::uint32_t kv_heads;   // Hk, divides H
  std::uint32_t head_dim;   // D
  bool causal;
  float scale;           // 0: 1 / sqrt(D)
  float softcap;         // 0: off
  std::uint32_t window;  // 0: off; else only keys j > a - window
  static SdpaAttrs from(const Attrs& a);
  Attrs to_attrs() const;
};

// Shared with FlashAttention, whose payload and shapes are the same.
std::span<const AttrSpec> sdpa_attr_specs();
Result<std::vector<TensorSpec>> infer_sdpa(const Attrs& attrs, rules::Specs inputs);

}  // namespace cyb
