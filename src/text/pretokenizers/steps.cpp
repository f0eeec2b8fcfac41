// The steps, one class each; known_patterns has those that stand for an expression.
#include "text/pretokenizers/steps.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/utf8.hpp"
#include "text/pipeline/fields.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/pretokenizers/known_patterns.hpp"
#include "text/pretokenizers/pretokenizer.hpp"
#include "text/pretokenizers/splitting.hpp"
#include "text/pretokenizers/unicode_scripts.hpp"
#include "text/regex/regex.hpp"
#include "text/tokenizers/byte_level.hpp"
#include "text/tokenizers/char_tests.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;
using Step = std::unique_ptr<PreTokenizerStep>;

// \w+|[^\w\s]+ as Rust reads it, which counts the two joiners as parts of words.
constexpr std::string_view kRustWords =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{L}\x{200C}\x{200D}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{L}\x{200C}\x{200D}\s]+)";

Result<Behavior> behavior_of(Fields& fields, std::string fallback) {
  CYB_ASSIGN(const std::string name, fields.text("behavior", std::move(fallback)));
  if (name == "Removed" || name == "removed") return Behavior::kRemoved;
  if (name == "Isolated" || name == "isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious" || name == "merged_with_previous") return Behavior::kPrevious;
  if (name == "MergedWithNext" || name == "merged_with_next") return Behavior::kNext;
  if (name == "Contiguous" || name == "contiguous") return Behavior::kContiguous;
  return fail(fields.refused(fmt::format("behavior \"{}\"", name)));
}

/// Cuts at what a regular expression finds.
class SplitRegex final : public PreTokenizerStep {
 public:
  SplitRegex(Regex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}

  Result<void> apply(Pieces& pieces) const override {
    return split(pieces, behavior_, invert_,
                 [this](std::string_view text, const auto& match) { return find(text, match); });
  }

 private:
  Result<void> find(std::string_view text, const auto& match) const {
    RegexScan scan(regex_, text);
    std::size_t done = 0;
    for (std::size_t at = 0; at <= text.size();) {
      CYB_ASSIGN(const RegexScan::Match found, scan.find(at));
      if (!found.found) break;
      const bool empty = found.begin == found.end;
      at = found.end;
      if (empty) at += at < text.size() ? valid_size(static_cast<unsigned char>(text[at])) : 1;
      if (empty && found.begin == done && done > 0) continue;
      match(found.begin, found.end);
      done = found.end;
    }
    return {};
  }

  Regex regex_;
  Behavior behavior_;
  bool invert_;
};

/// Cuts at each place where `text` stands.
class SplitText final : public PreTokenizerStep {
 public:
  SplitText(std::string text, Behavior behavior, bool invert)
      : text_(std::move(text)), behavior_(behavior), invert_(invert) {}

  Result<void> apply(Pieces& pieces) const override {
    return split(pieces, behavior_, invert_,
                 [this](std::string_view text, const auto& match) -> Result<void> {
                   std::size_t at = text_.empty() ? text.npos : text.find(text_);
                   for (; at != text.npos; at = text.find(text_, at + text_.size()))
                     match(at, at + text_.size());
                   return {};
                 });
  }

 private:
  std::string text_;
  Behavior behavior_;
  bool invert_;
};

/// Cuts at each character of a kind.
class SplitChars final : public PreTokenizerStep {
 public:
  using Test = bool (*)(char32_t) noexcept;
  SplitChars(Test test, Behavior behavior) : test_(test), behavior_(behavior) {}

  Result<void> apply(Pieces& pieces) const override {
    return split(pieces, behavior_, false,
                 [this](std::string_view text, const auto& match) -> Result<void> {
                   std::size_t size = 0;
                   for (std::size_t at = 0; at < text.size(); at += size) {
                     size = valid_size(static_cast<unsigned char>(text[at]));
                     if (test_(decode_valid(text, at, size))) match(at, at + size);
                   }
                   return {};
                 });
  }

 private:
  Test test_;
  Behavior behavior_;
};

class FixedLength final : public PreTokenizerStep {
 public:
  explicit FixedLength(std::int64_t length) : length_(length) {}

  Result<void> apply(Pieces& pieces) const override {
    std::vector<Piece> out;
    for (const Piece& piece : pieces.list) {
      std::size_t begin = piece.begin;
      std::int64_t count = 0;
      for (std::size_t at = piece.begin; at < piece.end;) {
        at += valid_size(static_cast<unsigned char>(pieces.text[at]));
        if (++count < length_ && at < piece.end) continue;
        out.push_back({begin, at, piece.at_start && begin == piece.begin});
        begin = at;
        count = 0;
      }
    }
    pieces.list = std::move(out);
    return {};
  }

 private:
  std::int64_t length_;
};

/// New text for every piece.
Result<void> rewrite(Pieces& pieces,
                     const std::function<std::string(std::string_view, bool)>& make) {
  Pieces out;
  out.shifted = pieces.shifted;
  out.text.reserve(pieces.text.size() * 2);
  out.list.reserve(pieces.list.size());
  for (const Piece& piece : pieces.list) {
    const std::size_t begin = out.text.size();
    out.text += make(pieces.of(piece), piece.at_start);
    out.list.push_back({begin, out.text.size(), piece.at_start});
  }
  pieces = std::move(out);
  return {};
}

class ByteLevel final : public PreTokenizerStep {
 public:
  ByteLevel(bool prefix, bool cuts, bool as_bytes)
      : prefix_(prefix), cuts_(cuts), as_bytes_(as_bytes) {}

  Result<void> apply(Pieces& pieces) const override {
    if (prefix_) {
      CYB_TRY(rewrite(pieces, [](std::string_view text, bool) {
        return (text.starts_with(' ') ? "" : " ") + std::string(text);
      }));
    }
    if (cuts_) cut(pieces);
    if (as_bytes_) return {};
    return rewrite(pieces, [](std::string_view text, bool) { return byte_level_text(text); });
  }

 private:
  static void cut(Pieces& pieces) {
    const NextPiece next = next_piece(PreTokenizer::kGpt2);
    std::vector<Piece> out;
    out.reserve(pieces.text.size() / 4 + pieces.list.size());
    for (const Piece& piece : pieces.list) {
      const std::string_view text = pieces.of(piece);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = next(text, at);
        out.push_back({piece.begin + at, piece.begin + end, piece.at_start && at == 0});
        at = end;
      }
    }
    pieces.list = std::move(out);
  }

  bool prefix_, cuts_, as_bytes_;
};

class Metaspace final : public PreTokenizerStep {
 public:
  enum class Scheme : std::uint8_t { kNever, kFirst, kAlways };
  Metaspace(std::string mark, Scheme scheme, bool split)
      : mark_(mark),
        scheme_(scheme),
        split_(split),
        cut_(std::move(mark), Behavior::kNext, false) {}

  Result<void> apply(Pieces& pieces) const override {
    CYB_TRY(rewrite(pieces, [this](std::string_view text, bool at_start) {
      const bool wanted = scheme_ == Scheme::kAlways || (scheme_ == Scheme::kFirst && at_start);
      const bool there = text.starts_with(' ') || text.starts_with(mark_);
      std::string out = wanted && !there && !text.empty() ? mark_ : std::string();
      for (const char c : text) {
        if (c == ' ') {
          out += mark_;
        } else {
          out += c;
        }
      }
      return out;
    }));
    return split_ ? cut_.apply(pieces) : Result<void>();
  }

 private:
  std::string mark_;
  Scheme scheme_;
  bool split_;
  SplitText cut_;
};

/// Several steps as one.
class Chain final : public PreTokenizerStep {
 public:
  explicit Chain(std::vector<Step> steps) : steps_(std::move(steps)) {}
  Result<void> apply(Pieces& pieces) const override {
    for (const Step& step : steps_) CYB_TRY(step->apply(pieces));
    return {};
  }

 private:
  std::vector<Step> steps_;
};

Result<Step> make_split(Fields& fields) {
  const json& pattern = fields.raw("pattern");
  CYB_ASSIGN(const Behavior behavior, behavior_of(fields, "Removed"));
  CYB_ASSIGN(const bool invert, fields.flag("invert", false));
  const bool one = pattern.is_object() && pattern.size() == 1 && pattern.begin()->is_string();
  if (one && pattern.begin().key() == "Regex") {
    const std::string& expression = pattern.begin()->get_ref<const std::string&>();
    if (behavior == Behavior::kIsolated && !invert) {
      if (Step known = known_pattern(expression)) return known;
    }
    CYB_ASSIGN(Regex regex, Regex::compile(expression));
    return Step(new SplitRegex(std::move(regex), behavior, invert));
  }
  if (one && pattern.begin().key() == "String") {
    return Step(new SplitText(pattern.begin()->get<std::string>(), behavior, invert));
  }
  return fail(fields.refused("pattern"));
}

Result<Step> make_metaspace(Fields& fields) {
  CYB_ASSIGN(std::string mark, fields.text("replacement", "\xE2\x96\x81"));
  const std::size_t size = mark.empty() ? 0 : valid_size(static_cast<unsigned char>(mark[0]));
  if (size == 0 || mark.size() != size) return fail(fields.refused("replacement"));
  CYB_ASSIGN(const bool split, fields.flag("split", true));
  const json& old = fields.raw("add_prefix_space");
  if (!old.is_null() && !old.is_boolean()) return fail(fields.refused("add_prefix_space"));
  CYB_ASSIGN(const std::string scheme,
             fields.text("prepend_scheme", old == false ? "never" : "always"));
  (void)fields.raw("str_rep");
  const auto value = scheme == "always"  ? Metaspace::Scheme::kAlways
                     : scheme == "first" ? Metaspace::Scheme::kFirst
                                         : Metaspace::Scheme::kNever;
  if (value == Metaspace::Scheme::kNever && scheme != "never") {
    return fail(fields.refused(fmt::format("prepend_scheme \"{}\"", scheme)));
  }
  return Step(new Metaspace(std::move(mark), value, split));
}

Result<Step> make_byte_level(Fields& fields, bool as_bytes) {
  CYB_ASSIGN(const bool prefix, fields.flag("add_prefix_space", true));
  CYB_ASSIGN(const bool cuts, fields.flag("use_regex", true));
  CYB_TRY(fields.flag("trim_offsets", true));  // moves offsets only
  return Step(new ByteLevel(prefix, cuts, as_bytes));
}

Step chars(SplitChars::Test test, Behavior behavior) {
  return Step(new SplitChars(test, behavior));
}

Result<Step> make_step(Fields& fields, bool as_bytes) {
  const std::string& type = fields.type();
  if (type == "ByteLevel") return make_byte_level(fields, as_bytes);
  if (type == "Split") return make_split(fields);
  if (type == "Metaspace") return make_metaspace(fields);
  if (type == "Whitespace") {
    CYB_ASSIGN(Regex regex, Regex::compile(kRustWords));
    return Step(new SplitRegex(std::move(regex), Behavior::kRemoved, true));
  }
  if (type == "WhitespaceSplit") return chars(is_white_space, Behavior::kRemoved);
  if (type == "Digits") {
    CYB_ASSIGN(const bool single, fields.flag("individual_digits", false));
    return chars(is_numeric, single ? Behavior::kIsolated : Behavior::kContiguous);
  }
  if (type == "Punctuation") {
    CYB_ASSIGN(const Behavior behavior, behavior_of(fields, "Isolated"));
    return chars(is_punctuation, behavior);
  }
  if (type == "BertPreTokenizer") {
    std::vector<Step> steps;
    steps.push_back(chars(is_white_space, Behavior::kRemoved));
    steps.push_back(chars(is_punctuation, Behavior::kIsolated));
    return Step(new Chain(std::move(steps)));
  }
  if (type == "CharDelimiterSplit") {
    CYB_ASSIGN(std::string delimiter, fields.text("delimiter"));
    return Step(new SplitText(std::move(delimiter), Behavior::kRemoved, false));
  }
  if (type == "UnicodeScripts") return Step(new UnicodeScripts());
  if (type == "FixedLength") {
    CYB_ASSIGN(const std::int64_t length, fields.integer("length", 1, 1 << 20, 5));
    return Step(new FixedLength(length));
  }
  return fail(fields.refused("the component"));
}

}  // namespace

std::string byte_level_text(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 2);
  for (const char byte : bytes) {
    utf8_append(out, byte_to_char(static_cast<std::uint8_t>(byte)));
  }
  return out;
}

Result<Step> make_pre_tokenizer(const json& step, bool as_bytes) {
  Fields fields("pre_tokenizer", step);
  CYB_ASSIGN(Step made, make_step(fields, as_bytes));
  CYB_TRY(fields.done());
  return made;
}

}  // namespace cyb::text
