// The scanners of quadratic expressions.
#include "text/pretokenizers/known_patterns.hpp"

#include <array>
#include <vector>

#include "text/pretokenizers/char_class.hpp"
#include "text/pretokenizers/pretokenizer.hpp"
#include "text/pretokenizers/splitting.hpp"
#include "text/tokenizers/char_tests.hpp"

namespace cyb::text {
namespace {

// Groups of three digits from the right: the groups of a run that ends a word, and the places in a
// run behind which a whole number of groups is left. As expressions they look from every place to
// the end of the run, which is quadratic.
constexpr std::string_view kDigitGroups = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kGroupStarts = R"((?=(\d{3})+(?!\d)))";

class DigitsFromTheRight final : public PreTokenizerStep {
 public:
  /// `starts`: kGroupStarts, else kDigitGroups.
  explicit DigitsFromTheRight(bool starts) : starts_(starts) {}

  Result<void> apply(Pieces& pieces) const override {
    return split(pieces, Behavior::kIsolated, false,
                 [this](std::string_view text, const auto& match) { return find(text, match); });
  }

 private:
  Result<void> find(std::string_view text, const auto& match) const {
    std::vector<std::size_t> ends;  // of the digits of a run
    for (std::size_t at = 0; at < text.size();) {
      std::size_t begin = at;
      ends.clear();
      std::size_t size = 0;
      char32_t c = 0;
      for (; at < text.size(); at += size, ends.push_back(at)) {
        size = valid_size(static_cast<unsigned char>(text[at]));
        c = decode_valid(text, at, size);
        if (!is_decimal(c)) break;
      }
      const bool joined = at < text.size() && is_word(c) && c != 0x200C && c != 0x200D;
      if (at < text.size()) at += size;
      if (ends.empty() || (joined && !starts_)) continue;
      if (starts_ && ends.size() % 3 == 0) match(begin, begin);
      const std::size_t last = starts_ ? ends.size() - 1 : ends.size();
      for (std::size_t n = (ends.size() - 1) % 3; n < last; n += 3) {
        match(starts_ ? ends[n] : begin, ends[n]);
        begin = ends[n];
      }
    }
    return {};
  }

  bool starts_;
};

// Llama 3's expression with white space in groups of a power of two. `\s*[\r\n]+` looks from every
// group to the end of the run, which is quadratic.
constexpr std::string_view kSpaceGroups =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";

class SpaceGroups final : public PreTokenizerStep {
 public:
  Result<void> apply(Pieces& pieces) const override {
    return split(pieces, Behavior::kIsolated, false,
                 [](std::string_view text, const auto& match) { return find(text, match); });
  }

 private:
  static Result<void> find(std::string_view text, const auto& match) {
    std::vector<std::size_t> ends;  // of the characters of a run of white space
    for (std::size_t at = 0; at < text.size();) {
      if (const std::size_t end = llama3_word(text, at); end != 0) {
        match(at, end);
        at = end;
        continue;
      }
      std::size_t newline = at;  // behind the last one of the run
      ends.clear();
      for (std::size_t end = at;;) {
        const Char c = char_at(text, end);
        if (c.size == 0 || c.kind != CharClass::kSpace) break;
        if (text[end] == '\r' || text[end] == '\n') newline = end + 1;
        end += c.size;
        ends.push_back(end);
      }
      if (newline > at) {
        match(at, newline);
        at = newline;
        continue;
      }
      at = groups(at, ends, ends.back() == text.size(), match);
    }
    return {};
  }

  /// All of a run without newlines, but for a last character that belongs to what follows it; where
  /// it stops. `last`: nothing follows.
  static std::size_t groups(std::size_t at, const std::vector<std::size_t>& ends, bool last,
                            const auto& match) {
    constexpr std::array<std::size_t, 10> kSizes{512, 256, 128, 64, 32, 16, 8, 4, 2, 1};
    for (std::size_t done = 0; done < ends.size();) {
      const std::size_t left = ends.size() - done;
      if (left == 1 && !last && done > 0) return at;  // looked at again, with what follows
      std::size_t size = 1;
      for (const std::size_t wanted : kSizes) {
        if (left > wanted || (left == wanted && last)) {
          size = wanted;
          break;
        }
      }
      match(at, ends[done + size - 1]);
      at = ends[done + size - 1];
      done += size;
    }
    return at;
  }
};

}  // namespace

std::unique_ptr<PreTokenizerStep> known_pattern(std::string_view pattern) {
  if (pattern == kDigitGroups) return std::make_unique<DigitsFromTheRight>(false);
  if (pattern == kGroupStarts) return std::make_unique<DigitsFromTheRight>(true);
  if (pattern == kSpaceGroups) return std::make_unique<SpaceGroups>();
  return nullptr;
}

}  // namespace cyb::text
