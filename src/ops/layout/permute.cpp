// Permute (tag 7): the permuting copy.
#include "ops/layout/permute.hpp"

#include <array>

#include "ops/layout/permute_copy.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"dims", AttrKind::kU32List}};

Result<std::vector<TensorSpec>> infer_permute(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  const auto a = PermuteAttrs::from(attrs);
  if (!layout::is_permutation(a.dims, in[0].rank())) return fail(rules::bad_payload("dims"));
  return rules::one(in[0].dtype, layout::permuted(in[0], a.dims));
}

Result<void> reference_permute(const RefCall& call) {
  layout::permute_copy(call.inputs[0], PermuteAttrs::from(call.attrs).dims, call.outputs[0]);
  return {};
}

}  // namespace

OpImpl impl_Permute() {
  return {.attrs = kAttrs, .infer = infer_permute, .reference = reference_permute};
}

}  // namespace cyb
