// The decoders of a tokenizer.json. After Fuse a step sees the whole text; of those only a Strip of
// one leading space and replacements inside of one token's text are built.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/decoders/decoding.hpp"
#include "text/normalizers/steps.hpp"
#include "text/pipeline/fields.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/tokenizers/byte_level.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty() || text.find(from) == std::string::npos) return;
  std::string out;
  std::size_t done = 0;
  for (std::size_t found = text.find(from); found != std::string::npos;
       found = text.find(from, done)) {
    out.append(text, done, found - done).append(to);
    done = found + from.size();
  }
  out.append(text, done);
  text = std::move(out);
}

/// English spacing as the WordPiece decoder mends it.
void clean_up(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

bool is_one_char(std::string_view text) noexcept {
  return !text.empty() && valid_size(static_cast<unsigned char>(text[0])) == text.size();
}

}  // namespace

Result<void> Decoding::add_replace(Fields& fields, bool fused, Step& step) {
  const json& pattern = fields.raw("pattern");
  const bool one = pattern.is_object() && pattern.size() == 1 && pattern.begin()->is_string();
  const std::string key = one ? pattern.begin().key() : "";
  if (key != "String" && key != "Regex") return fail(fields.refused("the pattern"));
  CYB_ASSIGN(step.to, fields.text("content"));
  step.from = pattern.begin()->get<std::string>();
  step.kind = key == "Regex" ? Kind::kReplaceRegex : Kind::kReplace;
  // After Fuse a match may reach over the ends of tokens.
  if (fused && (key == "Regex" || !is_one_char(step.from)))
    return fail(fields.refused("after Fuse"));
  if (key == "Regex") {
    CYB_ASSIGN(step.regex, Regex::compile(step.from));
  }
  return {};
}

Result<void> Decoding::add_ctc(Fields& fields, Step& step) {
  step.kind = Kind::kCtc;
  CYB_ASSIGN(step.from, fields.text("pad_token", "<pad>"));
  CYB_ASSIGN(step.to, fields.text("word_delimiter_token", "|"));
  CYB_ASSIGN(step.flag, fields.flag("cleanup", true));
  // Repeats are told by the tokens themselves, before any step has changed them.
  if (!steps_.empty()) return fail(fields.refused("behind another step"));
  drops_repeats_ = true;
  return {};
}

Result<void> Decoding::add(const json& given, bool& fused) {
  Fields fields("decoder", given);
  const std::string& type = fields.type();
  Step step;
  if (type == "Fuse") {
    fused = true;
    return fields.done();
  }
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) {
      CYB_TRY(fields.flag(key, true));
    }
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    CYB_ASSIGN(step.from, fields.text("replacement", "\xE2\x96\x81"));
    const json& old = fields.raw("add_prefix_space");
    CYB_ASSIGN(const std::string scheme,
               fields.text("prepend_scheme", old == false ? "never" : "always"));
    CYB_TRY(fields.flag("split", true));
    (void)fields.raw("str_rep");
    step.flag = scheme != "never";
  } else if (type == "WordPiece") {
    step.kind = Kind::kWordPiece;
    CYB_ASSIGN(step.from, fields.text("prefix", "##"));
    CYB_ASSIGN(step.flag, fields.flag("cleanup", true));
  } else if (type == "BPEDecoder") {
    step.kind = Kind::kWordEnds;
    CYB_ASSIGN(step.from, fields.text("suffix", "</w>"));
    strips_end_ = true;
  } else if (type == "Replace") {
    CYB_TRY(add_replace(fields, fused, step));
  } else if (type == "CTC") {
    CYB_TRY(add_ctc(fields, step));
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    CYB_ASSIGN(step.from, fields.text("content", " "));
    CYB_ASSIGN(const std::int64_t start, fields.integer("start", 0, 1 << 20, 0));
    CYB_ASSIGN(const std::int64_t stop, fields.integer("stop", 0, 1 << 20, 0));
    step.start = static_cast<std::size_t>(start);
    step.stop = static_cast<std::size_t>(stop);
    if (fused) {
      if (step.from != " " || start > 1 || stop > 0) return fail(fields.refused("after Fuse"));
      strips_start_ = start == 1;
      return fields.done();
    }
  } else {
    return fail(fields.refused("the component"));
  }
  CYB_TRY(fields.done());
  if (fused && step.kind != Kind::kReplace) return fail(fields.refused("after Fuse"));
  steps_.push_back(std::move(step));
  return {};
}

Result<Decoding> Decoding::make(const std::vector<json>& steps) {
  Decoding out;
  bool fused = false;
  for (const json& step : steps) CYB_TRY(out.add(step, fused));
  out.joins_by_space_ = steps.empty();
  return out;
}

void Decoding::run(const Step& step, bool first, std::string& text) {
  switch (step.kind) {
    case Kind::kByteLevel: {
      std::string bytes;
      if (append_mapped_bytes(bytes, text)) text = std::move(bytes);
      return;
    }
    case Kind::kMetaspace:
      replace_all(text, step.from, first && step.flag ? "" : " ");
      return;
    case Kind::kWordPiece:
      if (!first && text.starts_with(step.from)) {
        text.erase(0, step.from.size());
      } else if (!first) {
        text.insert(0, " ");
      }
      if (step.flag) clean_up(text);
      return;
    case Kind::kWordEnds:
      replace_all(text, step.from, " ");
      return;
    case Kind::kByteFallback:
      if (const int byte = parse_byte_token(text); byte >= 0) {
        text.assign(1, static_cast<char>(static_cast<unsigned char>(byte)));
      }
      return;
    case Kind::kReplace:
      replace_all(text, step.from, step.to);
      return;
    case Kind::kReplaceRegex:
      // A match that takes too many steps leaves the token as it is.
      (void)replace_regex(*step.regex, step.to, text);
      return;
    case Kind::kCtc:
      replace_all(text, step.from, "");
      if (!step.flag) return;
      clean_up(text);
      replace_all(text, step.to, " ");
      return;
    case Kind::kStrip:
      if (step.from.empty()) return;
      for (std::size_t i = 0; i < step.start && text.starts_with(step.from); ++i) {
        text.erase(0, step.from.size());
      }
      for (std::size_t i = 0; i < step.stop && text.ends_with(step.from); ++i) {
        text.resize(text.size() - step.from.size());
      }
      return;
  }
}

std::string Decoding::render(std::string_view token, bool first) const {
  std::string text(token);
  if (joins_by_space_ && !first) text.insert(0, " ");
  for (const Step& step : steps_) run(step, first, text);
  return text;
}

}  // namespace cyb::text
