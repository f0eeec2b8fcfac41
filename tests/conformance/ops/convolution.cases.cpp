// Convolutions, their transposes and pools: axes, strides, dilations, pads, groups, odd sizes.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

const Ints kNone;

Op conv(Ints strides, Ints dilations, Ints pads, std::int64_t groups, std::int64_t auto_pad = 0) {
  return op_of(OpTag::kConv, {{"strides", strides},
                              {"dilations", dilations},
                              {"pads", pads},
                              {"groups", groups},
                              {"auto_pad", auto_pad}});
}

CaseList convs() {
  CaseList all = {
      {"1d",
       conv({2}, {2}, {1, 2}, 1),
       {activation({2, 3, 11}), activation({4, 3, 3}), activation({4})}},
      {"2d",
       conv({1, 2}, {}, {1, 0, 2, 1}, 1),
       {activation({1, 2, 7, 6}), activation({3, 2, 3, 2})}},
      {"3d",
       conv({}, {1, 2, 1}, {}, 1),
       {activation({1, 2, 3, 6, 4}), activation({2, 2, 2, 3, 2})}},
      {"groups",
       conv({}, {}, {1, 1, 1, 1}, 2),
       {activation({1, 4, 5, 5}), activation({6, 2, 3, 3}), activation({6})}},
      {"depthwise", conv({}, {}, {}, 4), {activation({2, 4, 5}), activation({4, 1, 3})}},
      {"one", conv({}, {}, {}, 1), {activation({1, 1, 1, 1}), activation({1, 1, 1, 1})}},
      {"no_batch", conv({}, {}, {}, 1), {activation({0, 2, 5}), activation({3, 2, 2})}},
      {"same_upper",
       conv({2, 2}, {}, {}, 1, 1),
       {activation({1, 1, 6, 5}), activation({1, 1, 3, 2})}},
      {"same_lower",
       conv({2, 3}, {}, {}, 1, 2),
       {activation({1, 1, 6, 5}), activation({1, 1, 3, 2})}},
      {"valid", conv({2, 2}, {}, {}, 1, 3), {activation({1, 1, 6, 5}), activation({1, 1, 3, 2})}},
      {"special",
       conv({}, {}, {1, 1}, 1),
       {activation({2, 3, 20}, Fill::kSpecial), activation({2, 3, 3})}},
      {"wide",
       conv({}, {}, {1, 1}, 1),
       {activation({2, 3, 20}, Fill::kWide), activation({2, 3, 3})}}};
  for (const DType dtype : {DType::kF16, DType::kF64}) {
    all.push_back({std::string(dtype_name(dtype)),
                   conv({}, {}, {1, 1}, 1),
                   {activation({1, 3, 9}, Fill::kNormal, dtype),
                    activation({2, 3, 3}, Fill::kNormal, dtype)}});
  }
  return all;
}

Op transposed(Ints strides, Ints dilations, Ints pads, Ints output_padding, Ints output_shape,
              std::int64_t groups, std::int64_t auto_pad) {
  return op_of(OpTag::kConvTranspose, {{"strides", strides},
                                       {"dilations", dilations},
                                       {"pads", pads},
                                       {"output_padding", output_padding},
                                       {"output_shape", output_shape},
                                       {"groups", groups},
                                       {"auto_pad", auto_pad}});
}

CaseList transposes() {
  return {{"1d",
           transposed({2}, {}, {1, 0}, {1}, {}, 1, 0),
           {activation({2, 3, 5}), activation({3, 2, 3}), activation({2})}},
          {"2d",
           transposed({2, 1}, {1, 2}, {}, {}, {}, 2, 0),
           {activation({1, 4, 3, 4}), activation({4, 2, 2, 3}), activation({4})}},
          {"3d",
           transposed({}, {}, {}, {}, {}, 1, 0),
           {activation({1, 1, 2, 2, 2}), activation({1, 2, 2, 2, 2})}},
          {"shape",
           transposed({3, 2}, {}, {}, {}, {10, 8}, 1, 1),
           {activation({1, 1, 3, 3}), activation({1, 2, 3, 3})}},
          {"same",
           transposed({2, 2}, {}, {}, {}, {}, 1, 2),
           {activation({1, 1, 3, 3}), activation({1, 2, 3, 3})}},
          {"f16",
           transposed({2}, {}, {}, {}, {}, 1, 0),
           {activation({1, 2, 4}, Fill::kNormal, DType::kF16),
            activation({2, 2, 3}, Fill::kNormal, DType::kF16)}},
          {"special",
           transposed({2}, {}, {}, {}, {}, 1, 0),
           {activation({1, 2, 20}, Fill::kSpecial), activation({2, 2, 3})}}};
}

Op pool(OpTag tag, Ints kernel, Ints strides, Ints dilations, Ints pads, std::int64_t ceil,
        NamedAttr last) {
  return op_of(tag, {{"kernel", kernel},
                     {"strides", strides},
                     {"dilations", dilations},
                     {"pads", pads},
                     {"ceil", ceil},
                     last});
}

CaseList pools(OpTag tag, const NamedAttr& last) {
  CaseList all = {
      {"1d", pool(tag, {3}, {2}, {}, {1, 1}, 0, last), {activation({2, 2, 9})}},
      {"2d", pool(tag, {2, 3}, {1, 2}, {}, {0, 1, 1, 1}, 0, last), {activation({1, 2, 5, 7})}},
      {"3d", pool(tag, {2, 2, 2}, {}, {1, 2, 1}, {}, 0, last), {activation({1, 1, 3, 4, 3})}},
      {"ceil", pool(tag, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, 1, last), {activation({1, 1, 6, 7})}},
      {"dilated", pool(tag, {2}, {}, {3}, {}, 0, last), {activation({1, 1, 9})}},
      {"special", pool(tag, {3}, {}, {}, {}, 0, last), {activation({1, 4, 20}, Fill::kSpecial)}}};
  for (const DType dtype : {DType::kF16, DType::kF64}) {
    all.push_back({std::string(dtype_name(dtype)),
                   pool(tag, {3}, {}, {}, {1, 1}, 0, last),
                   {activation({1, 2, 9}, Fill::kNormal, dtype)}});
  }
  return all;
}

CaseList max_pools() {
  CaseList all = pools(OpTag::kMaxPool, {"column_major", 0});
  all.push_back({"columns",
                 pool(OpTag::kMaxPool, {2, 2}, {}, {}, {}, 0, {"column_major", 1}),
                 {activation({1, 1, 3, 4})}});
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI32}) {
    all.push_back({std::string(dtype_name(dtype)),
                   pool(OpTag::kMaxPool, {2}, {}, {}, {1, 1}, 0, {"column_major", 0}),
                   {activation({1, 2, 9}, Fill::kNormal, dtype)}});
  }
  return all;
}

Op fixed_pool(std::int64_t mode, std::int64_t ceil, std::int64_t count_pad) {
  return op_of(OpTag::kPool, {{"mode", mode},
                              {"kernel_h", 3},
                              {"kernel_w", 2},
                              {"stride_h", 2},
                              {"stride_w", 2},
                              {"padding_h", 1},
                              {"padding_w", 1},
                              {"ceil", ceil},
                              {"count_pad", count_pad}});
}

const Op kConv1d = op_of(
    OpTag::kConv1d, {{"kernel", 3}, {"stride", 2}, {"padding", 1}, {"dilation", 1}, {"groups", 1}});
const Op kConv2d = op_of(OpTag::kConv2d, {{"kernel_h", 3},
                                          {"kernel_w", 2},
                                          {"stride_h", 1},
                                          {"stride_w", 2},
                                          {"padding_h", 1},
                                          {"padding_w", 0},
                                          {"dilation_h", 1},
                                          {"dilation_w", 2},
                                          {"groups", 2}});
const Op kConv3d = op_of(OpTag::kConv3d, {{"kernel_f", 2},
                                          {"kernel_h", 2},
                                          {"kernel_w", 2},
                                          {"stride_f", 1},
                                          {"stride_h", 1},
                                          {"stride_w", 1},
                                          {"padding_w", 1},
                                          {"dilation_f", 1},
                                          {"dilation_h", 1},
                                          {"dilation_w", 1},
                                          {"groups", 1}});
const Op kTransposed1d =
    op_of(OpTag::kConvTranspose1d,
          {{"kernel", 4}, {"stride", 2}, {"padding", 1}, {"dilation", 1}, {"groups", 1}});
const Op kTransposed2d = op_of(OpTag::kConvTranspose2d, {{"kernel_h", 2},
                                                         {"kernel_w", 3},
                                                         {"stride_h", 2},
                                                         {"stride_w", 2},
                                                         {"padding_w", 1},
                                                         {"output_padding_w", 1},
                                                         {"dilation_h", 1},
                                                         {"dilation_w", 1},
                                                         {"groups", 1}});
const Op kCausal = op_of(OpTag::kCausalConv1d, {{"kernel", 3}, {"dilation", 2}, {"groups", 1}});
const Op kCausalEdge =
    op_of(OpTag::kCausalConv1d, {{"kernel", 3}, {"dilation", 2}, {"groups", 1}, {"pad", 1}});
const Op kDepthwise =
    op_of(OpTag::kDepthwiseConv, {{"kernel", 3}, {"stride", 1}, {"padding", 1}, {"dilation", 1}});
const Op kDeform =
    op_of(OpTag::kDeformConv, {{"pads", Ints{1, 1, 1, 1}}, {"groups", 1}, {"offset_groups", 2}});
const Op kUnpool = op_of(OpTag::kMaxUnpool, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
const Op kConvInteger = op_of(OpTag::kConvInteger, {{"pads", Ints{1, 1}}, {"groups", 1}});
const Op kQLinearConv = op_of(OpTag::kQLinearConv, {{"pads", Ints{1, 0}}, {"groups", 1}});

const CaseTable kTables[] = {
    {OpTag::kConv, convs()},
    {OpTag::kConv1d,
     {{"f32", kConv1d, {activation({2, 3, 9}), activation({4, 3, 3}), activation({4})}},
      {"f16",
       kConv1d,
       {activation({1, 3, 9}, Fill::kNormal, DType::kF16),
        activation({4, 3, 3}, Fill::kNormal, DType::kF16)}},
      {"tiny", kConv1d, {activation({1, 2, 9}, Fill::kTiny), activation({1, 2, 3})}}}},
    {OpTag::kConv2d,
     {{"f32", kConv2d, {activation({1, 4, 5, 6}), activation({2, 2, 3, 2}), activation({2})}},
      {"special", kConv2d, {activation({2, 4, 5, 6}, Fill::kSpecial), activation({2, 2, 3, 2})}}}},
    {OpTag::kConv3d,
     {{"f32", kConv3d, {activation({1, 2, 3, 3, 3}), activation({2, 2, 2, 2, 2})}}}},
    {OpTag::kConvTranspose, transposes()},
    {OpTag::kConvTranspose1d,
     {{"f32", kTransposed1d, {activation({1, 3, 5}), activation({3, 2, 4}), activation({2})}}}},
    {OpTag::kConvTranspose2d,
     {{"f32", kTransposed2d, {activation({1, 2, 3, 3}), activation({2, 3, 2, 3})}}}},
    {OpTag::kCausalConv1d,
     {{"zero", kCausal, {activation({2, 3, 7}), activation({4, 3, 3}), activation({4})}},
      {"edge", kCausalEdge, {activation({2, 3, 7}), activation({4, 3, 3})}},
      {"edge_f16",
       kCausalEdge,
       {activation({1, 2, 5}, Fill::kNormal, DType::kF16),
        activation({1, 2, 3}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kDepthwiseConv,
     {{"1d", kDepthwise, {activation({2, 4, 7}), activation({4, 1, 3}), activation({4})}},
      {"2d", kDepthwise, {activation({1, 3, 4, 5}), activation({3, 1, 3, 3})}}}},
    {OpTag::kPatchEmbed,
     {{"f32",
       op_of(OpTag::kPatchEmbed, {{"p", 2}}),
       {activation({2, 3, 4, 6}), activation({5, 3, 2, 2}), activation({5})}}}},
    {OpTag::kDeformConv,
     {{"mask",
       kDeform,
       {activation({1, 2, 4, 4}), activation({3, 2, 3, 3}), activation({1, 36, 4, 4}),
        activation({3}), activation({1, 18, 4, 4})}},
      {"plain",
       kDeform,
       {activation({2, 2, 4, 3}), activation({1, 2, 3, 3}), activation({2, 36, 4, 3})}}}},
    {OpTag::kMaxPool, max_pools()},
    {OpTag::kAvgPool, pools(OpTag::kAvgPool, {"count_pad", 1})},
    {OpTag::kLpPool, pools(OpTag::kLpPool, {"p", 3})},
    {OpTag::kPool,
     {{"max", fixed_pool(0, 0, 0), {activation({1, 2, 5, 6}, Fill::kSpecial)}},
      {"avg", fixed_pool(1, 0, 1), {activation({1, 2, 5, 6})}},
      {"avg_real", fixed_pool(1, 1, 0), {activation({1, 2, 6, 7})}},
      {"f16", fixed_pool(1, 0, 0), {activation({1, 2, 5, 6}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kMaxUnpool,
     {{"2d", kUnpool, {activation({1, 1, 2, 2}), given({1, 1, 2, 2}, {0, 3, 9, 15}, DType::kI64)}},
      {"shape",
       kUnpool,
       {activation({1, 1, 2, 2}), given({1, 1, 2, 2}, {0, 3, 9, 15}, DType::kI64),
        given({1, 1, 5, 5})}}}},
    {OpTag::kConvInteger,
     {{"u8",
       kConvInteger,
       {activation({1, 2, 6}, Fill::kNormal, DType::kU8),
        activation({3, 2, 3}, Fill::kNormal, DType::kI8), scalar(7, DType::kU8)}},
      {"zeros",
       kConvInteger,
       {activation({1, 2, 6}, Fill::kNormal, DType::kI8),
        activation({3, 2, 3}, Fill::kNormal, DType::kU8), absent(),
        given({1, 2, 3}, DType::kU8)}}}},
    {OpTag::kQLinearConv,
     {{"u8",
       kQLinearConv,
       {activation({1, 2, 6}, Fill::kNormal, DType::kU8), scalar(0.02), scalar(128, DType::kU8),
        activation({3, 2, 3}, Fill::kNormal, DType::kI8), given({0.01, 0.02, 0.005}, DType::kF32),
        given({0, 0, 0}, DType::kI8), scalar(0.05), scalar(100, DType::kU8),
        given({5, -5, 100}, DType::kI32)}}}},
};

}  // namespace
}  // namespace cyb::test
