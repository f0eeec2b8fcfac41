// sin and cos in f64 with exact argument reduction (Payne and Hanek, 1983) in integer arithmetic.
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/math/elementary.hpp"

namespace cyb::math {
namespace {

__extension__ typedef unsigned __int128 U128;

constexpr double kHalfPi = 0x1.921FB54442D18p+0;

// The first 1280 bits of 2/pi after the binary point.
constexpr std::array<std::uint64_t, 20> kTwoOverPi = {
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484,
    0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D,
};

/// 64 bits of 2/pi from bit `at` on.
std::uint64_t two_over_pi_bits(std::size_t at) noexcept {
  const std::size_t word = at / 64, shift = at % 64;
  const std::uint64_t high = kTwoOverPi[word];
  if (shift == 0) return high;
  return (high << shift) | (kTwoOverPi[word + 1] >> (64 - shift));
}

struct Reduced {
  unsigned quadrant;  // x = quadrant * pi/2 + r (mod 2 pi)
  double r;           // |r| <= pi/4
};

/// x >= 0.5, finite. x * 2/pi = m * 2^e * 0.t0 t1 t2..., m < 2^53; bits that make multiples of 4
/// are skipped, 192 bits of the rest are multiplied exactly.
Reduced reduce(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int e = static_cast<int>(bits >> 52) - 1075;
  const std::uint64_t m = (bits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u;
  const int skip = e > 2 ? e - 2 : 0;
  const auto at = static_cast<std::size_t>(skip);
  std::array<std::uint64_t, 4> p{};  // m * T, most significant word first
  U128 carry = 0;
  for (std::size_t i = 3; i-- > 0;) {
    carry += static_cast<U128>(m) * two_over_pi_bits(at + 64 * i);
    p[i + 1] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  p[0] = static_cast<std::uint64_t>(carry);
  // The binary point lies `whole` bits below the top of p; bits above it count quarter turns.
  const int whole = 64 + (e - skip);
  const U128 top = (static_cast<U128>(p[0]) << 64) | p[1];
  const U128 rest = (static_cast<U128>(p[2]) << 64) | p[3];
  auto quadrant = static_cast<unsigned>(static_cast<std::uint64_t>(top >> (128 - whole)) & 3u);
  U128 fraction = (top << whole) | (rest >> (128 - whole));
  const bool upper = (fraction >> 127) != 0;
  if (upper) {
    fraction = -fraction;
    ++quadrant;
  }
  const double turns = static_cast<double>(static_cast<std::uint64_t>(fraction >> 64)) * 0x1p-64 +
                       static_cast<double>(static_cast<std::uint64_t>(fraction)) * 0x1p-128;
  return {quadrant & 3u, (upper ? -turns : turns) * kHalfPi};
}

/// (-1)^i / (2i + first)! for i = N-1..0.
template <std::size_t N>
constexpr std::array<double, N> alternating(int first) {
  std::array<double, N> out{};
  double term = 1.0;
  for (int k = 2; k <= first; ++k) term *= k;
  for (std::size_t i = 0; i < N; ++i) {
    out[N - 1 - i] = (i % 2 == 0 ? 1.0 : -1.0) / term;
    const double k = first + 2.0 * static_cast<double>(i);
    term *= (k + 1.0) * (k + 2.0);
  }
  return out;
}

/// r - r^3 (1/3! - r^2/5! + ... - r^16/19!), |r| <= pi/4.
double sin_series(double r) noexcept {
  static constexpr auto kCoefficients = alternating<9>(3);
  const double r2 = r * r;
  double sum = 0.0;
  for (const double c : kCoefficients) sum = sum * r2 + c;
  return r - r * r2 * sum;
}

/// 1 - r^2 (1/2! - r^2/4! + ... - r^18/20!), |r| <= pi/4.
double cos_series(double r) noexcept {
  static constexpr auto kCoefficients = alternating<10>(2);
  const double r2 = r * r;
  double sum = 0.0;
  for (const double c : kCoefficients) sum = sum * r2 + c;
  return 1.0 - r2 * sum;
}

}  // namespace

SinCos sincos_f64(double x) noexcept {
  const double a = std::fabs(x);
  if (!(a <= std::numeric_limits<double>::max())) return {x - x, x - x};
  const Reduced q = a < 0.5 ? Reduced{0, a} : reduce(a);
  const double s = sin_series(q.r), c = cos_series(q.r);
  const std::array<SinCos, 4> turned = {{{s, c}, {c, -s}, {-s, -c}, {-c, s}}};
  const SinCos y = turned[q.quadrant];
  return {std::signbit(x) ? -y.sin : y.sin, y.cos};
}

}  // namespace cyb::math
