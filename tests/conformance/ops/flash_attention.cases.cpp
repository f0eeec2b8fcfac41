// FlashAttention: grouped heads, decode lengths around the lane count, past, window, softcap,
// masks.
#include "conformance/case.hpp"
#include "ops/attention/sdpa.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::uint32_t h, std::uint32_t g, std::uint32_t d, bool causal, float softcap,
                     std::uint32_t window) {
    return Op{OpTag::kFlashAttention, SdpaAttrs{h, g, d, causal, 0.0F, softcap, window}.to_attrs()};
  };
  const auto qkv = [](std::int64_t b, std::int64_t h, std::int64_t g, std::int64_t s,
                      std::int64_t t, std::int64_t d) {
    return std::vector<In>{activation({b, h, s, d}), activation({b, g, t, d}),
                           activation({b, g, t, d})};
  };
  CaseList all;
  for (const std::int64_t t : {1, 7, 8, 9, 33}) {
    all.push_back({"decode_" + std::to_string(t), op(4, 2, 8, true, 0, 0), qkv(1, 4, 2, 1, t, 8)});
  }
  all.push_back({"prefill", op(6, 2, 16, true, 0, 0), qkv(2, 6, 2, 9, 9, 16)});
  all.push_back({"past", op(4, 1, 8, true, 0, 0), qkv(1, 4, 1, 3, 13, 8)});
  all.push_back({"window", op(2, 1, 8, true, 0, 4), qkv(1, 2, 1, 9, 21, 8)});
  all.push_back({"softcap", op(4, 2, 16, true, 2.5F, 0), qkv(1, 4, 2, 4, 7, 16)});
  all.push_back({"full", op(2, 2, 10, false, 0, 0), qkv(1, 2, 2, 5, 5, 10)});
  std::vector<In> masked = qkv(2, 2, 2, 4, 4, 8);
  masked.push_back(activation({2, 1, 1, 4}, Fill::kNormal, DType::kBool));
  all.push_back({"mask", op(2, 2, 8, false, 0, 0), masked});
  masked[3] = activation({4, 4}, Fill::kInfinite);
  all.push_back({"float_mask", op(2, 2, 8, false, 0, 0), masked});
  std::vector<In> half = qkv(1, 2, 1, 3, 5, 8);
  for (In& in : half) in.dtype = DType::kF16;
  all.push_back({"f16", op(2, 1, 8, true, 0, 0), half});
  return all;
}

const CaseTable kTable(OpTag::kFlashAttention, cases());

}  // namespace
}  // namespace cyb::test
