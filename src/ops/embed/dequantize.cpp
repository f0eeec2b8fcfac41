// Dequantize (tag 143): the f32 values of a tensor of any weight dtype, by the decode rules of the
// format.
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

Result<std::vector<TensorSpec>> infer_dequantize(const Attrs&, rules::Specs in) {
  CYB_TRY(rules::want_weight(in, 0));
  return rules::one(DType::kF32, in[0].dims);
}

bool encoded(const Attrs&, std::size_t) {
  return true;
}

}  // namespace

OpImpl impl_Dequantize() {
  return {.infer = infer_dequantize, .reference = ref::decode, .encoded_input = encoded};
}

}  // namespace cyb
