// Softmax: axes, lengths around the lane count, -Inf entries, wide values.
#include "ops/activation/softmax.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::int32_t dim) {
    return Op{OpTag::kSoftmax, SoftmaxAttrs{dim}.to_attrs()};
  };
  CaseList all = {{"first", op(0), {activation({5, 7})}},
                  {"middle", op(1), {activation({2, 3, 4})}},
                  {"infinite", op(-1), {activation({3, 40}, Fill::kInfinite)}},
                  {"wide", op(-1), {activation({3, 40}, Fill::kWide)}},
                  {"special", op(-1), {activation({3, 40}, Fill::kSpecial)}},
                  {"f16", op(-1), {activation({3, 9}, Fill::kNormal, DType::kF16)}},
                  {"empty", op(-1), {activation({0, 3})}}};
  for (const std::int64_t n : {1, 7, 8, 9, 1000}) {
    all.push_back({"last_" + std::to_string(n), op(-1), {activation({2, n})}});
  }
  return all;
}

const CaseTable kTable(OpTag::kSoftmax, cases());

}  // namespace
}  // namespace cyb::test
