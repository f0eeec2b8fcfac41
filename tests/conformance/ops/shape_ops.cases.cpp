// Shapes as data, and tensors made from parameters.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

In bytes_of(const Shape& shape, DType dtype) {
  return activation(shape, Fill::kSpecial, dtype);
}

CaseList every_size(const Op& op, const Shape& shape, std::vector<In> rest = {}) {
  CaseList all;
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kBool}) {
    std::vector<In> inputs = {bytes_of(shape, dtype)};
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    all.push_back({std::string(dtype_name(dtype)), op, std::move(inputs)});
  }
  return all;
}

std::vector<std::byte> bytes(float v) {
  const auto raw = std::as_bytes(std::span(&v, 1));
  return {raw.begin(), raw.end()};
}

CaseList ranges() {
  const Op op = op_of(OpTag::kRange);
  CaseList all;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI16, DType::kI32, DType::kI64}) {
    all.push_back({std::string(dtype_name(dtype)),
                   op,
                   {scalar(2, dtype), scalar(11, dtype), scalar(3, dtype)}});
  }
  all.push_back(
      {"down", op, {scalar(10, DType::kI64), scalar(4, DType::kI64), scalar(-2, DType::kI64)}});
  all.push_back(
      {"empty", op, {scalar(4, DType::kI64), scalar(4, DType::kI64), scalar(1, DType::kI64)}});
  all.push_back({"fraction", op, {scalar(0), scalar(1), scalar(0.3)}});
  return all;
}

CaseList slices() {
  const Op op = op_of(OpTag::kSliceBy);
  const In x = activation({5, 7, 3}, Fill::kSpecial);
  return {{"axes", op, {x, given({1, 0}), given({4, 2}), given({0, 2})}},
          {"steps", op, {x, given({0, 6}), given({5, 0}), given({0, 1}), given({2, -2})}},
          {"reverse", op, {x, given({-1}), given({-100}), given({1}), given({-1})}},
          {"clamped", op, {x, given({-100}), given({100}), given({-1})}},
          {"empty", op, {x, given({3}), given({3}), given({0})}},
          {"default_axes", op, {x, given({1, 1}), given({3, 1000})}},
          {"i32",
           op,
           {x, given({1}, DType::kI32), given({3}, DType::kI32), given({1}, DType::kI32),
            given({1}, DType::kI32)}},
          {"f16",
           op,
           {activation({9}, Fill::kSpecial, DType::kF16), given({8}), given({0}), given({0}),
            given({-3})}}};
}

CaseList pads() {
  CaseList all;
  for (const std::int64_t mode : {0, 1, 2, 3}) {
    const Op by = op_of(OpTag::kPadBy, {{"mode", mode}});
    const Op fixed =
        op_of(OpTag::kPad, {{"pads", Ints{1, 2, 0, 3}}, {"mode", mode}, {"value", 1.5F}});
    const std::string name = std::to_string(mode);
    all.push_back({"by_" + name, by, {activation({3, 4}), given({1, 0, 2, 3})}});
    all.push_back(
        {"axes_" + name,
         by,
         {activation({3, 4}), given({2, 1}), mode == 0 ? scalar(7) : absent(), given({-1})}});
    all.push_back({"crop_" + name, by, {activation({5, 4}), given({-1, 1, -2, 0})}});
    all.push_back(
        {"i64_" + name, by, {activation({3, 4}, Fill::kNormal, DType::kI64), given({1, 1, 1, 1})}});
    all.push_back({"fixed_" + name, fixed, {activation({3, 4})}});
    all.push_back({"u8_" + name, fixed, {activation({3, 4}, Fill::kNormal, DType::kU8)}});
  }
  return all;
}

CaseList of_tag(CaseList cases, OpTag tag) {
  CaseList out;
  for (Case& c : cases) {
    if (c.op.tag == tag) out.push_back(std::move(c));
  }
  return out;
}

CaseList splits() {
  const auto op = [](std::int64_t axis, std::int64_t n) {
    return op_of(OpTag::kSplitBy, {{"axis", axis}, {"n", n}});
  };
  return {{"even", op(0, 3), {activation({6, 2})}},
          {"uneven", op(-1, 3), {activation({2, 7}, Fill::kSpecial)}},
          {"sizes", op(0, 2), {activation({6, 2}), given({2, 4})}},
          {"zero", op(0, 3), {activation({4}), given({0, 4, 0})}}};
}

CaseList resized() {
  CaseList all = every_size(op_of(OpTag::kReshapeTo), {2, 6}, {given({0, -1, 3})});
  all.push_back(
      {"zero", op_of(OpTag::kReshapeTo, {{"allow_zero", 1}}), {activation({0, 3}), given({3, 0})}});
  all.push_back(
      {"scalar", op_of(OpTag::kReshapeTo), {activation({1}), given(Shape{0}, {}, DType::kI64)}});
  return all;
}

const CaseTable kTables[] = {
    {OpTag::kShape,
     {{"all", op_of(OpTag::kShape, {{"end", 100}}), {activation({2, 0, 5})}},
      {"part", op_of(OpTag::kShape, {{"start", -2}, {"end", 2}}), {activation({2, 3, 5})}},
      {"scalar", op_of(OpTag::kShape, {{"end", 9}}), {activation(Shape{})}}}},
    {OpTag::kSize, every_size(op_of(OpTag::kSize), {2, 3})},
    {OpTag::kReshapeTo, resized()},
    {OpTag::kFlatten,
     {{"1", op_of(OpTag::kFlatten, {{"axis", 1}}), {activation({2, 3, 5})}},
      {"0", op_of(OpTag::kFlatten), {activation({2, 3})}},
      {"-1", op_of(OpTag::kFlatten, {{"axis", -1}}), {activation({2, 0, 5})}}}},
    {OpTag::kSqueeze,
     {{"all", op_of(OpTag::kSqueeze), {activation({1, 3, 1})}},
      {"axes", op_of(OpTag::kSqueeze), {activation({1, 3, 1}), given({-1})}}}},
    {OpTag::kUnsqueeze,
     {{"two", op_of(OpTag::kUnsqueeze), {activation({2, 3}), given({0, -1})}},
      {"scalar", op_of(OpTag::kUnsqueeze), {activation(Shape{}), given({0})}}}},
    {OpTag::kExpand, every_size(op_of(OpTag::kExpand, {{"shape", Ints{2, 3, -1}}}), {3, 2})},
    {OpTag::kExpandTo, every_size(op_of(OpTag::kExpandTo), {3, 1}, {given({2, 1, 4})})},
    {OpTag::kRange, ranges()},
    {OpTag::kIota,
     {{"five", op_of(OpTag::kIota, {{"start", -2}, {"dim", 5}}), {}},
      {"none", op_of(OpTag::kIota), {}}}},
    {OpTag::kConstantOfShape,
     {{"f32", op_of(OpTag::kConstantOfShape, {{"value", bytes(2.5F)}}), {given({2, 3})}},
      {"empty", op_of(OpTag::kConstantOfShape, {{"value", bytes(1)}}), {given({0, 3})}},
      {"scalar",
       op_of(OpTag::kConstantOfShape, {{"value", bytes(1)}}),
       {given(Shape{0}, {}, DType::kI64)}}}},
    {OpTag::kRandom,
     {{"uniform", op_of(OpTag::kRandom, {{"a", -1.0F}, {"b", 3.0F}, {"seed", 7}}), {given({3, 7})}},
      {"normal",
       op_of(OpTag::kRandom, {{"kind", 1}, {"a", 1.0F}, {"b", 0.5F}, {"seed", -1}}),
       {given({11})}},
      {"f16", op_of(OpTag::kRandom, {{"dtype", 1}, {"kind", 1}, {"b", 1.0F}}), {given({2, 2})}},
      {"f64", op_of(OpTag::kRandom, {{"dtype", 39}, {"b", 1.0F}}), {given({5})}},
      {"empty", op_of(OpTag::kRandom, {{"b", 1.0F}}), {given({0, 3})}}}},
    {OpTag::kEyeLike,
     {{"f32", op_of(OpTag::kEyeLike), {activation({3, 4})}},
      {"upper", op_of(OpTag::kEyeLike, {{"dtype", 19}, {"k", 1}}), {activation({3, 4})}},
      {"bool", op_of(OpTag::kEyeLike, {{"dtype", 5}, {"k", -1}}), {activation({3, 3})}}}},
    {OpTag::kTile, every_size(op_of(OpTag::kTile), {2, 3}, {given({2, 3})})},
    {OpTag::kOneHot,
     {{"last",
       op_of(OpTag::kOneHot, {{"axis", -1}}),
       {given({0, 2, -1, 9}), scalar(4, DType::kI64), given({0, 1}, DType::kF32)}},
      {"first",
       op_of(OpTag::kOneHot),
       {given({2, 2}, {1, 0, 3, 2}, DType::kF32), scalar(4), given({-1, 5}, DType::kI32)}}}},
    {OpTag::kSlice,
     {{"middle",
       op_of(OpTag::kSlice, {{"axis", 1}, {"start", 1}, {"end", -1}, {"step", 2}}),
       {activation({3, 8, 2}, Fill::kSpecial)}},
      {"none", op_of(OpTag::kSlice, {{"start", 5}, {"end", 2}, {"step", 1}}), {activation({3, 8})}},
      {"i64",
       op_of(OpTag::kSlice, {{"start", -2}, {"end", 99}, {"step", 1}}),
       {activation({5}, Fill::kNormal, DType::kI64)}}}},
    {OpTag::kSliceBy, slices()},
    {OpTag::kPad, of_tag(pads(), OpTag::kPad)},
    {OpTag::kPadBy, of_tag(pads(), OpTag::kPadBy)},
    {OpTag::kCenterCropPad, every_size(op_of(OpTag::kCenterCropPad), {5, 3}, {given({3, 6})})},
    {OpTag::kChunk,
     {{"even", op_of(OpTag::kChunk, {{"axis", 1}, {"chunks", 2}}), {activation({3, 4})}},
      {"uneven",
       op_of(OpTag::kChunk, {{"axis", 0}, {"chunks", 4}}),
       {activation({10, 2}, Fill::kSpecial)}},
      {"fewer", op_of(OpTag::kChunk, {{"axis", 0}, {"chunks", 5}}), {activation({6})}}}},
    {OpTag::kSplitBy, splits()},
    {OpTag::kDepthToSpace,
     {{"dcr", op_of(OpTag::kDepthToSpace, {{"block", 2}}), {activation({2, 8, 2, 3})}},
      {"crd",
       op_of(OpTag::kDepthToSpace, {{"block", 2}, {"mode", 1}}),
       {activation({2, 8, 2, 3})}}}},
    {OpTag::kSpaceToDepth, every_size(op_of(OpTag::kSpaceToDepth, {{"block", 2}}), {2, 3, 4, 2})},
    {OpTag::kPixelShuffle, every_size(op_of(OpTag::kPixelShuffle, {{"r", 3}}), {2, 9, 1, 2})},
    {OpTag::kPixelUnshuffle, every_size(op_of(OpTag::kPixelUnshuffle, {{"r", 2}}), {2, 3, 4, 2})},
    {OpTag::kUnpatchify,
     {{"last",
       op_of(OpTag::kUnpatchify, {{"p", 2}, {"channels", 3}, {"grid_h", 2}, {"grid_w", 1}}),
       {activation({2, 2, 12})}},
      {"first",
       op_of(OpTag::kUnpatchify,
             {{"p", 2}, {"channels", 3}, {"grid_h", 2}, {"grid_w", 1}, {"order", 1}}),
       {activation({2, 2, 12})}}}},
    {OpTag::kReverseSequence,
     {{"time",
       op_of(OpTag::kReverseSequence, {{"batch_axis", 1}, {"time_axis", 0}}),
       {activation({4, 3, 2}), given({0, 1, 4})}},
      {"batch",
       op_of(OpTag::kReverseSequence, {{"batch_axis", 0}, {"time_axis", 1}}),
       {activation({2, 5}, Fill::kSpecial, DType::kF16), given({3, 5})}}}},
    {OpTag::kTrilu,
     {{"lower", op_of(OpTag::kTrilu), {activation({2, 3, 4})}},
      {"upper",
       op_of(OpTag::kTrilu, {{"upper", 1}}),
       {activation({3, 4}, Fill::kSpecial), scalar(-1, DType::kI64)}},
      {"far",
       op_of(OpTag::kTrilu, {{"upper", 1}}),
       {activation({3, 4}, Fill::kNormal, DType::kI64), scalar(9, DType::kI64)}}}},
    {OpTag::kCol2Im,
     {{"2d",
       op_of(OpTag::kCol2Im,
             {{"dilations", Ints{1, 1}}, {"pads", Ints{1, 0, 1, 0}}, {"strides", Ints{1, 2}}}),
       {activation({1, 8, 10}), given({4, 4}), given({2, 2})}}}},
};

}  // namespace
}  // namespace cyb::test
