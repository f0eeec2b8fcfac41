// BlockGatedMlp: every activation, every weight format.
#include "conformance/case.hpp"
#include "ops/blocks.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  const auto op = [](Activation a) {
    return Op{OpTag::kBlockGatedMlp, BlockGatedMlpAttrs{1e-5F, a}.to_attrs()};
  };
  for (const DType dtype : kWeightTypes) {
    for (const std::int64_t rows : {1, 5}) {
      all.push_back(
          {std::string(dtype_name(dtype)) + "_" + std::to_string(rows),
           op(Activation::kSilu),
           {activation({rows, 256}), gain(256), matrix(35, 256, dtype), matrix(35, 256, dtype)}});
    }
  }
  for (const Activation a :
       {Activation::kGeluErf, Activation::kGeluTanh, Activation::kGeluQuick, Activation::kRelu}) {
    all.push_back({"activation_" + std::to_string(static_cast<int>(a)),
                   op(a),
                   {activation({3, 40}), gain(40), matrix(16, 40), matrix(16, 40)}});
  }
  return all;
}

const CaseTable kTable(OpTag::kBlockGatedMlp, cases());

}  // namespace
}  // namespace cyb::test
