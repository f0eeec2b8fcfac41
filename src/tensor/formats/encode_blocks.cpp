// Fine encoders of the 32-value formats: the scale (and minimum) of least squares, rounded to f16,
// and its neighbours in f16; the best of them by the error that decoding will have.
#include <bit>
#include <cmath>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/encoders.hpp"
#include "tensor/formats/scale_search.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 32;
constexpr float kEqual[kValues] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/// One block's values, with what is not finite as 0.
struct Block {
  float x[kValues];
  Run run;
  Block(const float* src, const float* weights) noexcept : run{x, weights, kValues} {
    for (std::size_t i = 0; i < kValues; ++i) x[i] = std::isfinite(src[i]) ? src[i] : 0.0f;
    if (weights == nullptr) run.w = kEqual;
  }
  Block(const Block&) = delete;  // `run` points into it
};

/// The half nearest to `value` and the ones beside it.
struct Halves {
  std::uint16_t bits[3];
  explicit Halves(float value) noexcept {
    bits[0] = f32_to_f16(value);
    bits[1] = bits[2] = bits[0];
    const unsigned magnitude = bits[0] & 0x7FFFu;
    if (magnitude > 0) bits[1] = static_cast<std::uint16_t>(bits[0] - 1);
    if (magnitude < 0x7BFF) bits[2] = static_cast<std::uint16_t>(bits[0] + 1);
  }
};

struct Chosen {
  std::uint16_t scale = 0, min = 0;
};

float extreme_of(const Block& block) noexcept {
  float extreme = 0;
  for (const float v : block.x) {
    if (std::fabs(v) > std::fabs(extreme)) extreme = v;
  }
  return extreme;
}

/// The fitted scale against those that put the extreme value at an end of the range: values that
/// are on such a grid already are found again, which sums of f32 are too coarse to see.
Chosen choose_symmetric(const Block& block, CodeRange range, int n_steps, float step) noexcept {
  const float extreme = extreme_of(block);
  Chosen best;
  float least = 0;
  bool first = true;
  for (const float scale :
       {extreme / range.lo, extreme / range.hi, best_scale(block.run, range, n_steps, step)}) {
    for (const std::uint16_t bits : Halves(scale).bits) {
      const float error = symmetric_error(block.run, range, f16_to_f32(bits));
      if (!first && !(error < least)) continue;
      first = false;
      least = error;
      best.scale = bits;
    }
  }
  return best;
}

Chosen choose_affine(const Block& block, float hi) noexcept {
  const AffineFit fit = best_affine(block.run, hi, false);
  Chosen best;
  float least = 0;
  bool first = true;
  for (const std::uint16_t scale : Halves(fit.scale).bits) {
    for (const std::uint16_t min : Halves(-fit.min).bits) {
      const float error = affine_error(block.run, {0, hi}, f16_to_f32(scale), -f16_to_f32(min));
      if (!first && !(error < least)) continue;
      first = false;
      least = error;
      best = {scale, min};
    }
  }
  return best;
}

/// Low nibbles of the codes of values j and j + 16 in byte j, fifth bits in `high`.
void put_codes(const float* codes, float shift, std::byte* nibbles, std::byte* high) noexcept {
  std::uint32_t fifth = 0;
  for (unsigned j = 0; j < 16; ++j) {
    const auto a = static_cast<unsigned>(codes[j] + shift);
    const auto b = static_cast<unsigned>(codes[j + 16] + shift);
    store(nibbles + j, static_cast<std::uint8_t>((a & 15) | (b & 15) << 4));
    fifth |= (a >> 4 & 1) << j | (b >> 4 & 1) << (j + 16);
  }
  if (high != nullptr) store(high, fifth);
}

void encode_symmetric(const float* src, const float* weights, float half_range, std::byte* dst,
                      std::byte* high, std::byte* nibbles) noexcept {
  const Block block(src, weights);
  const CodeRange range{-half_range, half_range - 1};
  const Chosen chosen = choose_symmetric(block, range, 12, half_range / 40);
  float codes[kValues];
  symmetric_codes(block.run, range, f16_to_f32(chosen.scale), codes);
  store(dst, chosen.scale);
  put_codes(codes, half_range, nibbles, high);
}

void encode_affine(const float* src, const float* weights, float hi, std::byte* dst,
                   std::byte* high, std::byte* nibbles) noexcept {
  const Block block(src, weights);
  const Chosen chosen = choose_affine(block, hi);
  float codes[kValues];
  affine_codes(block.run, {0, hi}, f16_to_f32(chosen.scale), -f16_to_f32(chosen.min), codes);
  store(dst, chosen.scale);
  store(dst + 2, chosen.min);
  put_codes(codes, 0, nibbles, high);
}

/// Weights of the block at `at`, or null.
const float* weights_at(const float* weights, std::size_t at) noexcept {
  return weights == nullptr ? nullptr : weights + at;
}

}  // namespace

void encode_fine_q4(const float* src, const float* weights, std::byte* dst,
                    std::size_t n) noexcept {
  for (std::size_t at = 0; at + kValues <= n; at += kValues, dst += 18)
    encode_symmetric(src + at, weights_at(weights, at), 8, dst, nullptr, dst + 2);
}

void encode_fine_q5_0(const float* src, const float* weights, std::byte* dst,
                      std::size_t n) noexcept {
  for (std::size_t at = 0; at + kValues <= n; at += kValues, dst += 22)
    encode_symmetric(src + at, weights_at(weights, at), 16, dst, dst + 2, dst + 6);
}

void encode_fine_q4_1(const float* src, const float* weights, std::byte* dst,
                      std::size_t n) noexcept {
  for (std::size_t at = 0; at + kValues <= n; at += kValues, dst += 20)
    encode_affine(src + at, weights_at(weights, at), 15, dst, nullptr, dst + 4);
}

void encode_fine_q5_1(const float* src, const float* weights, std::byte* dst,
                      std::size_t n) noexcept {
  for (std::size_t at = 0; at + kValues <= n; at += kValues, dst += 24)
    encode_affine(src + at, weights_at(weights, at), 31, dst, dst + 4, dst + 8);
}

void encode_fine_q8(const float* src, const float* weights, std::byte* dst,
                    std::size_t n) noexcept {
  constexpr CodeRange kRange{-127, 127};
  for (std::size_t at = 0; at + kValues <= n; at += kValues, dst += 34) {
    const Block block(src + at, weights_at(weights, at));
    const Chosen chosen = choose_symmetric(block, kRange, 8, 0.25f);
    float codes[kValues];
    symmetric_codes(block.run, kRange, f16_to_f32(chosen.scale), codes);
    store(dst, chosen.scale);
    for (std::size_t i = 0; i < kValues; ++i)
      store(dst + 2 + i, static_cast<std::int8_t>(codes[i]));
  }
}

FineEncodeFn fine_encoder(DType dtype) noexcept {
  switch (dtype) {
    case DType::kQ4:
      return encode_fine_q4;
    case DType::kQ4_1:
      return encode_fine_q4_1;
    case DType::kQ5_0:
      return encode_fine_q5_0;
    case DType::kQ5_1:
      return encode_fine_q5_1;
    case DType::kQ8:
      return encode_fine_q8;
    case DType::kQ2k:
      return encode_fine_q2k;
    case DType::kQ3k:
      return encode_fine_q3k;
    case DType::kQ4k:
      return encode_fine_q4k;
    case DType::kQ5k:
      return encode_fine_q5k;
    case DType::kQ6k:
      return encode_fine_q6k;
    default:
      return nullptr;
  }
}

}  // namespace cyb::formats
