// What the recurrent steps share: where a line (one direction of one sequence) reads and writes,
// and the arithmetic of an LSTM's cell.
#pragma once

#include <algorithm>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

/// L steps of B sequences in d directions, I values in and h out. x is [L, B, I] or, batch first,
/// [B, L, I]; y [L, d, B, h] or [B, L, d, h]; states [d, B, h] or [B, d, h].
struct RecurrentShape {
  std::size_t length = 0, batch = 0, width = 0, hidden = 0, directions = 1;
  bool reverse_first = false, batch_first = false;

  std::size_t lines() const noexcept { return directions * batch; }
  bool backward(std::size_t line) const noexcept { return line / batch == 1 || reverse_first; }
  /// The k-th step's place in time.
  std::size_t time(std::size_t line, std::size_t k) const noexcept {
    return backward(line) ? length - 1 - k : k;
  }
  std::size_t x_at(std::size_t line, std::size_t t) const noexcept {
    const std::size_t s = line % batch;
    return (batch_first ? s * length + t : t * batch + s) * width;
  }
  /// Floats from one step's x to the next step's.
  std::size_t x_step() const noexcept { return batch_first ? width : batch * width; }
  std::size_t y_at(std::size_t line, std::size_t t) const noexcept {
    const std::size_t dir = line / batch, s = line % batch;
    return (batch_first ? (s * length + t) * directions + dir
                        : (t * directions + dir) * batch + s) *
           hidden;
  }
  std::size_t state_at(std::size_t line) const noexcept {
    const std::size_t dir = line / batch, s = line % batch;
    return (batch_first ? s * directions + dir : line) * hidden;
  }
};

/// Gates i, o, f, c [4 h] before their functions, to c = f c + i c~ and h = o tanh(c). `gates` is
/// overwritten.
inline void lstm_cell(const KernelTable& k, std::size_t n, float* gates, float* h,
                      float* c) noexcept {
  float *in = gates, *out = gates + n, *forget = gates + 2 * n, *candidate = gates + 3 * n;
  k.map[static_cast<std::size_t>(RowOp::kSigmoid)](gates, 3 * n, gates);
  k.map[static_cast<std::size_t>(RowOp::kTanh)](candidate, n, candidate);
  k.mul(forget, c, n, c);
  k.mul(in, candidate, n, candidate);
  k.add(c, candidate, n, c);
  k.map[static_cast<std::size_t>(RowOp::kTanh)](c, n, candidate);
  k.mul(out, candidate, n, h);
}

/// The initial state, or zeros.
inline void load_state(const Run& run, const Operand& from, std::size_t at, std::size_t n,
                       float* to) noexcept {
  if (from.kind == Operand::Kind::kNone) {
    std::fill_n(to, n, 0.0f);
  } else {
    std::copy_n(run.f32(from) + at, n, to);
  }
}

inline Operand operand_or_none(const Step& step, std::size_t i) {
  return i < step.inputs.size() ? step.inputs[i] : Operand{};
}

}  // namespace cyb::cpu
