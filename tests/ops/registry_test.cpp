// The op registry: every line of op_list.inc is complete, found by tag and name, and consistent.
#include <gtest/gtest.h>

#include <set>

#include "ops/control/control.hpp"
#include "ops/op.hpp"

namespace cyb {
namespace {

TEST(Registry, EveryOpIsFoundByTagAndName) {
  for (const OpInfo& op : all_ops()) {
    EXPECT_EQ(find_op(static_cast<std::uint16_t>(op.tag)), &op) << op.name;
    EXPECT_EQ(find_op(op.name), &op) << op.name;
    EXPECT_EQ(&op_info(op.tag), &op) << op.name;
  }
  EXPECT_EQ(find_op(std::uint16_t{9999}), nullptr);
  EXPECT_EQ(find_op("NoSuchOp"), nullptr);
}

TEST(Registry, TagsAndNamesAreUnique) {
  std::set<std::uint16_t> tags;
  std::set<std::string_view> names;
  for (const OpInfo& op : all_ops()) {
    EXPECT_TRUE(tags.insert(static_cast<std::uint16_t>(op.tag)).second) << op.name;
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
  }
}

TEST(Registry, EveryOpHasARuleAndAWayToRun) {
  for (const OpInfo& op : all_ops()) {
    EXPECT_NE(op.infer, nullptr) << op.name;
    EXPECT_EQ(op.decompose != nullptr, op.fused) << op.name;
    const bool stateful = op.tag == OpTag::kKvCache;
    EXPECT_EQ(op.reference == nullptr, op.fused || stateful || is_control(op.tag)) << op.name;
    EXPECT_EQ(op.cls == ToleranceClass::kF, op.fused) << op.name;
  }
}

TEST(Registry, PayloadFieldsHaveDistinctNames) {
  for (const OpInfo& op : all_ops()) {
    std::set<std::string_view> names;
    for (const AttrSpec& field : op.attrs) EXPECT_TRUE(names.insert(field.name).second) << op.name;
  }
}

TEST(Registry, FusedTagsOfFilesAre180To199) {
  for (const OpInfo& op : all_ops()) {
    const auto tag = static_cast<unsigned>(op.tag);
    const bool fused_tag = (tag >= 180 && tag < 199) || tag >= 480;
    EXPECT_EQ(op.fused, fused_tag) << op.name;
  }
}

}  // namespace
}  // namespace cyb
