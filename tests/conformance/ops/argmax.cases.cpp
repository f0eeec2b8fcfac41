// Argmax: each axis, values with -Inf, one element.
#include "ops/layout/argmax.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::int32_t dim) { return Op{OpTag::kArgmax, ArgmaxAttrs{dim}.to_attrs()}; };
  return {{"last", op(-1), {activation({4, 33})}},
          {"first", op(0), {activation({5, 7})}},
          {"middle", op(1), {activation({2, 3, 4}, Fill::kWide)}},
          {"infinite", op(1), {activation({3, 20}, Fill::kInfinite)}},
          {"one", op(0), {activation({1, 3})}},
          {"f16", op(1), {activation({3, 9}, Fill::kNormal, DType::kF16)}},
          {"empty", op(1), {activation({0, 3})}}};
}

const CaseTable kTable(OpTag::kArgmax, cases());

}  // namespace
}  // namespace cyb::test
