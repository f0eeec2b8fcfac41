// Resampling, sampling at positions, detection.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

Op resize(std::int64_t mode, std::int64_t coordinates, std::int64_t antialias = 0,
          std::int64_t exclude = 0, std::int64_t nearest = 0) {
  return op_of(OpTag::kResize, {{"mode", mode},
                                {"coordinates", coordinates},
                                {"nearest", nearest},
                                {"cubic_a", -0.75F},
                                {"exclude_outside", exclude},
                                {"antialias", antialias},
                                {"axes", Ints{2, 3}}});
}

CaseList resizes() {
  CaseList all;
  const In x = activation({1, 2, 4, 5}), up = given({2, 1.5}, DType::kF32),
           down = given({0.6, 0.5}, DType::kF32), sizes = given({3, 7});
  for (std::int64_t mode = 0; mode < 3; ++mode) {
    for (std::int64_t coordinates = 0; coordinates < 5; ++coordinates) {
      const std::string name = std::to_string(mode) + std::to_string(coordinates);
      all.push_back({"up_" + name, resize(mode, coordinates), {x, absent(), up}});
      all.push_back(
          {"down_" + name, resize(mode, coordinates, mode > 0 ? 1 : 0), {x, absent(), down}});
      all.push_back({"size_" + name,
                     resize(mode, coordinates, 0, mode > 1 ? 1 : 0),
                     {x, absent(), absent(), sizes}});
    }
    all.push_back({"crop_" + std::to_string(mode),
                   resize(mode, 5),
                   {x, given({0.1, 0.2, 0.9, 1.2}, DType::kF32), absent(), sizes}});
  }
  for (std::int64_t rule = 0; rule < 4; ++rule)
    all.push_back({"nearest_" + std::to_string(rule), resize(0, 4, 0, 0, rule), {x, absent(), up}});
  for (const DType dtype : {DType::kF16, DType::kF64, DType::kU8, DType::kI32}) {
    all.push_back({std::string(dtype_name(dtype)),
                   resize(1, 0),
                   {activation({1, 1, 3, 4}, Fill::kNormal, dtype), absent(), up}});
  }
  all.push_back(
      {"special", resize(1, 0), {activation({1, 1, 5, 9}, Fill::kSpecial), absent(), up}});
  for (const std::int64_t policy : {1, 2}) {
    all.push_back({"policy_" + std::to_string(policy),
                   op_of(OpTag::kResize, {{"axes", Ints{2, 3}}, {"policy", policy}}),
                   {x, absent(), absent(), sizes}});
  }
  return all;
}

CaseList grids() {
  CaseList all;
  for (std::int64_t mode = 0; mode < 3; ++mode) {
    for (std::int64_t padding = 0; padding < 3; ++padding) {
      for (const std::int64_t align : {0, 1}) {
        all.push_back({std::to_string(mode) + std::to_string(padding) + std::to_string(align),
                       op_of(OpTag::kGridSample,
                             {{"mode", mode}, {"padding", padding}, {"align_corners", align}}),
                       {activation({2, 2, 3, 4}), activation({2, 2, 5, 2})}});
      }
    }
  }
  all.push_back({"1d", op_of(OpTag::kGridSample), {activation({1, 2, 5}), activation({1, 4, 1})}});
  all.push_back({"3d",
                 op_of(OpTag::kGridSample),
                 {activation({1, 1, 3, 3, 3}), activation({1, 2, 2, 2, 3})}});
  all.push_back({"special",
                 op_of(OpTag::kGridSample),
                 {activation({1, 1, 4, 4}), activation({1, 6, 6, 2}, Fill::kSpecial)}});
  all.push_back({"f16",
                 op_of(OpTag::kGridSample),
                 {activation({1, 1, 4, 4}, Fill::kNormal, DType::kF16),
                  activation({1, 2, 2, 2}, Fill::kNormal, DType::kF16)}});
  return all;
}

CaseList interpolations() {
  CaseList all;
  for (std::int64_t mode = 0; mode < 3; ++mode) {
    for (const std::int64_t align : {0, 1}) {
      const std::string name = std::to_string(mode) + std::to_string(align);
      all.push_back(
          {"scale_" + name,
           op_of(OpTag::kInterpolate, {{"mode", mode}, {"scale", 1.7F}, {"align_corners", align}}),
           {activation({1, 2, 4, 5})}});
      all.push_back({"size_" + name,
                     op_of(OpTag::kInterpolate,
                           {{"mode", mode}, {"align_corners", align}, {"out_h", 3}, {"out_w", 2}}),
                     {activation({1, 2, 7, 5})}});
    }
  }
  all.push_back({"f16",
                 op_of(OpTag::kInterpolate, {{"mode", 1}, {"scale", 2.0F}}),
                 {activation({1, 1, 2, 3}, Fill::kNormal, DType::kF16)}});
  return all;
}

const In kBoxes = given({1, 6, 4}, {0, 0,  1, 1,  0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                                    0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100,  1, 101},
                        DType::kF32);
const In kScores = given({1, 1, 6}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.3}, DType::kF32);
const Op kNms = op_of(OpTag::kNonMaxSuppression, {{"iou", 0.5F}, {"score", 0.1F}, {"max", 3}});

Op roi(std::int64_t mode, std::int64_t ratio, std::int64_t half) {
  return op_of(OpTag::kRoiAlign, {{"mode", mode},
                                  {"out_h", 2},
                                  {"out_w", 3},
                                  {"sampling_ratio", ratio},
                                  {"spatial_scale", 0.5F},
                                  {"half_pixel", half}});
}

const In kRois = given({3, 4}, {0, 0, 7, 5, 2, 2, 9, 9, 5, 1, 3, 0}, DType::kF32);

const CaseTable kTables[] = {
    {OpTag::kResize, resizes()},
    {OpTag::kInterpolate, interpolations()},
    {OpTag::kGridSample, grids()},
    {OpTag::kAffineGrid,
     {{"2d", op_of(OpTag::kAffineGrid), {activation({2, 2, 3}), given({2, 1, 3, 4})}},
      {"3d",
       op_of(OpTag::kAffineGrid, {{"align_corners", 1}}),
       {activation({1, 3, 4}), given({1, 1, 2, 1, 3})}}}},
    {OpTag::kNonMaxSuppression,
     {{"three", kNms, {kBoxes, kScores}},
      {"random", kNms, {activation({2, 9, 4}), activation({2, 3, 9})}}}},
    {OpTag::kNmsBy,
     {{"three",
       op_of(OpTag::kNmsBy),
       {kBoxes, kScores, given({3}), given({0.5}, DType::kF32), given({0}, DType::kF32)}},
      {"none", op_of(OpTag::kNmsBy), {kBoxes, kScores}},
      {"center",
       op_of(OpTag::kNmsBy, {{"center", 1}}),
       {activation({2, 9, 4}, Fill::kPositive), activation({2, 3, 9}), given({4}),
        given({0.3}, DType::kF32)}}}},
    {OpTag::kRoiAlign,
     {{"avg", roi(0, 2, 1), {activation({2, 3, 5, 6}), kRois, given({0, 1, 0})}},
      {"adaptive", roi(0, 0, 0), {activation({2, 3, 5, 6}), kRois, given({0, 1, 1})}},
      {"max", roi(1, 2, 0), {activation({2, 3, 5, 6}), kRois, given({1, 1, 0})}}}},
};

}  // namespace
}  // namespace cyb::test
