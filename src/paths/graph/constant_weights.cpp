// Which form of a weight a step reads, and constants as weights.
#include "paths/graph/stage.hpp"

namespace cyb {
namespace {

WeightUse weight_use(const TensorSpec& spec, const Op& op, std::size_t input) {
  if (spec.dtype == DType::kF32 && !takes_encoded(op, input)) return WeightUse::kVector;
  const bool product = takes_encoded(op, input) && op.tag != OpTag::kTokenEmbed &&
                       op.tag != OpTag::kPosEmbed && op.tag != OpTag::kDequantize;
  const DTypeClass cls = format_info(spec.dtype).cls;
  const bool matrix = spec.rank() == 2 && cls != DTypeClass::kInt && cls != DTypeClass::kBool &&
                      spec.dtype != DType::kF64;
  if (product && matrix) return WeightUse::kMatmul;
  return spec.dtype == DType::kF32 && op.tag != OpTag::kTokenEmbed ? WeightUse::kVector
                                                                   : WeightUse::kGather;
}

}  // namespace

Result<Operand> ConstantWeights::operand(std::uint32_t v, const Op& op, std::size_t input) {
  const TensorProgram::Value& value = program_.values()[v];
  const WeightUse use = weight_use(value.spec, op, input);
  Operand operand{
      .kind = Operand::Kind::kWeight, .dtype = value.spec.dtype, .shape = *value.spec.bind({})};
  if (value.source == TensorProgram::Source::kWeight) {
    const bool decoded = program_.stored_weight(value).dtype != value.spec.dtype;
    CYB_ASSIGN(operand.weight, weights_.get(value.name, decoded ? WeightUse::kVector : use));
    return operand;
  }
  std::unique_ptr<Weight>& weight = constants_[{v, use}];
  if (weight == nullptr) {
    const TensorView view = program_.constant(value).view();
    const std::uint64_t size = tensor_bytes(view.dtype, view.shape).value_or(0);
    CYB_ASSIGN(weight, backend().load_weight(
                           {value.name, view.dtype, view.shape, {view.data, size}}, use, {}));
  }
  operand.weight = weight.get();
  return operand;
}

std::uint64_t ConstantWeights::own_bytes() const noexcept {
  std::uint64_t total = program_.constant_bytes();
  for (const auto& [key, weight] : constants_) total += weight->own_bytes();
  return total;
}

}  // namespace cyb
