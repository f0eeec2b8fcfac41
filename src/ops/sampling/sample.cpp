// Sample (tag 144): docs/ir.md's chain: divide by temperature, keep k, softmax, shortest prefix of
// mass p, drop below min_p of the best, draw with Philox keyed by (seed; ctr, row).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.hpp"
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Method : std::int64_t { kGreedy, kTemperature, kTopK, kTopP, kMinP, kChain };

constexpr std::array kAttrs = {
    AttrSpec{"method", AttrKind::kU8}, AttrSpec{"temperature", AttrKind::kF32},
    AttrSpec{"p", AttrKind::kF32},     AttrSpec{"k", AttrKind::kU32},
    AttrSpec{"min_p", AttrKind::kF32}, AttrSpec{"seed", AttrKind::kU64}};

struct Chain {
  double temperature, p, min_p;
  std::size_t k;
  std::uint64_t seed;
};

/// The filters that a method leaves on.
Chain chain_of(const Attrs& a) {
  const std::int64_t m = a.i(0);
  const auto on = [m](Method own) { return m == own || m == kChain; };
  return {m == kGreedy ? 0.0 : static_cast<double>(a.f(1)),
          on(kTopP) ? static_cast<double>(a.f(2)) : 1.0,
          on(kMinP) ? static_cast<double>(a.f(4)) : 0.0,
          on(kTopK) ? static_cast<std::size_t>(a.i(3)) : 0, static_cast<std::uint64_t>(a.i(5))};
}

Result<std::vector<TensorSpec>> infer_sample(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, kChain, "method"));
  if (!(attrs.f(1) >= 0.0F)) return fail(rules::bad_payload("temperature"));
  if (!(attrs.f(2) > 0.0F && attrs.f(2) <= 1.0F) && (attrs.i(0) == kTopP || attrs.i(0) == kChain))
    return fail(rules::bad_payload("p"));
  if (!(attrs.f(4) >= 0.0F && attrs.f(4) < 1.0F)) return fail(rules::bad_payload("min_p"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 2));
  CYB_TRY(rules::want_nonempty(in[0], 1));
  if (!rules::at(in, 1).absent) {
    CYB_TRY(rules::want_dtype(in, 1, DType::kI32));
    CYB_TRY(rules::want_dims(in, 1, std::span(in[0].dims).first(1)));
  }
  return rules::one(DType::kI32, {in[0].dims[0]});
}

std::size_t draw(const float* logits, std::size_t n, const Chain& chain, std::uint32_t ctr,
                 std::uint32_t row) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (chain.temperature == 0.0) return order[0];
  if (chain.k > 0 && chain.k < n) order.resize(chain.k);
  std::vector<double> weight;
  double total = 0.0;
  for (const std::size_t id : order) {
    weight.push_back(
        math::exp_f64((static_cast<double>(logits[id]) - static_cast<double>(logits[order[0]])) /
                      chain.temperature));
    total += weight.back();
  }
  std::size_t kept = 0;
  double mass = 0.0;
  while (kept < weight.size() && (kept == 0 || chain.p >= 1.0 || mass < chain.p * total))
    mass += weight[kept++];
  while (kept > 1 && weight[kept - 1] < chain.min_p * weight[0]) mass -= weight[--kept];
  mass = 0.0;
  for (std::size_t i = 0; i < kept; ++i) mass += weight[i];
  const double target = static_cast<double>(philox_uniform(chain.seed, ctr, row)) * mass;
  double sum = 0.0;
  for (std::size_t i = 0; i < kept; ++i) {
    sum += weight[i];
    if (sum > target) return order[i];
  }
  return order[kept - 1];
}

Result<void> reference_sample(const RefCall& call) {
  const ref::Values logits(call.inputs[0]);
  const auto n = ref::extent(call.inputs[0].shape, 1);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i]) && !(logits[i] < 0.0F))
      return fail(non_finite("Sample", "input 0", i));
  }
  const TensorView ctr = ref::input(call, 1);
  const Chain chain = chain_of(call.attrs);
  for (std::size_t row = 0; row * n < logits.size(); ++row) {
    const auto at = ctr.present() ? static_cast<std::uint32_t>(ref::integer_at(ctr, row)) : 0u;
    const float* values = logits.data() + row * n;
    if (std::all_of(values, values + n, [](float v) { return std::isinf(v); }))
      return fail(non_finite("Sample", "row of -Inf", row));
    call.outputs[0].as<std::int32_t>()[row] =
        static_cast<std::int32_t>(draw(values, n, chain, at, static_cast<std::uint32_t>(row)));
  }
  return {};
}

}  // namespace

OpImpl impl_Sample() {
  return {.attrs = kAttrs, .infer = infer_sample, .reference = reference_sample};
}

}  // namespace cyb
