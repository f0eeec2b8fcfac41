// Transpose (tag 5): the permuting copy, with "swap the last two" as the empty permutation.
#include "ops/layout/transpose.hpp"

#include <array>

#include "ops/layout/permute_copy.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"perm", AttrKind::kU32List}};

std::vector<std::int64_t> full_perm(const TransposeAttrs& attrs, std::size_t rank) {
  if (!attrs.perm.empty()) return attrs.perm;
  std::vector<std::int64_t> perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
  if (rank >= 2) std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

Result<std::vector<TensorSpec>> infer_transpose(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  const auto a = TransposeAttrs::from(attrs);
  if (a.perm.empty()) CYB_TRY(rules::want_min_rank(in, 0, 2));
  const std::vector<std::int64_t> perm = full_perm(a, in[0].rank());
  if (!layout::is_permutation(perm, in[0].rank())) return fail(rules::bad_payload("perm"));
  return rules::one(in[0].dtype, layout::permuted(in[0], perm));
}

Result<void> reference_transpose(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  layout::permute_copy(x, full_perm(TransposeAttrs::from(call.attrs), x.shape.rank()),
                       call.outputs[0]);
  return {};
}

}  // namespace

OpImpl impl_Transpose() {
  return {.attrs = kAttrs, .infer = infer_transpose, .reference = reference_transpose};
}

}  // namespace cyb
