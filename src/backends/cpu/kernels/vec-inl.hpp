// Vector layer of the kernels, once per ISA: F and I hold kL lanes of f32 and i32, Acc the integer
// sums of 16 rows / kR vectors. Targets without fused multiply-add use 16-lane arrays and fmaf, so
// that every ISA gives the same bits.
#if defined(CYB_CPU_VEC_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CYB_CPU_VEC_INL
#undef CYB_CPU_VEC_INL
#else
#define CYB_CPU_VEC_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#undef CYB_SIMD
#undef CYB_WIDE
#undef CYB_VNNI
#undef CYB_ORDER
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define CYB_SIMD 1
#else
#define CYB_SIMD 0
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define CYB_WIDE 1
#else
#define CYB_WIDE 0
#endif
#if HWY_TARGET == HWY_AVX3_DL
#define CYB_VNNI 1
#else
#define CYB_VNNI 0
#endif
// Plain targets are for correctness, not speed: nothing is forced inline or unrolled there.
#undef CYB_FN
#undef CYB_FN_MEMBER
#undef CYB_UNROLL
#if CYB_SIMD
#define CYB_FN static HWY_INLINE HWY_MAYBE_UNUSED
#define CYB_FN_MEMBER HWY_INLINE HWY_MAYBE_UNUSED
#if defined(__clang__)
#define CYB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CYB_UNROLL _Pragma("GCC unroll 16")
#endif
#else
#define CYB_FN static HWY_MAYBE_UNUSED
#define CYB_FN_MEMBER HWY_MAYBE_UNUSED
#define CYB_UNROLL
#endif

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

#if CYB_SIMD
#include "backends/cpu/kernels/vec_x86-inl.hpp"
#else
#include "backends/cpu/kernels/vec_plain-inl.hpp"
#endif

constexpr std::size_t kR = 16 / kL;  // vectors per panel of 16 rows

/// Lane k of the result-independent 16-lane sums: one fixed tree.
CYB_FN float tree_sum(float* lanes) {
  for (std::size_t width = 8; width != 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

CYB_FN float word_f32(const std::uint8_t* p) {
  float f;
  std::memcpy(&f, p, 4);
  return f;
}

}  // namespace
}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
