// FlashAttention (tag 183): the inputs, payload and result of Sdpa, computed without the score
// matrix.
#include "ops/attention/sdpa.hpp"
#include "ops/op_impl.hpp"

namespace cyb {
namespace {

Result<std::vector<ValueId>> decompose_flash_attention(const Attrs& attrs,
                                                       std::span<const ValueId> in, OpSink& sink) {
  return sink.emit({OpTag::kSdpa, attrs}, in);
}

}  // namespace

OpImpl impl_FlashAttention() {
  return {.attrs = sdpa_attr_specs(), .infer = infer_sdpa, .decompose = decompose_flash_attention};
}

}  // namespace cyb
