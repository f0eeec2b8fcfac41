// TOML trees: order, errors, canonical text, checked access; and agreement with a streaming read.
#include "model/config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_toml(text, "config");
  return parsed ? "accepted" : parsed.error().code() + " " + parsed.error().message();
}

TEST(Toml, KeepsTheOrderOfTheText) {
  const std::string text =
      "zeta = 1\nalpha = \"x\"\nmid = [1, 2.5, \"s\", true]\n\n[z]\nb = 1\na = 2\n\n[z.inner]\ny = "
      "1\nx = 2\n\n"
      "[[list]]\nname = \"b\"\n\n[[list]]\nname = \"a\"\n\n[list.sub]\nk = 1\n\n[a]\nv = -0.0\n";
  const auto table = parse_toml(text, "config");
  ASSERT_TRUE(table.has_value()) << table.error().text();
  EXPECT_EQ(write_toml(*table), text);
}

TEST(Toml, CanonicalTextOfNumbers) {
  ConfigTable table;
  const double values[] = {1e-5,
                           10000.0,
                           0.1,
                           1e22,
                           1e300,
                           5e-324,
                           1.0,
                           -2.5,
                           1e-6,
                           500000.0,
                           1e6,
                           0.08838834764831845,
                           std::numeric_limits<double>::infinity()};
  for (const double value : values) table.append("k" + std::to_string(table.items().size()), value);
  EXPECT_EQ(
      write_toml(table),
      "k0 = 1e-5\nk1 = 10000.0\nk2 = 0.1\nk3 = 1e22\nk4 = 1e300\nk5 = 5e-324\nk6 = 1.0\nk7 = -2.5\n"
      "k8 = 1e-6\nk9 = 5e5\nk10 = 1e6\nk11 = 0.08838834764831845\nk12 = inf\n");
  const auto back = parse_toml(write_toml(table), "config");
  ASSERT_TRUE(back.has_value()) << back.error().text();
  for (std::size_t i = 0; i < std::size(values); ++i)
    EXPECT_EQ(*back->items()[i].second.real(), values[i]);
}

TEST(Toml, StringsSurvive) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\u00e9\u4e2d\U0001F600\u0301";
  ConfigTable table;
  table.set("text", all);
  table.set("key with spaces \u00e9", 1);
  table.set("", 2);
  const auto back = parse_toml(write_toml(table), "config");
  ASSERT_TRUE(back.has_value()) << back.error().text();
  EXPECT_EQ(*back->find("text")->string(), all);
  EXPECT_EQ(*back->find("key with spaces \u00e9")->integer(), 1);
  EXPECT_EQ(*back->find("")->integer(), 2);
  // The streaming reader reads the same string.
  std::string quoted;
  append_toml_string(quoted, all, true);
  EXPECT_EQ(TomlCursor(quoted, "x").string().value(), all);
}

TEST(Toml, TablesInsideArraysAndEmptyOnes) {
  ConfigTable table;
  table.set("mixed", ConfigArray{1, ConfigTable()});
  table.set("none", ConfigArray{});
  table.table("empty");
  table.table("outer").table("inner").set("x", 1);
  const std::string text = write_toml(table);
  EXPECT_EQ(text, "mixed = [1, {}]\nnone = []\n\n[empty]\n\n[outer.inner]\nx = 1\n");
  EXPECT_EQ(write_toml(parse_toml(text, "config").value()), text);
}

TEST(Toml, ErrorsNameLineAndReason) {
  EXPECT_EQ(error_of("a = 1\nb = \n"), "F02 config: TOML error at line 2: expected a value");
  EXPECT_EQ(error_of("a = 1\na = 2\n"), "F09 duplicate key \"a\"");
  EXPECT_EQ(error_of("[t]\n[u]\n[t]\n"), "F09 duplicate key \"t\"");
  EXPECT_EQ(error_of("a = 1\r\n"), "F05 config: CR at byte 5");
  EXPECT_EQ(error_of("\xEF\xBB\xBF"), "F05 config: BOM at byte 0");
  EXPECT_EQ(error_of("a = \"\xC0\x80\"\n"), "F05 config: invalid UTF-8 at byte 5");
  EXPECT_EQ(error_of("a = 2020-01-01T00:00:00Z\n"),
            "F02 config: TOML error at line 1: dates and times are not allowed");
  EXPECT_EQ(error_of("x = '''\n" + std::string(100, '.') + "\n'''\ny = \"" + std::string(100, '.') +
                     "\" # " + std::string(100, '.') + "\n"),
            "accepted");
  EXPECT_EQ(error_of("x = '''\n\n'''\n" + std::string(1, 'a') +
                     [] {
                       std::string dots;
                       for (int i = 0; i < 17; ++i) dots += ".a";
                       return dots;
                     }() +
                     " = 1\n"),
            "F02 config: TOML error at line 4: nested more than 16 levels deep");
}

TEST(Toml, DeepNestingIsRefusedNotFollowed) {
  for (const std::string& open : {std::string("["), std::string("{a="), std::string("{a.b.c.d=")}) {
    std::string text = "x = ";
    for (int i = 0; i < 20000; ++i) text += open;
    EXPECT_EQ(error_of(text).substr(0, 3), "F02");
  }
}

TEST(Config, CheckedAccess) {
  const ConfigTable t =
      parse_toml("i = 5\nf = 0.5\ns = \"x\"\nb = true\nl = [1, 2]\nm = [1, \"x\"]\n[t]\nk = 7\n",
                 "config")
          .value();
  const auto text = [](const auto& result) {
    return result ? "ok" : result.error().code() + " " + result.error().message();
  };
  EXPECT_EQ(t.integer("t.k").value(), 7);
  EXPECT_EQ(t.number("i").value(), 5.0);
  EXPECT_EQ(t.integer_or("nothing", 3).value(), 3);
  EXPECT_EQ(t.numbers_or_empty("l").value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(text(t.integer("t.x")), "F31 config: t.x: missing");
  EXPECT_EQ(text(t.integer("f")), "F31 config: f: wrong type, want integer");
  EXPECT_EQ(text(t.integer_or("s", 1)), "F31 config: s: wrong type, want integer");
  EXPECT_EQ(text(t.number("b")), "F31 config: b: wrong type, want float");
  EXPECT_EQ(text(t.string("i")), "F31 config: i: wrong type, want string");
  EXPECT_EQ(text(t.boolean_or("i", true)), "F31 config: i: wrong type, want bool");
  EXPECT_EQ(text(t.integers_or_empty("m")), "F31 config: m: wrong type, want array of integer");
  EXPECT_EQ(text(t.strings_or_empty("s")), "F31 config: s: wrong type, want array of string");
  EXPECT_EQ(text(t.integer_in("i", 6, 9)), "F31 config: i: out of range: 5 is not in 6..9");
  EXPECT_EQ(t.at("i.x"), nullptr);
}

TEST(Config, CopiesDoNotShareTables) {
  ConfigTable a;
  a.table("t").set("k", 1);
  ConfigTable b = a;
  b.table("t").set("k", 2);
  EXPECT_EQ(a.integer("t.k").value(), 1);
  EXPECT_EQ(b.integer("t.k").value(), 2);
  EXPECT_TRUE(b.erase("t"));
  EXPECT_FALSE(b.erase("t"));
  EXPECT_NE(a.find("t"), nullptr);
}

}  // namespace
}  // namespace cyb
