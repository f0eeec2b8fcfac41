// Steps that are one Gemm: BlockNormLinear, BlockLinearAdd, BlockGatedMlp, Matmul, FusedNormMatmul,
// FusedSwiGlu.
#include "backends/cpu/gemm.hpp"
#include "ops/blocks.hpp"
#include "ops/norm/rms_norm.hpp"

namespace cyb::cpu {
namespace {

class GemmStep final : public CpuStep {
 public:
  explicit GemmStep(Gemm gemm) : gemm_(std::move(gemm)) {}
  unsigned phases(const Run& run) const noexcept override { return gemm_.phases(run); }
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept override {
    gemm_.run_phase(run, thread, phase);
  }

 private:
  Gemm gemm_;
};

Operand input(const Step& step, std::size_t k) {
  return k < step.inputs.size() ? step.inputs[k] : Operand{};
}

RowOp row_op(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return RowOp::kSilu;
    case Activation::kGeluErf:
      return RowOp::kGeluErf;
    case Activation::kGeluTanh:
      return RowOp::kGeluTanh;
    case Activation::kGeluQuick:
      return RowOp::kGeluQuick;
    case Activation::kRelu:
      return RowOp::kRelu;
  }
  return RowOp::kSilu;
}

GemmSpec spec_of(const Step& step) {
  GemmSpec spec{.x = step.inputs[0], .gain = {}, .parts = {}};
  switch (step.op.tag) {
    case OpTag::kBlockNormLinear: {
      const auto a = BlockNormLinearAttrs::from(step.op.attrs);
      spec.gain = step.inputs[1];
      spec.eps = a.eps;
      for (std::size_t i = 0; i < a.n_weights; ++i) {
        spec.parts.push_back({.weight = cpu_weight(step.inputs[2 + i]),
                              .out = step.outputs[i],
                              .bias = input(step, 2 + a.n_weights + i),
                              .residual = {}});
      }
      break;
    }
    case OpTag::kBlockLinearAdd:
      spec.parts.push_back({.weight = cpu_weight(step.inputs[2]),
                            .out = step.outputs[0],
                            .bias = input(step, 3),
                            .residual = step.inputs[1]});
      break;
    case OpTag::kBlockGatedMlp: {
      const auto a = BlockGatedMlpAttrs::from(step.op.attrs);
      spec.gain = step.inputs[1];
      spec.eps = a.eps;
      spec.activation = row_op(a.activation);
      spec.parts.push_back({.weight = cpu_weight(step.inputs[3]),
                            .gate = cpu_weight(step.inputs[2]),
                            .out = step.outputs[0],
                            .bias = {},
                            .residual = {}});
      break;
    }
    case OpTag::kFusedNormMatmul:
      spec.gain = step.inputs[1];
      spec.eps = step.op.attrs.f(0);
      spec.parts.push_back({.weight = cpu_weight(step.inputs[2]),
                            .out = step.outputs[0],
                            .bias = {},
                            .residual = {}});
      break;
    case OpTag::kFusedSwiGlu:
      spec.parts.push_back({.weight = cpu_weight(step.inputs[2]),
                            .gate = cpu_weight(step.inputs[1]),
                            .out = step.outputs[0],
                            .bias = {},
                            .residual = {}});
      break;
    default:  // Matmul
      spec.parts.push_back({.weight = cpu_weight(step.inputs[1]),
                            .out = step.outputs[0],
                            .bias = input(step, 2),
                            .residual = {}});
  }
  return spec;
}

}  // namespace

Result<StepPtr> make_linear_step(const Step& step, Build& build) {
  GemmSpec spec = spec_of(step);
  for (const GemmPart& part : spec.parts) {
    for (const CpuWeight* w : {part.weight, part.gate}) {
      if (w == nullptr) continue;
      if (!w->has_panels())
        return fail(
            internal_error("weight \"" + w->name() + "\" was not loaded for a matrix product"));
      if (static_cast<std::int64_t>(w->n_in()) != spec.x.shape.back()) {
        return fail(
            shape_mismatch(op_info(step.op.tag).name, spec.x.shape.text(), w->shape().text()));
      }
    }
  }
  const Shape& shape = spec.x.shape;  // the stored shape is the largest
  const auto rows =
      static_cast<std::size_t>(shape.count() / std::max<std::int64_t>(shape.back(), 1));
  return std::make_unique<GemmStep>(Gemm(std::move(spec), rows, build));
}

}  // namespace cyb::cpu
