// Cast: all pairs of the dtypes that graphs use, special values included.
#include "ops/layout/cast.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  const std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBf16,
                                    DType::kI32, DType::kI64, DType::kBool};
  for (const DType from : types) {
    for (const DType to : types) {
      for (const Fill fill : {Fill::kNormal, Fill::kWide, Fill::kSpecial, Fill::kTiny}) {
        const std::string name = std::string(dtype_name(from)) + "_" + std::string(dtype_name(to));
        all.push_back({name + "_" + fill_name(fill),
                       {OpTag::kCast, CastAttrs{to}.to_attrs()},
                       {activation({3, 17}, fill, from)}});
      }
    }
  }
  // Integers that do not fit keep their low bits.
  const std::vector<DType> integers = {DType::kI8,  DType::kU8,     DType::kI16,    DType::kUint16,
                                       DType::kI32, DType::kUint32, DType::kUint64, DType::kI64};
  for (const DType from : integers) {
    for (const DType to : integers) {
      if (from == to) continue;
      all.push_back({std::string(dtype_name(from)) + "_" + std::string(dtype_name(to)) + "_wrapped",
                     {OpTag::kCast, CastAttrs{to}.to_attrs()},
                     {activation({3, 17}, Fill::kWide, from)}});
    }
  }
  return all;
}

const CaseTable kTable(OpTag::kCast, cases());

}  // namespace
}  // namespace cyb::test
