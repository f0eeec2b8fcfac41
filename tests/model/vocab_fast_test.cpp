// The quick ways of the vocabulary's reader take only what they read exactly: numbers and escapes
// equal those of the general rules.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "model/vocab_text.hpp"

namespace cyb {
namespace {

TEST(VocabFast, ScoresAreRoundedRightly) {
  const std::string_view texts[] = {"-0.0",
                                    "0",
                                    "-1.0",
                                    "7",
                                    "-262144",
                                    "0.1",
                                    "1.10",
                                    "-12.345678",
                                    "123.456",
                                    "0.00000000000001",
                                    "123456789012345",
                                    "1234567890123456",
                                    "0.1234567890123456789",
                                    "3.4028235e38",
                                    "-1e-7",
                                    "16777217.0",
                                    "9007199254740993.0"};
  for (const std::string_view text : texts) {
    double expected = 0;
    std::from_chars(text.data(), text.data() + text.size(), expected);
    for (const char* end : {"\n", " # comment\n", ""}) {
      const auto vocab =
          read_vocab("[tokens]\n0 = \"a\"\n[scores]\n0 = " + std::string(text) + end, 1);
      ASSERT_TRUE(vocab) << text << ": " << vocab.error().text();
      const float score = vocab->scores.empty() ? 0.0f : vocab->scores[0];
      EXPECT_EQ(std::signbit(score), std::signbit(expected)) << text;
      EXPECT_EQ(score, static_cast<float>(expected)) << text;
    }
  }
  for (const std::string_view text : {"-", "1..2", "1.2.3", "--1", "1 2", "0x10", "nan"}) {
    const auto vocab =
        read_vocab("[tokens]\n0 = \"a\"\n[scores]\n0 = " + std::string(text) + "\n", 1);
    EXPECT_FALSE(vocab) << text;
  }
}

TEST(VocabFast, EscapesOfEveryLength) {
  const auto vocab = read_vocab(
      "[tokens]\n0 = \"\\u2581\\u0041\\u00e9\\u07ff\\u0800\\uffff\\U0001f600\\n\"\n"
      "1 = \"x\\u2581\"\n2 = ''\n3 = \"\"\n",
      4);
  ASSERT_TRUE(vocab) << vocab.error().text();
  EXPECT_EQ(vocab->tokens[0],
            "\xE2\x96\x81"
            "A\xC3\xA9\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x9F\x98\x80\n");
  EXPECT_EQ(vocab->tokens[1], "x\xE2\x96\x81");
  EXPECT_EQ(vocab->tokens[2], "");
  EXPECT_EQ(vocab->tokens[3], "");
  for (const char* bad :
       {"\\ud800", "\\udfff", "\\u12", "\\u12g4", "\\u", "\\x41", "\\U00110000"}) {
    const auto refused = read_vocab("[tokens]\n0 = \"" + std::string(bad) + "\"\n", 1);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code(), "F02") << bad;
  }
}

TEST(VocabFast, KeysInEverySpelling) {
  const auto vocab = read_vocab("[tokens]\n0 = \"a\"\n\"1\" = \"b\"\n2=\"c\"\n3  =  \"d\"\n", 4);
  ASSERT_TRUE(vocab) << vocab.error().text();
  EXPECT_EQ(vocab->tokens[3], "d");
  for (const char* bad : {"00", "01", "4194304", "99999999999", "-1", "a", ""}) {
    EXPECT_FALSE(read_vocab("[tokens]\n" + std::string(bad) + " = \"a\"\n", 1)) << bad;
  }
}

}  // namespace
}  // namespace cyb
