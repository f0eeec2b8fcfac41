// The steps. Lower case and tests of characters are Rust's, since the checkpoints' tokenizers are.
#include "text/normalizers/steps.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.hpp"
#include "text/normalizers/char_map.hpp"
#include "text/normalizers/nfc.hpp"
#include "text/pipeline/fields.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/pretokenizers/steps.hpp"
#include "text/regex/regex.hpp"
#include "text/tokenizers/char_tests.hpp"
#include "text/unicode_tables.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;
using Step = std::unique_ptr<NormalizerStep>;

// Texts grow at most this much by one replacement step, as a multiple of what is allowed in.
constexpr std::size_t kMaxText = std::size_t{1} << 28;

Error too_long() {
  return tokenizer_error("the normalised text is too long");
}

/// A step that is a function of the text.
template <class Make>
class Function final : public NormalizerStep {
 public:
  explicit Function(Make make) : make_(std::move(make)) {}
  Result<void> apply(std::string& text) const override { return make_(text); }

 private:
  Make make_;
};

template <class Make>
Step step_of(Make make) {
  return Step(new Function<Make>(std::move(make)));
}

/// A step that maps one character to some.
template <class Map>
Step char_step(Map map) {
  return step_of([map](std::string& text) -> Result<void> {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = valid_size(static_cast<unsigned char>(text[at]));
      map(out, decode_valid(text, at, size));
      at += size;
    }
    text = std::move(out);
    return {};
  });
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 32U : c);
  } else if (c == 0x130) {
    out += "i\xCC\x87";  // the only character with a longer lower case
  } else {
    utf8_append(out, lower_of(c));
  }
}

Step form_step(NormalForm form) {
  return step_of([form](std::string& text) -> Result<void> {
    if (form == NormalForm::kNfc && is_quickly_nfc(text)) return {};
    CYB_ASSIGN(text, normal_form(text, form));
    return {};
  });
}

Step lower_step() {
  return char_step(append_lower);
}

Result<Step> make_strip(Fields& fields) {
  CYB_ASSIGN(const bool left, fields.flag("strip_left", true));
  CYB_ASSIGN(const bool right, fields.flag("strip_right", true));
  return step_of([left, right](std::string& text) -> Result<void> {
    std::size_t begin = 0, end = 0;  // end: after the last character that stays
    bool seen = false;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = valid_size(static_cast<unsigned char>(text[at]));
      if (!is_white_space(decode_valid(text, at, size))) {
        if (!seen) begin = at;
        seen = true;
        end = at + size;
      }
      at += size;
    }
    if (!seen) begin = text.size();
    if (!right) end = text.size();
    if (!left) begin = 0;
    text = text.substr(begin, end > begin ? end - begin : 0);
    return {};
  });
}

Result<void> replace_text(const std::string& from, const std::string& content, std::string& text) {
  if (from.empty()) return {};
  std::string out;
  std::size_t done = 0;
  for (std::size_t found = text.find(from); found != std::string::npos;
       found = text.find(from, done)) {
    out.append(text, done, found - done).append(content);
    if (out.size() > kMaxText) return fail(too_long());
    done = found + from.size();
  }
  if (done == 0) return {};
  out.append(text, done);
  text = std::move(out);
  return {};
}

Result<Step> make_replace(Fields& fields) {
  const json& pattern = fields.raw("pattern");
  CYB_ASSIGN(const std::string content, fields.text("content"));
  const bool one = pattern.is_object() && pattern.size() == 1 && pattern.begin()->is_string();
  if (one && pattern.begin().key() == "String") {
    const std::string from = pattern.begin()->get<std::string>();
    return step_of(
        [from, content](std::string& text) { return replace_text(from, content, text); });
  }
  if (!one || pattern.begin().key() != "Regex") return fail(fields.refused("pattern"));
  CYB_ASSIGN(const Regex regex, Regex::compile(pattern.begin()->get_ref<const std::string&>()));
  return step_of(
      [regex, content](std::string& text) { return replace_regex(regex, content, text); });
}

Result<Step> make_prepend(Fields& fields) {
  CYB_ASSIGN(const std::string prefix, fields.text("prepend"));
  return step_of([prefix](std::string& text) -> Result<void> {
    if (!text.empty()) text.insert(0, prefix);
    return {};
  });
}

Result<Step> make_precompiled(Fields& fields) {
  CYB_ASSIGN(const std::string coded, fields.text("precompiled_charsmap", ""));
  // Ours: the walk of sentencepiece itself, for its own files.
  CYB_ASSIGN(const bool longest, fields.flag("longest_prefix", false));
  CYB_ASSIGN(const std::string blob, base64_bytes(coded));
  if (blob.empty()) return step_of([](std::string&) -> Result<void> { return {}; });
  CYB_ASSIGN(CharMap read, CharMap::read(blob));
  const auto map = std::make_shared<const CharMap>(std::move(read));
  return step_of([map, longest](std::string& text) -> Result<void> {
    if (longest) {
      text = map->apply(text);
    } else {
      CYB_ASSIGN(text, map->apply_by_grapheme(text));
    }
    return text.size() > kMaxText ? Result<void>(fail(too_long())) : Result<void>();
  });
}

Step bert_clean() {
  return char_step([](std::string& out, char32_t c) {
    const bool blank = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (!blank && is_other(c))) return;
    if (blank || is_white_space(c)) {
      out += ' ';
    } else {
      utf8_append(out, c);
    }
  });
}

Step bert_chinese() {
  return char_step([](std::string& out, char32_t c) {
    const bool chinese = is_chinese_char(c);
    if (chinese) out += ' ';
    utf8_append(out, c);
    if (chinese) out += ' ';
  });
}

Step without_marks(bool (*mark)(char32_t) noexcept) {
  return char_step([mark](std::string& out, char32_t c) {
    if (c < 0x300 || !mark(c)) utf8_append(out, c);
  });
}

Result<Step> make_bert(Fields& fields) {
  CYB_ASSIGN(const bool clean, fields.flag("clean_text", true));
  CYB_ASSIGN(const bool chinese, fields.flag("handle_chinese_chars", true));
  CYB_ASSIGN(const bool lower, fields.flag("lowercase", true));
  CYB_ASSIGN(const bool strip, fields.flag("strip_accents", lower));
  auto steps = std::make_shared<std::vector<Step>>();
  if (clean) steps->push_back(bert_clean());
  if (chinese) steps->push_back(bert_chinese());
  if (strip) steps->push_back(form_step(NormalForm::kNfd));
  if (strip) steps->push_back(without_marks(is_nonspacing_mark));
  if (lower) steps->push_back(lower_step());
  return step_of([steps](std::string& text) -> Result<void> {
    for (const Step& step : *steps) CYB_TRY(step->apply(text));
    return {};
  });
}

void append_nmt(std::string& out, char32_t c) {
  const bool dropped = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                       c == 0x8F || c == 0x9F;
  if (dropped) return;
  const bool blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  utf8_append(out, blank ? U' ' : c);
}

Result<Step> make_step(Fields& fields) {
  const std::string& type = fields.type();
  if (type == "NFC") return form_step(NormalForm::kNfc);
  if (type == "NFD") return form_step(NormalForm::kNfd);
  if (type == "NFKC") return form_step(NormalForm::kNfkc);
  if (type == "NFKD") return form_step(NormalForm::kNfkd);
  if (type == "Lowercase") return lower_step();
  if (type == "Strip") return make_strip(fields);
  if (type == "StripAccents") return without_marks(is_mark);
  if (type == "Replace") return make_replace(fields);
  if (type == "Prepend") return make_prepend(fields);
  if (type == "Precompiled") return make_precompiled(fields);
  if (type == "BertNormalizer") return make_bert(fields);
  if (type == "Nmt") return char_step(append_nmt);
  if (type == "ByteLevel") {
    return step_of([](std::string& text) -> Result<void> {
      text = byte_level_text(text);
      return {};
    });
  }
  return fail(fields.refused("the component"));
}

}  // namespace

Result<void> replace_regex(const Regex& regex, const std::string& content, std::string& text) {
  std::string out;
  RegexScan scan(regex, text);
  std::size_t done = 0;
  for (std::size_t at = 0; at <= text.size();) {
    CYB_ASSIGN(const RegexScan::Match match, scan.find(at));
    if (!match.found) break;
    at = match.end;
    if (match.begin == match.end) {
      at += at < text.size() ? valid_size(static_cast<unsigned char>(text[at])) : 1;
      if (match.begin == done && done > 0) continue;
    }
    out.append(text, done, match.begin - done).append(content);
    if (out.size() > kMaxText) return fail(too_long());
    done = match.end;
  }
  out.append(text, done);
  text = std::move(out);
  return {};
}

Result<Step> make_normalizer(const json& step) {
  Fields fields("normalizer", step);
  CYB_ASSIGN(Step made, make_step(fields));
  CYB_TRY(fields.done());
  return made;
}

}  // namespace cyb::text
