// Hashes against published vectors, the bounded reader at its edges, UTF-8 by Unicode's
// maximal-subpart examples, Philox.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/checked.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/philox.hpp"
#include "base/reader.hpp"
#include "base/utf8.hpp"

namespace cyb {
namespace {

/// The input of the official BLAKE3 test vectors: bytes 0, 1, ..., 250, 0, 1, ...
std::string vector_input(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

TEST(Hash, Blake3OfficialVectors) {
  EXPECT_EQ(hex(blake3("")), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  EXPECT_EQ(hex(blake3(vector_input(1))),
            "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213");
  EXPECT_EQ(hex(blake3(vector_input(1024))),
            "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7");
  EXPECT_EQ(hex(blake3(vector_input(102400))),
            "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085");
}

TEST(Hash, PiecesEqualTheWhole) {
  const std::string text = vector_input(70'001);
  Blake3 hasher;
  for (std::size_t at = 0; at < text.size(); at += 997)
    hasher.update(std::string_view(text).substr(at, 997));
  EXPECT_EQ(hasher.finish(), blake3(text));
  EXPECT_EQ(hasher.finish(), blake3(text));
}

TEST(Hash, DigestText) {
  const Digest digest = blake3("x");
  EXPECT_EQ(digest_text(digest), "blake3:" + hex(digest));
  EXPECT_EQ(parse_digest(digest_text(digest)), digest);
  EXPECT_EQ(parse_digest(hex(digest)), digest);
  EXPECT_FALSE(parse_digest(hex(digest).substr(1)));
  EXPECT_FALSE(parse_digest(hex(digest) + "0"));
  std::string upper = hex(digest);
  upper[0] = 'G';
  EXPECT_FALSE(parse_digest(upper));
  EXPECT_FALSE(parse_digest(""));
}

TEST(Hash, Crc32cOfRfc3720) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xE3069283u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Reader, ChecksEveryRead) {
  const std::array<std::uint8_t, 9> raw = {1, 0, 0, 0, 0x80, 0x3f, 'a', 'b', 'c'};
  BoundedReader reader(std::as_bytes(std::span(raw)));
  EXPECT_EQ(*reader.read<std::uint32_t>(), 1u);
  EXPECT_EQ(*reader.read<std::int16_t>(), 0x3f80);
  EXPECT_TRUE(reader.can_hold(3, 1));
  EXPECT_FALSE(reader.can_hold(4, 1));
  EXPECT_FALSE(reader.can_hold(UINT64_MAX, 2));
  const auto past = reader.read<std::uint64_t>();
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code(), "F11");
  EXPECT_EQ(reader.position(), 6u);
  EXPECT_FALSE(reader.take(UINT64_MAX));
  EXPECT_EQ(*reader.take_text(3), "abc");
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_TRUE(reader.take(0));
  EXPECT_TRUE(reader.seek(9));
  EXPECT_FALSE(reader.seek(10));
  EXPECT_TRUE(reader.seek(0));
}

TEST(Checked, Overflow) {
  EXPECT_EQ(checked_add(1, 2), 3u);
  EXPECT_FALSE(checked_add(UINT64_MAX, 1));
  EXPECT_FALSE(checked_mul(std::uint64_t{1} << 63, 2));
  EXPECT_EQ(checked_round_up(65, 64), 128u);
  EXPECT_EQ(checked_round_up(128, 64), 128u);
  EXPECT_FALSE(checked_round_up(UINT64_MAX, 64));
  EXPECT_TRUE(range_fits(4, 6, 10));
  EXPECT_FALSE(range_fits(4, 7, 10));
  EXPECT_FALSE(range_fits(UINT64_MAX, 2, 10));
}

TEST(Utf8, MaximalSubpartsOfTheStandard) {
  // Unicode 15, section 3.9, tables 3-8 to 3-11: each line's replacement characters.
  const std::string fffd = "\xEF\xBF\xBD";
  const auto times = [&](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += fffd;
    return out;
  };
  EXPECT_EQ(utf8_replace_invalid("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), times(8) + "A");
  EXPECT_EQ(utf8_replace_invalid("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), times(8) + "A");
  EXPECT_EQ(utf8_replace_invalid("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            times(5) + "A" + times(2) + "B");
  EXPECT_EQ(utf8_replace_invalid("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), times(4) + "A");
}

TEST(Utf8, RoundTripOfEveryScalar) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    utf8_append(text, c);
    const Utf8Char read = utf8_next(text, 0);
    ASSERT_TRUE(read.valid);
    ASSERT_EQ(read.code_point, c);
    ASSERT_EQ(read.size, text.size());
  }
}

TEST(Utf8, CompletePrefixHoldsBackOnlyWhatCanStillGrow) {
  EXPECT_EQ(utf8_complete_prefix("a\xE2\x82"), 1u);
  EXPECT_EQ(utf8_complete_prefix("a\xE2\x82\xAC"), 4u);
  EXPECT_EQ(utf8_complete_prefix("a\xF0"), 1u);
  EXPECT_EQ(utf8_complete_prefix("a\xFF"), 2u);
  EXPECT_EQ(utf8_complete_prefix("\x80\x80\x80\x80\x80"), 5u);
  EXPECT_EQ(utf8_complete_prefix(""), 0u);
  EXPECT_EQ(utf8_find_invalid("ab\xC3\xA9"), std::string_view::npos);
  EXPECT_EQ(utf8_find_invalid("ab\xC3"), 2u);
}

TEST(Philox, KnownAnswers) {
  // Random123's kat_vectors, philox4x32 10 rounds.
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, UINT64_MAX),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822u),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const float u = philox_uniform(7, i, 0);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
  }
}

TEST(Limits, TableIsWholeAndDistinct) {
  std::set<std::string_view> names;
  for (const Limit& limit : all_limits()) {
    EXPECT_TRUE(names.insert(limit.name).second) << limit.name;
    EXPECT_GT(limit.value, 0u);
    EXPECT_FALSE(limit.what.empty());
  }
  EXPECT_GE(names.size(), 15u);
  EXPECT_EQ(kMaxVocab, 4u << 20);
}

class Remember final : public LogSink {
 public:
  void write(LogLevel level, std::string_view text) noexcept override {
    seen.emplace_back(level, std::string(text));
  }
  std::vector<std::pair<LogLevel, std::string>> seen;
};

TEST(Log, GoesToTheSinkOrNowhere) {
  log_info("nobody listens");
  EXPECT_FALSE(log_enabled());
  const auto sink = std::make_shared<Remember>();
  EXPECT_EQ(set_log_sink(sink), nullptr);
  log_warning("w");
  EXPECT_EQ(set_log_sink(nullptr), sink);
  log_error("gone");
  ASSERT_EQ(sink->seen.size(), 1u);
  EXPECT_EQ(sink->seen[0].second, "w");
  EXPECT_EQ(sink->seen[0].first, LogLevel::kWarning);
}

TEST(JsonText, FindsWholeNumbersBeyond64Bits) {
  for (const char* fits : {"", "[18446744073709551615, -9223372036854775808, 0]",
                           "000000000000000000000001", "\"99999999999999999999999\"", "1e99",
                           "123456789012345678901234.0", "\"\\\"99999999999999999999999\"", "-"}) {
    EXPECT_EQ(find_wide_integer(fits), std::string_view::npos) << fits;
  }
  EXPECT_EQ(find_wide_integer("18446744073709551616"), 0u);
  EXPECT_EQ(find_wide_integer("[1, -9223372036854775809]"), 4u);
  EXPECT_EQ(find_wide_integer("{\"99999999999999999999999\": 99999999999999999999999}"), 28u);
}

}  // namespace
}  // namespace cyb
