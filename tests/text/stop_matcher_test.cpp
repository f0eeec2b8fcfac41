// Case V01: stop strings over any split of the text, text held back no longer than it must be.
#include "text/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cyb {
namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
};

Outcome feed(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(std::move(stops));
  Outcome out;
  for (const std::string& piece : pieces)
    out.stopped = matcher.push(piece, out.text) || out.stopped;
  matcher.flush(out.text);
  return out;
}

TEST(StopMatcher, SplitOverTokens) {
  const Outcome out = feed({"DEFGHIJ"}, {"DEF", "G", "HI", "J"});
  EXPECT_EQ(out.text, "");
  EXPECT_TRUE(out.stopped);
}

TEST(StopMatcher, EverySplitOfAStop) {
  const std::string text = "abDEFGHIJxyz";
  for (unsigned cuts = 0; cuts < 1U << (text.size() - 1); ++cuts) {
    std::vector<std::string> pieces(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      pieces.back() += text[i];
      if (i + 1 < text.size() && (cuts >> i & 1U) != 0) pieces.emplace_back();
    }
    const Outcome out = feed({"DEFGHIJ"}, pieces);
    ASSERT_EQ(out.text, "ab") << cuts;
    ASSERT_TRUE(out.stopped);
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayStillMatch) {
  StopMatcher matcher({"STOP", "\n\nQ"});
  std::string out;
  const auto after = [&](const char* piece) {
    matcher.push(piece, out);
    return out;
  };
  EXPECT_EQ(after("a"), "a");
  EXPECT_EQ(after("S"), "a");
  EXPECT_EQ(after("TO"), "a");
  EXPECT_EQ(after("S"), "aSTO");
  EXPECT_EQ(after("x"), "aSTOSx");
  EXPECT_EQ(after("\n"), "aSTOSx");
  EXPECT_EQ(after("\n"), "aSTOSx");
  EXPECT_EQ(after("\n"), "aSTOSx\n");
  EXPECT_TRUE(matcher.push("Qrest", out));
  EXPECT_EQ(out, "aSTOSx\n");
  EXPECT_TRUE(matcher.push("more", out));
  matcher.flush(out);
  EXPECT_EQ(out, "aSTOSx\n");
  matcher.reset();
  EXPECT_FALSE(matcher.push("fresh ST", out));
  matcher.flush(out);
  EXPECT_EQ(out, "aSTOSx\nfresh ST");
}

// Whatever the stops and the pieces: the text before the stop that is complete first (of those, the
// one that begins first).
TEST(StopMatcher, EqualsASearchInTheWholeText) {
  std::mt19937 random(11);
  const auto word = [&](std::size_t longest) {
    std::string out(1 + random() % longest, 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops, pieces;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) stops.push_back(word(6));
    std::string text;
    for (std::size_t i = 0; i < random() % 12; ++i) {
      pieces.push_back(word(4));
      text += pieces.back();
    }
    std::size_t end = std::string::npos, begin = text.size();
    for (const std::string& stop : stops) {
      const std::size_t found = text.find(stop);
      if (found == std::string::npos) continue;
      if (found + stop.size() < end || (found + stop.size() == end && found < begin)) {
        end = found + stop.size();
        begin = found;
      }
    }
    const Outcome out = feed(stops, pieces);
    ASSERT_EQ(out.text, text.substr(0, begin)) << text;
    ASSERT_EQ(out.stopped, end != std::string::npos) << text;
  }
}

TEST(StopMatcher, NoStops) {
  StopMatcher matcher({""});
  std::string out;
  EXPECT_FALSE(matcher.push("abc", out));
  EXPECT_EQ(out, "abc");
}

}  // namespace
}  // namespace cyb
