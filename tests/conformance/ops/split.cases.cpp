// Split: sizes along each axis, a part of size 0.
#include "ops/layout/split.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::int32_t axis, std::vector<std::int64_t> sizes) {
    return Op{OpTag::kSplit, SplitAttrs{axis, std::move(sizes)}.to_attrs()};
  };
  return {{"first", op(0, {1, 2}), {activation({3, 4})}},
          {"last", op(-1, {1, 3}), {activation({3, 4}, Fill::kSpecial)}},
          {"middle", op(1, {2, 2, 1}), {activation({2, 5, 3})}},
          {"with_empty", op(1, {0, 5}), {activation({2, 5})}},
          {"whole", op(0, {3}), {activation({3, 4})}}};
}

const CaseTable kTable(OpTag::kSplit, cases());

}  // namespace
}  // namespace cyb::test
