// Gather: axes, index ranks, repeated rows.
#include "ops/layout/gather.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::int32_t axis) {
    return Op{OpTag::kGather, GatherAttrs{axis}.to_attrs()};
  };
  return {{"rows", op(0), {activation({6, 8}), indices({4}, 6)}},
          {"columns", op(1), {activation({3, 5}, Fill::kSpecial), indices({2, 2}, 5)}},
          {"last", op(-1), {activation({2, 3, 4}), indices({3}, 4)}},
          {"none", op(0), {activation({6, 8}), indices({0}, 6)}},
          {"i32", op(0), {activation({6}, Fill::kNormal, DType::kI32), indices({5}, 6)}}};
}

const CaseTable kTable(OpTag::kGather, cases());

}  // namespace
}  // namespace cyb::test
