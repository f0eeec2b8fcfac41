// JSON as template values: kinds, order, the last of equal keys, and what is refused.
#include "text/template/chat_json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cyb {
namespace {

std::string error_of(std::string_view text) {
  const auto value = parse_chat_json(text, "m.json");
  return value ? "accepted" : value.error().text();
}

TEST(ChatJson, KindsAndOrder) {
  const auto value = parse_chat_json(R"({"b": {}, "a": "x"})", "m.json");
  ASSERT_TRUE(value) << value.error().text();
  ASSERT_EQ(value->kind, ChatValue::Kind::kObject);
  ASSERT_EQ(value->members.size(), 2u);
  EXPECT_EQ(value->members[0].first, "b");
  EXPECT_EQ(value->members[0].second.kind, ChatValue::Kind::kObject);
  EXPECT_EQ(value->members[1].second.text, "x");
  const auto list = parse_chat_json("[1, -2, 1.5, true, null]", "m.json");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 5u);
  EXPECT_EQ(list->items[1].integer, -2);
  EXPECT_EQ(list->items[2].number, 1.5);
  EXPECT_TRUE(list->items[3].boolean);
  EXPECT_EQ(list->items[4].kind, ChatValue::Kind::kNull);
}

TEST(ChatJson, WhatIsRefusedIsNamed) {
  EXPECT_NE(error_of("[1,").find("m.json is not JSON: parse error at line 1, column 4"),
            std::string::npos)
      << error_of("[1,");
  EXPECT_NE(error_of("\"\xFF\"").find("is not JSON"), std::string::npos);
  EXPECT_NE(error_of("").find("is not JSON"), std::string::npos);
  const std::string deep(65, '[');
  EXPECT_NE(error_of(deep + std::string(65, ']')).find("more than 64 levels"), std::string::npos)
      << error_of(deep + std::string(65, ']'));
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "accepted");
  const std::string bomb(1000000, '[');
  EXPECT_NE(error_of(bomb), "accepted");
  for (const char* number : {"18446744073709551615", "9223372036854775808", "18446744073709551616",
                             "-9223372036854775809"}) {
    EXPECT_NE(error_of(number).find("does not fit 64 bits"), std::string::npos) << number;
  }
  EXPECT_EQ(error_of("9223372036854775807"), "accepted");
  EXPECT_NE(error_of("1e999"), "accepted");
  EXPECT_EQ(error_of(R"({"a": {"b": 1}, "c": [{"b": 1}, {"b": 2}]})"), "accepted");
  EXPECT_NE(error_of(R"({"a": 1, "b": {"k": [], "k": 2}})").find("has the key \"k\" twice"),
            std::string::npos);
}

}  // namespace
}  // namespace cyb
