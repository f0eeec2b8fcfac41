// KernelTable: one ISA's kernels as plain function pointers, chosen once when a backend is created.
// Every table computes the same bits; kernels are noexcept, never allocate and never fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/cpu/kernels/elements.hpp"
#include "backends/cpu/kernels/integers.hpp"

namespace cyb::cpu {

/// Panel formats; the order indexes the tables.
enum class PanelFormat : std::uint8_t {
  kQ4,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8,
  kQ2k,
  kQ3k,
  kQ4k,
  kQ5k,
  kQ6k,
  kF32,
  kF16,
  kBf16
};
inline constexpr std::size_t kNumPanelFormats = 13;
inline constexpr std::size_t kNumBlockFormats = 10;  // those before kF32

inline constexpr std::size_t kPanelRows = 16;

/// Activation record of one token and 32-block: 32 int8, then 7 words (see QuantField). Tokens of a
/// tile are interleaved word by word: word w of token t of a tile of T lies at 4 * (w * T + t).
inline constexpr std::size_t kRecordBytes = 60;
inline constexpr std::size_t kTileTokens = 4;

/// Words of a record after the 8 quant words. Pairs are two int16: sums over k mod 4 in {0, 1} and
/// {2, 3}.
enum QuantField : std::size_t {
  kDx = 8,         // f32 scale
  kSx = 9,         // f32 dx * sum(q)
  kStart8 = 10,    // pair: -8 * sum(q)
  kStart16 = 11,   // pair: -16 * sum(q)
  kStart32a = 12,  // pair: -32 * sum(q) of the first 16
  kStart32b = 13,  // pair: -32 * sum(q) of the last 16
  kHalfSums = 14,  // int16 pair: sum of the first 16, sum of the last 16
};

/// One weight panel against n_tokens quantised tokens. out[t][r], r < 16.
struct DotJob {
  const std::uint8_t* panel;
  std::size_t n_blocks;  // 32-blocks of K
  const std::uint8_t*
      acts;  // tile i (4 tokens, the last one fewer) starts at i * 4 * n_blocks * kRecordBytes
  std::size_t n_tokens;
  float* out;
  std::uint8_t* scratch;  // dot_scratch_bytes(n_blocks)
};
/// Room for a panel with one byte per weight.
constexpr std::size_t dot_scratch_bytes(std::size_t n_blocks) {
  return n_blocks * 576;
}

/// A slice of K of one f32 panel against f32 rows. Weights w[e][j][16] for k = k0 + 4 j + e;
/// acc[t][e][16] is carried on.
struct DotF32Job {
  const float* weights;
  std::size_t n_quads;  // j
  const float* x;       // row t at x + t * stride, already at k0
  std::size_t stride;
  std::size_t n_tokens;
  float* acc;
};

/// C = A B (+ a bias a row) in f32. A is rows at `a_row` floats (k side by side), or packed: panels
/// of kTileRows rows, [k][kTileRows] each. B is blocks of 16 columns, [k][16] each, `b_block`
/// floats apart. c[m] at c + m * c_row takes 16 * n_blocks columns.
struct TileJob {
  const float* a;
  bool packed;
  std::size_t a_panel, a_row;  // floats from one group of kTileRows rows, one row, to the next
  const float* b;
  std::size_t b_block;
  std::size_t rows, n_blocks, k;  // all above 0
  float* c;
  std::size_t c_row;
  const float* row_bias;  // [rows], or null
};
inline constexpr std::size_t kTileRows = 6;

/// Up to kTilePixels pixels. Where all taps are inside: where tap 0 of each finds its channels, the
/// others lie at DirectJob::offsets from there. Else `rows[tap][kTilePixels]`.
struct DirectTile {
  const float* const* rows;
  std::uint32_t n;
  bool inside;
};
inline constexpr std::size_t kTilePixels = 6;
inline constexpr std::size_t kDirectOutputs = 16;  // of a block

/// y[pixel][output] (+)= sum over (tap, channel) of x * w for the pixels of tiles, one after the
/// other. One chain of fused multiply-adds per output; the last call of a sum goes on to
/// y * scale + bias and Relu.
struct DirectJob {
  const float* w;       // [n_taps][n_channels][16] per block of 16 outputs
  std::size_t w_block;  // floats from one block to the next
  const DirectTile* tiles;
  std::size_t n_tiles;
  const std::ptrdiff_t* offsets;          // [taps]
  std::size_t merge;                      // taps that lie side by side where all are inside
  std::size_t first_tap, n_taps;          // multiples of `merge`
  std::size_t first_channel, n_channels;  // all channels where taps merge
  float* y;                               // of the first pixel and output
  std::size_t y_pixel;                    // floats from one pixel to the next
  std::size_t n_outputs;                  // above 0
  bool first, last;
  const float *scale, *bias;  // [n_outputs], readable to the end of the last block; may be null
  bool relu;
};

/// Four outputs of a 3x3 convolution from the 16 products of their window's transform.
struct WinogradOut {
  const float* m;  // products of position p at m + p * m_position, [n_outputs]
  std::size_t m_position;
  float* const* y;  // [4] pixels; null: outside
  std::size_t n_outputs;
  const float *scale, *bias;  // as DirectJob's
  bool relu;
};

/// y[i] = sum over t of w[t] * x[t][i * stride], plus the bias; one row of a depthwise convolution.
struct TapsJob {
  const float* const* x;  // [n_taps]
  const float* w;         // [n_taps]
  std::size_t n_taps, n, stride;
  float bias;
  float* y;
};

enum class RowOp : std::uint8_t { kSilu, kGeluErf, kGeluTanh, kGeluQuick, kRelu, kSigmoid, kTanh };
inline constexpr std::size_t kNumRowOps = 7;

/// One 64-key chunk (keys chunk*64 ..) of one KV head against n_q query vectors. Keys outside [lo,
/// hi) of a query add nothing.
struct AttendJob {
  const std::byte* const* k_pages;  // per page: [D][16]
  const std::byte* const* v_pages;  // per page: [16][Dp], Dp = D rounded up to 16
  std::size_t n_pages;              // 1..4
  std::int64_t first_key;           // absolute position of page 0
  bool f32;                         // stored type, else f16
  std::size_t head_dim;
  const float* q;  // [n_q][D]
  const std::int64_t* lo;
  const std::int64_t* hi;
  std::size_t n_q;
  float scale, softcap;
  float* max;      // [n_q] out: largest score; -inf where no key is allowed
  float* sum;      // [n_q] out
  float* o;        // [n_q][Dp] out
  float* scratch;  // attend_scratch_floats()
};
inline constexpr std::size_t kChunkKeys = 64;
inline constexpr std::size_t kPageTokens = 16;
constexpr std::size_t attend_scratch_floats(std::size_t head_dim_padded, std::size_t n_q) {
  return head_dim_padded * kPageTokens + n_q * kChunkKeys;
}

/// Softmax state of one query: largest score, sum of e^(score - max), weighted values.
struct AttendPart {
  float *max, *sum, *o;
};

using DequantFn = void (*)(const std::uint8_t* panel, std::size_t k0, std::size_t n_k,
                           float* dst) noexcept;

struct KernelTable {
  const char* isa;
  /// Block weights, int8 activations.
  void (*dot_q8[kNumBlockFormats])(const DotJob&) noexcept;
  /// dst[e][j][16] = weights of k = k0 + 4 j + e, j < n_k / 4; k0 and n_k are multiples of the
  /// block (of 4 for floats).
  DequantFn dequant[kNumPanelFormats];
  void (*dot_f32)(const DotF32Job&) noexcept;
  /// out[t][16] = (acc[t][0] + acc[t][2]) + (acc[t][1] + acc[t][3]).
  void (*finish_f32)(const float* acc, std::size_t n_tokens, float* out) noexcept;

  /// Quantises T <= 4 rows x[t * stride ..] of n values into one tile of records (n_blocks
  /// 32-blocks, zeros past n).
  void (*quantize)(const float* x, std::size_t stride, std::size_t n, std::size_t n_tokens,
                   std::uint8_t* records) noexcept;
  void (*rms_norm)(const float* x, const float* gain, std::size_t n, float eps, float* y) noexcept;
  /// y = a + b, n values.
  void (*add)(const float* a, const float* b, std::size_t n, float* y) noexcept;
  void (*mul)(const float* a, const float* b, std::size_t n, float* y) noexcept;
  void (*sub)(const float* a, const float* b, std::size_t n, float* y) noexcept;
  /// y = a + b for one value b.
  void (*offset)(const float* a, float b, std::size_t n, float* y) noexcept;
  void (*scale)(const float* a, float b, std::size_t n, float* y) noexcept;
  void (*map[kNumRowOps])(const float* x, std::size_t n, float* y) noexcept;
  /// y = map(gate) * up.
  void (*gate[kNumRowOps])(const float* gate, const float* up, std::size_t n, float* y) noexcept;
  void (*softcap)(const float* x, float cap, std::size_t n, float* y) noexcept;
  /// Rotates pairs (first[j], second[j]) in place, j < n.
  void (*rope_split)(float* first, float* second, const float* cos, const float* sin,
                     std::size_t n) noexcept;
  void (*rope_pairs)(float* x, const float* cos, const float* sin, std::size_t n) noexcept;

  void (*tile)(const TileJob&) noexcept;
  void (*taps)(const TapsJob&) noexcept;
  void (*direct)(const DirectJob&) noexcept;
  /// The same where output c is made of channel c alone: w [n_taps] rows `w_block` floats apart,
  /// whole blocks of outputs each.
  void (*depthwise)(const DirectJob&) noexcept;
  /// A window of 4x4 pixels, [n_channels] each (whole blocks of 16), to 16 positions `v_position`
  /// floats apart.
  void (*winograd_in)(const float* const* pixels, std::size_t n_channels, float* v,
                      std::size_t v_position) noexcept;
  /// False where a sum is not finite: that may be so of the transform alone.
  bool (*winograd_out)(const WinogradOut&) noexcept;
  /// Largest tap, NaN before all; no weights.
  void (*max_taps)(const DirectJob&) noexcept;

  ElementKernels elements;
  IntegerKernels integers;

  void (*attend)(const AttendJob&) noexcept;
  /// `into` joined with `part`: one query, n = Dp values of o; a part whose max is -inf is skipped.
  void (*merge)(const AttendPart& into, const AttendPart& part, std::size_t n) noexcept;
  /// f32 -> f16, round to nearest even; dst may be strided (in elements).
  void (*to_f16)(const float* x, std::size_t n, std::uint16_t* dst) noexcept;
  void (*from_f16)(const std::uint16_t* x, std::size_t n, float* dst) noexcept;
};

/// Table by name ("scalar", "sse4", "avx2", "avx3", "avx3_dl"); "" takes the best of this machine.
/// Null: unknown or absent here.
const KernelTable* find_kernels(std::string_view isa) noexcept;
/// Names of the tables that this machine can run, worst first.
std::size_t available_isas(const char** names, std::size_t capacity) noexcept;

}  // namespace cyb::cpu
