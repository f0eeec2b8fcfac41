// The pieces of the command line that need no model: numbers, id lists, text for terminals, sizes.
#include <gtest/gtest.h>

#include <string>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/text_input.hpp"

namespace cyb::cli {
namespace {

TEST(Numbers, OnlyWholeTexts) {
  EXPECT_EQ(parse_integer("0"), 0u);
  EXPECT_EQ(parse_integer("18446744073709551615"), UINT64_MAX);
  for (const char* bad :
       {"", "-1", "+1", " 1", "1 ", "1.0", "0x10", "18446744073709551616", "1e3", "one"}) {
    EXPECT_FALSE(parse_integer(bad)) << bad;
  }
  EXPECT_EQ(parse_real("0.8"), 0.8);
  EXPECT_EQ(parse_real("1e-3"), 1e-3);
  for (const char* bad : {"", "nan", "inf", "0.8x", " 1", "1,5", "0x1p3"})
    EXPECT_FALSE(parse_real(bad)) << bad;
}

TEST(Ids, Lists) {
  EXPECT_EQ(*parse_ids("1,2,3"), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(*parse_ids("[1, 2]\n"), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(parse_ids("1,x").error().text(), "input: \"x\" is not a token id");
  EXPECT_EQ(parse_ids("-1").error().text(), "input: \"-1\" is not a token id");
  EXPECT_FALSE(parse_ids("2147483648"));
  EXPECT_EQ(parse_ids(" ,").error().text(), "input: no token ids");
}

TEST(TerminalText, ControlCharactersAreNotObeyed) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(terminal_safe("a\tb\n\xC3\xA9"), "a\tb\n\xC3\xA9");
  EXPECT_EQ(terminal_safe("\x1b[2J\x07\x7f\r"), bad + "[2J" + bad + bad + bad);
  EXPECT_EQ(terminal_safe("\xC2\x9B"), bad);  // CSI as one C1 character
  EXPECT_EQ(terminal_safe("\xFFx"), bad + "x");
}

TEST(Sizes, Text) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(98362432), "93.8 MiB");
}

TEST(Arguments, TextComesFromOnePlace) {
  EXPECT_EQ(*text_argument("a", std::nullopt, "the text"), "a");
  EXPECT_EQ(text_argument("a", "f", "the text").error().text(),
            "input: the text is given twice: as argument and as file");
  EXPECT_EQ(text_argument(std::nullopt, "/no/such/file", "the text").error().kind(),
            ErrorKind::kIo);
}

}  // namespace
}  // namespace cyb::cli
