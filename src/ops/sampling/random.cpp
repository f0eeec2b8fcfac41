// Random (tag 447): numbers of Philox4x32-10, key = seed, counter = (element / 4, 0, 0). Uniform:
// a + (b - a)·u with u = (word >> 8)·2^-24. Normal: Box and Muller's pairs, mean a, deviation b.
#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.hpp"
#include "ops/layout/reshape.hpp"
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Kind : std::int64_t { kUniform, kNormal };

constexpr std::array kAttrs = {AttrSpec{"dtype", AttrKind::kU8}, AttrSpec{"kind", AttrKind::kU8},
                               AttrSpec{"a", AttrKind::kF32}, AttrSpec{"b", AttrKind::kF32},
                               AttrSpec{"seed", AttrKind::kU64}};

Result<std::vector<TensorSpec>> infer_random(const Attrs& attrs, Specs in) {
  const auto dtype = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  if (!dtype || !rules::is_real(*dtype)) return fail(rules::bad_payload("dtype"));
  CYB_TRY(rules::want_at_most(attrs, 1, kNormal, "kind"));
  if (!std::isfinite(attrs.f(2))) return fail(rules::bad_payload("a"));
  if (!std::isfinite(attrs.f(3))) return fail(rules::bad_payload("b"));
  CYB_TRY(rules::want_list(in, 0));
  TensorSpec out{*dtype, {}};
  CYB_ASSIGN(out.dims, layout::listed_dims(in, 0));
  return std::vector{std::move(out)};
}

/// Four uniform numbers in [0, 1).
std::array<double, 4> uniform_block(std::uint64_t seed, std::uint64_t block) {
  const auto words = philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}, seed);
  std::array<double, 4> out{};
  for (std::size_t k = 0; k < 4; ++k) out[k] = static_cast<double>(words[k] >> 8) * 0x1p-24;
  return out;
}

/// Four normal numbers of mean 0 and deviation 1: 1 - u is never 0.
std::array<double, 4> normal_block(std::uint64_t seed, std::uint64_t block) {
  const std::array<double, 4> u = uniform_block(seed, block);
  std::array<double, 4> out{};
  for (std::size_t k = 0; k < 4; k += 2) {
    const double radius = std::sqrt(-2.0 * math::log_f64(1.0 - u[k]));
    const math::SinCos angle = math::sincos_f64(2.0 * std::numbers::pi * u[k + 1]);
    out[k] = radius * angle.cos;
    out[k + 1] = radius * angle.sin;
  }
  return out;
}

Result<void> reference_random(const RefCall& call) {
  const bool normal = call.attrs.i(1) == kNormal;
  const auto a = static_cast<double>(call.attrs.f(2)), b = static_cast<double>(call.attrs.f(3));
  const auto seed = static_cast<std::uint64_t>(call.attrs.i(4));
  return ref::visit_real(call.outputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    std::array<double, 4> block{};
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (i % 4 == 0) block = normal ? normal_block(seed, i / 4) : uniform_block(seed, i / 4);
      y[i] = static_cast<C>(normal ? a + b * block[i % 4] : a + (b - a) * block[i % 4]);
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_Random() {
  return {.attrs = kAttrs, .infer = infer_random, .reference = reference_random};
}

}  // namespace cyb
