// The list of elementwise ops.
#include "ops/elementwise.hpp"

namespace cyb {

bool is_elementwise(OpTag tag) noexcept {
  switch (tag) {
    case OpTag::kAdd:
    case OpTag::kMul:
    case OpTag::kSub:
    case OpTag::kDiv:
    case OpTag::kClamp:
    case OpTag::kNanToNum:
    case OpTag::kSilu:
    case OpTag::kGelu:
    case OpTag::kRelu:
    case OpTag::kLeakyRelu:
    case OpTag::kPRelu:
    case OpTag::kSigmoid:
    case OpTag::kTanh:
    case OpTag::kExp:
    case OpTag::kLog:
    case OpTag::kSqrt:
    case OpTag::kRsqrt:
    case OpTag::kNeg:
    case OpTag::kAbs:
    case OpTag::kErf:
    case OpTag::kSin:
    case OpTag::kCos:
    case OpTag::kSoftplus:
    case OpTag::kRound:
    case OpTag::kPow:
    case OpTag::kWhere:
    case OpTag::kCompare:
    case OpTag::kReciprocal:
    case OpTag::kFloor:
    case OpTag::kCeil:
    case OpTag::kSign:
    case OpTag::kTan:
    case OpTag::kAsin:
    case OpTag::kAcos:
    case OpTag::kAtan:
    case OpTag::kSinh:
    case OpTag::kCosh:
    case OpTag::kAsinh:
    case OpTag::kAcosh:
    case OpTag::kAtanh:
    case OpTag::kNot:
    case OpTag::kBitwiseNot:
    case OpTag::kIsNan:
    case OpTag::kIsInf:
    case OpTag::kElu:
    case OpTag::kSelu:
    case OpTag::kCelu:
    case OpTag::kHardSigmoid:
    case OpTag::kHardSwish:
    case OpTag::kMish:
    case OpTag::kSoftsign:
    case OpTag::kThresholdedRelu:
    case OpTag::kShrink:
    case OpTag::kSwish:
    case OpTag::kMod:
    case OpTag::kBitShift:
    case OpTag::kBitwiseAnd:
    case OpTag::kBitwiseOr:
    case OpTag::kBitwiseXor:
    case OpTag::kAnd:
    case OpTag::kOr:
    case OpTag::kXor:
    case OpTag::kMax:
    case OpTag::kMin:
    case OpTag::kClip:
      return true;
    default:
      return false;
  }
}

bool works_in_place(OpTag tag, std::size_t input) noexcept {
  if (!is_elementwise(tag)) return false;
  // Max and Min go through their inputs one after the other.
  return (tag != OpTag::kMax && tag != OpTag::kMin) || input == 0;
}

}  // namespace cyb
