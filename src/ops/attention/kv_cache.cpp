// KvCache (tag 23): K_new [B,Hk,S,D], V_new [B,Hk,S,Dv] -> K [B,Hk,T,D], V [B,Hk,T,Dv], T = P + S.
// The state belongs to a run, so there is no reference here: a backend or an executor composes it.
#include "ops/attention/kv_cache.hpp"

#include <array>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"layer", AttrKind::kU32},
                               AttrSpec{"window", AttrKind::kU32}};

Result<std::vector<TensorSpec>> infer_kv_cache(const Attrs& attrs, rules::Specs in) {
  for (std::size_t k = 0; k < 2; ++k) {
    CYB_TRY(rules::want_float(in, k));
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
    CYB_TRY(rules::want_rank(in, k, 4));
  }
  std::vector<Dim> v = in[0].dims;
  v[3] = in[1].dims[3];
  CYB_TRY(rules::want_dims(in, 1, v));
  std::vector<TensorSpec> outputs = {{in[0].dtype, in[0].dims}, {in[0].dtype, v}};
  // A ring returns min(T, window + S - 1) rows: not linear, so unknown until the run.
  const bool ring = KvCacheAttrs::from(attrs).window > 0;
  const Dim t = ring ? Dim::anonymous() : in[0].dims[2] + Dim::symbol(kSymbolP);
  for (TensorSpec& output : outputs) output.dims[2] = t;
  return outputs;
}

}  // namespace

OpImpl impl_KvCache() {
  return {.attrs = kAttrs, .infer = infer_kv_cache};
}

}  // namespace cyb
