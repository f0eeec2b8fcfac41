// Gelu: the three modes.
#include "ops/activation/gelu.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const GeluMode mode : {GeluMode::kErf, GeluMode::kTanh, GeluMode::kQuick}) {
    for (Case& c : unary_cases({OpTag::kGelu, GeluAttrs{mode}.to_attrs()})) {
      c.name += "_mode" + std::to_string(static_cast<int>(mode));
      all.push_back(std::move(c));
    }
  }
  return all;
}

const CaseTable kTable(OpTag::kGelu, cases());

}  // namespace
}  // namespace cyb::test
