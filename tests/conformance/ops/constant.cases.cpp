// Constant: f32 values, a scalar, no values.
#include "ops/layout/constant.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::vector<float> values, const Shape& shape) {
    return Op{OpTag::kConstant, ConstantAttrs::of(values, shape).to_attrs()};
  };
  return {{"matrix", op({1, -0.0F, 3.5F, 1e-40F, -2, 7}, {2, 3}), {}},
          {"scalar", op({42}, {}), {}},
          {"empty", op({}, {0, 3}), {}}};
}

const CaseTable kTable(OpTag::kConstant, cases());

}  // namespace
}  // namespace cyb::test
