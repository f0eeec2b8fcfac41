// Concat: one to three parts, first, middle and last axis, an empty part.
#include "ops/layout/concat.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::int32_t axis) {
    return Op{OpTag::kConcat, ConcatAttrs{axis}.to_attrs()};
  };
  return {{"one", op(0), {activation({2, 3})}},
          {"first", op(0), {activation({2, 3}), activation({4, 3}, Fill::kSpecial)}},
          {"middle", op(1), {activation({2, 3, 4}), activation({2, 1, 4}), activation({2, 2, 4})}},
          {"last", op(-1), {activation({2, 3}), activation({2, 5})}},
          {"empty_part", op(0), {activation({0, 3}), activation({2, 3})}},
          {"f16",
           op(1),
           {activation({2, 3}, Fill::kNormal, DType::kF16),
            activation({2, 2}, Fill::kNormal, DType::kF16)}}};
}

const CaseTable kTable(OpTag::kConcat, cases());

}  // namespace
}  // namespace cyb::test
