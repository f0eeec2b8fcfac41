// Permute: heads to the front and back, identity, rank 1.
#include "ops/layout/permute.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::vector<std::int64_t> dims) {
    return Op{OpTag::kPermute, PermuteAttrs{std::move(dims)}.to_attrs()};
  };
  return {{"heads", op({0, 2, 1, 3}), {activation({2, 5, 3, 8})}},
          {"reverse", op({3, 2, 1, 0}), {activation({2, 3, 4, 5})}},
          {"identity", op({0, 1}), {activation({3, 4}, Fill::kSpecial)}},
          {"rank_1", op({0}), {activation({7})}},
          {"empty", op({1, 0}), {activation({4, 0})}}};
}

const CaseTable kTable(OpTag::kPermute, cases());

}  // namespace
}  // namespace cyb::test
