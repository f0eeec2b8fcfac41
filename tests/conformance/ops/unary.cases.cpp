// Elementwise functions: every real dtype over edge shapes and fills; numbers and bits over their
// dtypes.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

const CaseTable kTables[] = {
    {OpTag::kExp, real_cases(op_of(OpTag::kExp))},
    {OpTag::kLog, real_cases(op_of(OpTag::kLog))},
    {OpTag::kSqrt, real_cases(op_of(OpTag::kSqrt))},
    {OpTag::kRsqrt, real_cases(op_of(OpTag::kRsqrt))},
    {OpTag::kErf, real_cases(op_of(OpTag::kErf))},
    {OpTag::kSin, real_cases(op_of(OpTag::kSin))},
    {OpTag::kCos, real_cases(op_of(OpTag::kCos))},
    {OpTag::kSoftplus, real_cases(op_of(OpTag::kSoftplus))},
    {OpTag::kRound, real_cases(op_of(OpTag::kRound))},
    {OpTag::kReciprocal, real_cases(op_of(OpTag::kReciprocal))},
    {OpTag::kFloor, real_cases(op_of(OpTag::kFloor))},
    {OpTag::kCeil, real_cases(op_of(OpTag::kCeil))},
    {OpTag::kTan, real_cases(op_of(OpTag::kTan))},
    {OpTag::kAsin, real_cases(op_of(OpTag::kAsin))},
    {OpTag::kAcos, real_cases(op_of(OpTag::kAcos))},
    {OpTag::kAtan, real_cases(op_of(OpTag::kAtan))},
    {OpTag::kSinh, real_cases(op_of(OpTag::kSinh))},
    {OpTag::kCosh, real_cases(op_of(OpTag::kCosh))},
    {OpTag::kAsinh, real_cases(op_of(OpTag::kAsinh))},
    {OpTag::kAcosh, real_cases(op_of(OpTag::kAcosh))},
    {OpTag::kAtanh, real_cases(op_of(OpTag::kAtanh))},
    {OpTag::kHardSwish, real_cases(op_of(OpTag::kHardSwish))},
    {OpTag::kMish, real_cases(op_of(OpTag::kMish))},
    {OpTag::kSoftsign, real_cases(op_of(OpTag::kSoftsign))},
    {OpTag::kLeakyRelu, real_cases(op_of(OpTag::kLeakyRelu, {{"slope", 0.1F}}))},
    {OpTag::kElu, real_cases(op_of(OpTag::kElu, {{"alpha", 1.5F}}))},
    {OpTag::kSelu, real_cases(op_of(OpTag::kSelu, {{"alpha", 1.6732632F}, {"gamma", 1.0507010F}}))},
    {OpTag::kCelu, real_cases(op_of(OpTag::kCelu, {{"alpha", 2.0F}}))},
    {OpTag::kHardSigmoid,
     real_cases(op_of(OpTag::kHardSigmoid, {{"alpha", 0.2F}, {"beta", 0.5F}}))},
    {OpTag::kThresholdedRelu, real_cases(op_of(OpTag::kThresholdedRelu, {{"alpha", 1.0F}}))},
    {OpTag::kShrink, real_cases(op_of(OpTag::kShrink, {{"lambd", 0.5F}, {"bias", 0.25F}}))},
    {OpTag::kSwish, real_cases(op_of(OpTag::kSwish, {{"alpha", 1.702F}}))},
    {OpTag::kNanToNum,
     real_cases(op_of(OpTag::kNanToNum, {{"nan", 0.5F}, {"posinf", 3.0F}, {"neginf", -4.0F}}))},
    {OpTag::kClamp,
     real_cases(
         op_of(OpTag::kClamp, {{"has_min", 1}, {"min", -0.5F}, {"has_max", 1}, {"max", 1.0F}}))},
    {OpTag::kIsNan, real_cases(op_of(OpTag::kIsNan))},
    {OpTag::kIsInf, real_cases(op_of(OpTag::kIsInf, {{"positive", 1}, {"negative", 0}}))},
    {OpTag::kNeg, dtype_cases(op_of(OpTag::kNeg),
                              {DType::kF32, DType::kF16, DType::kF64, DType::kI8, DType::kI16,
                               DType::kI32, DType::kI64},
                              Fill::kSpecial)},
    {OpTag::kAbs, dtype_cases(op_of(OpTag::kAbs), kNumberTypes, Fill::kSpecial)},
    {OpTag::kSign, dtype_cases(op_of(OpTag::kSign), kNumberTypes, Fill::kSpecial)},
    {OpTag::kNot, dtype_cases(op_of(OpTag::kNot), {DType::kBool})},
    {OpTag::kBitwiseNot, dtype_cases(op_of(OpTag::kBitwiseNot), kIntTypes)},
    {OpTag::kIdentity, dtype_cases(op_of(OpTag::kIdentity), kNumberTypes, Fill::kSpecial)},
    {OpTag::kBitCast, dtype_cases(op_of(OpTag::kBitCast, {{"dtype", 18}}),
                                  {DType::kF32, DType::kUint32, DType::kI32})},
};

}  // namespace
}  // namespace cyb::test
