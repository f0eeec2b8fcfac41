// parse_toml against toml++ on documents of every construct: same values, same refusals.
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <algorithm>
#include <bit>

#include "model/config.hpp"

namespace cyb {
namespace {

std::string dump(const ConfigTable& table);
std::string dump(const ConfigValue& value) {
  if (const bool* flag = value.boolean()) return *flag ? "true" : "false";
  if (const std::int64_t* number = value.integer()) return fmt::format("i{}", *number);
  if (const double* number = value.real())
    return fmt::format("f{:x}", std::bit_cast<std::uint64_t>(*number));
  if (const std::string* text = value.string()) return fmt::format("s{}:{}", text->size(), *text);
  if (const ConfigTable* table = value.table()) return dump(*table);
  std::string out = "[";
  for (const ConfigValue& item : *value.array()) out += dump(item) + ",";
  return out + "]";
}
std::string dump(const ConfigTable& table) {
  std::vector<std::string> items;
  for (const auto& [key, value] : table.items())
    items.push_back(fmt::format("{}:{}={};", key.size(), key, dump(value)));
  std::ranges::sort(items);
  std::string out = "{";
  for (const std::string& item : items) out += item;
  return out + "}";
}

std::string dump(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return v->get() ? "true" : "false";
  if (const auto* v = node.as_integer()) return fmt::format("i{}", v->get());
  if (const auto* v = node.as_floating_point())
    return fmt::format("f{:x}", std::bit_cast<std::uint64_t>(v->get()));
  if (const auto* v = node.as_string()) return fmt::format("s{}:{}", v->get().size(), v->get());
  if (const auto* v = node.as_array()) {
    std::string out = "[";
    for (const toml::node& item : *v) out += dump(item) + ",";
    return out + "]";
  }
  if (const auto* v = node.as_table()) {
    std::vector<std::string> items;
    for (auto&& [key, value] : *v)
      items.push_back(fmt::format("{}:{}={};", key.str().size(), key.str(), dump(value)));
    std::ranges::sort(items);
    std::string out = "{";
    for (const std::string& item : items) out += item;
    return out + "}";
  }
  return "date";
}

TEST(TomlOracle, SameValues) {
  for (const std::string_view text :
       {"",
        "# only a comment",
        "a=1",
        "a = 1 # c\n\n\nb = 2",
        "\"quoted key\" = 1\n'lit\"eral' = 2\nbare-key_1 = 3\n1234 = 4",
        "i = [0, -0, +5, 99, 1_000, 5_349_221, -17, 9223372036854775807, -9223372036854775808]",
        "h = [0xDEADBEEF, 0xdead_beef, 0o755, 0b1101_0110]",
        "f = [1.0, 3.1415, -0.01, 5e+22, 1e06, -2E-2, 6.626e-34, 224_617.445_991_228, 0.0, -0.0, "
        "1e-300]",
        "s = [inf, +inf, -inf]",
        "b = [true, false]",
        "s = \"tab\\t nl\\n quote\\\" back\\\\ \\u00e9 \\U0001F600 \\b\\f\\r\"\nl = "
        "'C:\\no\\escape'\ne = ''\nf = \"\"",
        "m = \"\"\"\nRoses\nViolets\"\"\"\nn = \"\"\"one \\\n   two \\  \n\n  three\"\"\"\nq = "
        "\"\"\"a \"\"quoted\"\" b\"\"\"\nr = \"\"\"x\"\"\"\"\"\n",
        "m = '''\nraw \\n \\u00e9\nlines'''\nq = ''''that,' she said, 'is'''''",
        "e = \"\"\"\"\"\"\nf = ''''''",
        "a = [\n 1, # one\n 2,\n]\nb = [[1, 2], [\"x\"], []]\nc = [ {x = 1}, {y = 2} ]\nd = [1, "
        "\"mixed\", {z = [3]}]",
        "t = {}\nu = { a = 1, b.c = 2, \"d e\" = { f = 3 } }",
        "fruit.apple.color = 1\nfruit.orange = 2\nfruit . apple . taste = 3",
        "[a]\nx = 1\n[a.b]\ny = 2\n[c.d.e]\n[c]\nz = 3\n[ g . h ]\n[g.\"i.j\"]",
        "[a.b]\nx = 1\n[a]\ny = 2\n[a.c]\n",
        "[fruit]\napple.color = 1\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = true",
        "[[p]]\nn = 1\n[[p]]\n[[p]]\nn = 3\n[p.sub]\nk = 1\n[[p.list]]\nv = 1\n[[p.list]]\nv = 2",
        "[x.y]\n[[x.z]]\n[[x.z]]\nk.l = 1"}) {
    const auto ours = parse_toml(text, "x");
    const auto theirs = toml::parse(text);
    ASSERT_TRUE(static_cast<bool>(theirs)) << text;
    ASSERT_TRUE(ours.has_value()) << text << ": " << ours.error().text();
    EXPECT_EQ(dump(*ours), dump(static_cast<const toml::node&>(theirs.table()))) << text;
    // And through the canonical text.
    const auto again = parse_toml(write_toml(*ours), "x");
    ASSERT_TRUE(again.has_value()) << write_toml(*ours) << again.error().text();
    EXPECT_EQ(dump(*again), dump(*ours));
  }
}

TEST(TomlOracle, SameRefusals) {
  for (const std::string_view text : {"a",
                                      "a =",
                                      "= 1",
                                      "a = 1 b = 2",
                                      "a == 1",
                                      "a.= 1",
                                      ".a = 1",
                                      "a b = 1",
                                      "[a",
                                      "[a]]",
                                      "[]",
                                      "[[a]",
                                      "[a]x = 1",
                                      "[a.]",
                                      "a = 01",
                                      "a = 1__0",
                                      "a = _1",
                                      "a = 1_",
                                      "a = +-1",
                                      "a = 0x",
                                      "a = 0xG",
                                      "a = -0x1",
                                      "a = 0o8",
                                      "a = 9223372036854775808",
                                      "a = 1.",
                                      "a = .5",
                                      "a = 1.e2",
                                      "a = 1e",
                                      "a = 1e+",
                                      "a = 03.14",
                                      "a = 1._2",
                                      "a = True",
                                      "a = infinity",
                                      "a = tru",
                                      "a = \"x",
                                      "a = 'x",
                                      "a = \"\\x\"",
                                      "a = \"\\u12\"",
                                      "a = \"\\ud800\"",
                                      "a = \"\\U00110000\"",
                                      "a = \"x\ny\"",
                                      "a = \"\"\"x",
                                      "a = '''x''",
                                      "a = [1",
                                      "a = [1 2]",
                                      "a = [,]",
                                      "a = {x = 1",
                                      "a = {x = 1,}",
                                      "a = {x = 1\n}",
                                      "a = {x = 1, x = 2}",
                                      "a = 1\na = 2",
                                      "a = 1\na.b = 2",
                                      "a.b = 1\na = 2",
                                      "[a]\n[a]",
                                      "a = {}\n[a.b]",
                                      "a = []\n[[a]]",
                                      "[[a]]\n[a]",
                                      "[a]\n[[a]]",
                                      "a.b = 1\n[a]",
                                      "[a.b]\n[a]\nb.c = 1",
                                      "a = [1]\n[a.b]",
                                      "[a]\nb.c = 1\n[a.b]"}) {
    EXPECT_FALSE(static_cast<bool>(toml::parse(text))) << text;
    EXPECT_FALSE(parse_toml(text, "x").has_value()) << text;
  }
}

TEST(TomlOracle, WhatTheOtherParserTripsOver) {
  for (const std::string_view text : {"[=", "[[=", "[~~", "[", "[["}) {
    EXPECT_EQ(parse_toml(text, "x").error().code(), "F02") << text;
  }
}

}  // namespace
}  // namespace cyb
