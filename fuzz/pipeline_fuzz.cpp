// Pipelines of a tokenizer.json: bytes choose normalizers, pre-tokenizers, a model and decoders,
// the rest is the text. What is accepted encodes or says why not, decodes whatever it encoded,
// alone and as a stream; the text is repeated up to 32 KiB, so that work that grows with its square
// runs into the time limit.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/tokenizer.hpp"
#include "text/tokenizer_json.hpp"

namespace {

using nlohmann::json;

void require(bool good) {
  if (!good) std::abort();
}

/// Bytes as choices; 0 where they have run out.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  std::size_t next(std::size_t n) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte % n;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

constexpr const char* kPatterns[] = {
    R"(\s+)",
    R"(\p{N}{1,3})",
    R"([^\s\p{L}]+|\p{L}+)",
    R"((?=(\d{3})+(?!\d)))",
    R"(\d{1,3}(?=(?:\d{3})*\b))",
    R"( ?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t)?|\s*[\r\n]+|\s+(?!\S)|\s+|.)",
    R"(\w\b|[^\w&&[^_]])",
    R"(a*)",
};
constexpr const char* kBehaviors[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};

json pattern(Choices& in) {
  if (in.next(3) == 0) return {{"String", in.next(2) == 0 ? " " : "\xE2\x96\x81"}};
  return {{"Regex", kPatterns[in.next(std::size(kPatterns))]}};
}

json normalizer(Choices& in) {
  constexpr const char* kPlain[] = {"NFC",       "NFD",          "NFKC", "NFKD",
                                    "Lowercase", "StripAccents", "Nmt",  "ByteLevel"};
  switch (in.next(6)) {
    case 0:
      return {{"type", "Replace"}, {"pattern", pattern(in)}, {"content", "\xE2\x96\x81"}};
    case 1:
      return {{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}};
    case 2:
      return {{"type", "Strip"}, {"strip_left", in.next(2) == 0}, {"strip_right", in.next(2) == 0}};
    case 3:
      return {{"type", "BertNormalizer"},
              {"clean_text", in.next(2) == 0},
              {"handle_chinese_chars", in.next(2) == 0},
              {"strip_accents", in.next(2) == 0},
              {"lowercase", in.next(2) == 0}};
    default:
      return {{"type", kPlain[in.next(std::size(kPlain))]}};
  }
}

json pre_tokenizer(Choices& in) {
  constexpr const char* kPlain[] = {"Whitespace", "WhitespaceSplit", "BertPreTokenizer",
                                    "UnicodeScripts"};
  switch (in.next(8)) {
    case 0:
      return {{"type", "ByteLevel"},
              {"add_prefix_space", in.next(2) == 0},
              {"trim_offsets", true},
              {"use_regex", in.next(2) == 0}};
    case 1:
    case 2:
      return {{"type", "Split"},
              {"pattern", pattern(in)},
              {"behavior", kBehaviors[in.next(std::size(kBehaviors))]},
              {"invert", in.next(2) == 0}};
    case 3:
      return {{"type", "Metaspace"},
              {"replacement", "\xE2\x96\x81"},
              {"prepend_scheme", in.next(2) == 0 ? "always" : "first"},
              {"split", in.next(2) == 0}};
    case 4:
      return {{"type", "Digits"}, {"individual_digits", in.next(2) == 0}};
    case 5:
      return {{"type", "Punctuation"}, {"behavior", kBehaviors[in.next(std::size(kBehaviors))]}};
    case 6:
      return {{"type", "FixedLength"}, {"length", 1 + in.next(9)}};
    default:
      return {{"type", kPlain[in.next(std::size(kPlain))]}};
  }
}

json decoder(Choices& in) {
  constexpr const char* kPlain[] = {"ByteLevel", "ByteFallback", "Fuse",
                                    "WordPiece", "BPEDecoder",   "CTC"};
  switch (in.next(4)) {
    case 0:
      return {{"type", "Replace"}, {"pattern", pattern(in)}, {"content", " "}};
    case 1:
      return {{"type", "Strip"}, {"content", " "}, {"start", in.next(3)}, {"stop", in.next(3)}};
    case 2:
      return {{"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", "always"}};
    default:
      return {{"type", kPlain[in.next(std::size(kPlain))]}};
  }
}

json steps(Choices& in, const char* list, json (*make)(Choices&)) {
  json out = json::array();
  for (std::size_t n = in.next(4); n > 0; --n) out.push_back(make(in));
  if (out.empty()) return nullptr;
  return {{"type", "Sequence"}, {list, out}};
}

json model(Choices& in) {
  const std::size_t kind = in.next(5);
  if (kind == 0) {
    return {{"type", "Unigram"},
            {"unk_id", 0},
            {"vocab", {{"<unk>", 0}, {"a", -1.5}, {"b", -2}, {"ab", -2.5}, {"\xE2\x96\x81", -3}}}};
  }
  json vocab{{"<unk>", 0},        {"a", 1}, {"b", 2},  {"ab", 3},    {"##b", 4},  {"\xC4\xA0", 5},
             {"\xE2\x96\x81", 6}, {"1", 7}, {"aa", 8}, {"b</w>", 9}, {"##a", 10}, {"a##b", 11}};
  if (kind == 1) return {{"type", "WordPiece"}, {"unk_token", "<unk>"}, {"vocab", vocab}};
  if (kind == 2) return {{"type", "WordLevel"}, {"unk_token", "<unk>"}, {"vocab", vocab}};
  json out{{"type", "BPE"},
           {"unk_token", "<unk>"},
           {"fuse_unk", in.next(2) == 0},
           {"ignore_merges", in.next(2) == 0},
           {"vocab", vocab},
           {"merges", {"a b", "a a"}}};
  if (kind == 3) {
    out["continuing_subword_prefix"] = "##";
    out["merges"] = {"a ##b", "a ##a"};
  }
  return out;
}

void check(const cyb::Tokenizer& tokenizer, std::string_view text, bool special) {
  const auto ids = tokenizer.encode(text, {.parse_special = special, .add_special = special});
  if (!ids) return;
  const auto whole = tokenizer.decode(*ids);
  require(whole.has_value());
  std::string streamed;
  cyb::StreamDecoder stream(tokenizer, {});
  for (const std::int32_t id : *ids) stream.push(id, streamed);
  stream.finish(streamed);
  require(streamed == *whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices in(std::string_view(reinterpret_cast<const char*>(data), size));
  json document{{"version", "1.0"}};
  document["normalizer"] = steps(in, "normalizers", normalizer);
  document["pre_tokenizer"] = steps(in, "pretokenizers", pre_tokenizer);
  document["decoder"] = steps(in, "decoders", decoder);
  document["model"] = model(in);
  document["added_tokens"] = json::array({{{"id", 12},
                                           {"content", "<s>"},
                                           {"special", true},
                                           {"lstrip", in.next(2) == 1},
                                           {"rstrip", in.next(2) == 1},
                                           {"single_word", in.next(2) == 1},
                                           {"normalized", in.next(2) == 1}}});
  auto parts = cyb::read_tokenizer_json(document.dump());
  if (!parts) return 0;
  const auto tokenizer = cyb::Tokenizer::create(std::move(*parts));
  if (!tokenizer) return 0;
  const std::string_view text = in.rest();
  check(**tokenizer, text, true);
  std::string longer;
  while (!text.empty() && longer.size() + text.size() <= 32768) longer += text;
  check(**tokenizer, longer, false);
  return 0;
}
