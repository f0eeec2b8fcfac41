// Quantised KV pages: one head's K or V of 16 positions as q8 or q4 blocks of 32 channels of one
// position, the codes and scales of tensor/formats, laid out so that 16 lanes read together.
// K: codes [blocks][32 or 16][16 positions], then scales f16 [blocks][16]; V: codes [16
// positions][blocks][32 or 16], then scales [16][blocks]. A byte of q4 holds channels j and j + 16.
#pragma once

#include <cstddef>

#include "tensor/dtype.hpp"

namespace cyb::cpu {

struct KvCodes {
  DType dtype;           // kQ8 or kQ4
  std::size_t head_dim;  // D

  std::size_t blocks() const noexcept { return (head_dim + 31) / 32; }
  std::size_t codes() const noexcept { return dtype == DType::kQ8 ? 32 : 16; }  // bytes of a block
  /// Of K, and of V.
  std::size_t head_bytes() const noexcept { return blocks() * 16 * (codes() + 2); }

  void write_k(const float* k, std::size_t slot, std::byte* head) const noexcept;
  void write_v(const float* v, std::size_t slot, std::byte* head) const noexcept;
  /// f32 [D][16].
  void read_k(const std::byte* head, float* to) const noexcept;
  /// f32 [16][padded], zeros past D.
  void read_v(const std::byte* head, std::size_t padded, float* to) const noexcept;
};

}  // namespace cyb::cpu
