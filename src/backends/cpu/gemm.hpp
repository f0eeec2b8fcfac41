// Gemm: y_i = act(x) W_i^T for one input and several weights in one phase: (norm and) quantise,
// dot, epilogue. Panels are shared out statically by bytes; large batches take (token chunk, panel)
// items from a counter. No split changes a bit.
#pragma once

#include <vector>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

struct GemmPart {
  const CpuWeight* weight = nullptr;
  const CpuWeight* gate = nullptr;  // y = activation(x gate^T) * (x weight^T)
  Operand out;
  Operand bias;      // [n_out] vector or none
  Operand residual;  // [rows, n_out] or none
};

struct GemmSpec {
  Operand x;     // [rows, K]
  Operand gain;  // norm before the product, or none
  float eps = 0.0f;
  RowOp activation = RowOp::kSilu;
  std::vector<GemmPart> parts;
};

class Gemm {
 public:
  Gemm(GemmSpec spec, std::size_t max_rows, Build& build);
  /// Few rows: every thread prepares them itself, cheaper than a second phase.
  unsigned phases(const Run& run) const noexcept;
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept;

 private:
  struct Acts {
    std::uint8_t* records;  // q8 records: levels_ of them a token, side by side
    float* rows;            // f32 rows
    std::size_t stride;
  };
  /// Tokens [first, first + n) of the run.
  struct Tokens {
    const Acts& acts;
    std::size_t first, n;
  };
  struct Scratch;

  Scratch scratch(std::byte* base) const noexcept;
  std::uint8_t* record(const Acts& acts, std::size_t token) const noexcept {
    return acts.records + token * levels_ * n_blocks_ * kRecordBytes;
  }
  void prepare_tile(const Run& run, const Tokens& tokens, const Scratch& s) const noexcept;
  void write_levels(const Run& run, const float* x, std::size_t stride, const Tokens& tokens,
                    float* rows) const noexcept;
  void product(const Run& run, const CpuWeight& weight, std::size_t panel, const Tokens& tokens,
               const Scratch& s, float* out) const noexcept;
  void unit(const Run& run, std::size_t index, const Tokens& tokens,
            const Scratch& s) const noexcept;
  void epilogue(const Run& run, const GemmPart& part, std::size_t panel, const Tokens& tokens,
                const float* tile) const noexcept;

  GemmSpec spec_;
  bool q8_ = false, f32_ = false;  // which forms of activations the weights want
  bool exact_;
  std::size_t levels_ = 1;  // 2: activations as two int8 levels (about 15 bits)
  std::size_t k_ = 0, k_padded_ = 0, n_blocks_ = 0;
  std::size_t chunk_ = 0;                // tokens
  std::vector<std::size_t> first_unit_;  // [parts + 1]
  std::vector<std::size_t> bounds_;      // [threads + 1] units
  std::size_t counter_ = 0;
};

}  // namespace cyb::cpu
