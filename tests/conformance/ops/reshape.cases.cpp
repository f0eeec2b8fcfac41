// Reshape: copied and inferred dimensions.
#include "ops/layout/reshape.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::vector<std::int64_t> shape) {
    return Op{OpTag::kReshape, ReshapeAttrs{std::move(shape)}.to_attrs()};
  };
  return {{"copy_infer", op({0, -1, 2}), {activation({2, 3, 4})}},
          {"flat", op({-1}), {activation({2, 3, 4}, Fill::kSpecial)}},
          {"split_heads", op({0, 0, 3, 8}), {activation({1, 5, 24})}},
          {"i32", op({6, 2}), {activation({3, 4}, Fill::kNormal, DType::kI32)}},
          {"empty", op({0, 2, 2}), {activation({0, 4})}}};
}

const CaseTable kTable(OpTag::kReshape, cases());

}  // namespace
}  // namespace cyb::test
