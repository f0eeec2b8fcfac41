// Text to ids over two small vocabularies: any bytes, cut anywhere into template text and content.
// What is encoded must decode to the same text, and content must never become a control token.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"
#include "text/tokenizers/byte_level.hpp"

namespace {

constexpr std::string_view kControl[] = {"<s>", "</s>", "<|im_end|>"};

void require(bool good) {
  if (!good) std::abort();
}

void utf8(std::string& out, char32_t c) {
  if (c >= 0x80) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(c);
  }
}

std::unique_ptr<cyb::Tokenizer> finish(cyb::TokenizerParts& parts) {
  require(parts.vocabulary.finish().has_value());
  for (const auto& [left, right] : {std::pair{"a", "b"}, {"ab", "a"}, {"a", "a"}}) {
    if (parts.config.type == cyb::TokenizerKind::kSpm) break;
    const auto pair = cyb::find_merge(parts.vocabulary, left, right, 0);
    require(pair.has_value());
    parts.merges.push_back(*pair);
  }
  auto made = cyb::Tokenizer::create(std::move(parts));
  require(made.has_value());
  return std::move(*made);
}

std::unique_ptr<cyb::Tokenizer> byte_level() {
  cyb::TokenizerParts parts;
  parts.config = cyb::tokenizer_preset(cyb::TokenizerKind::kBpe, cyb::PreTokenizer::kQwen2);
  parts.config.nfc = false;  // so that texts come back as they went in
  for (const std::string_view text : kControl)
    require(parts.vocabulary.add({text, cyb::TokenType::kControl}).has_value());
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    utf8(text, cyb::text::byte_to_char(static_cast<std::uint8_t>(byte)));
    require(parts.vocabulary.add({text}).has_value());
  }
  for (const std::string_view text : {"ab", "aba", "aa"})
    require(parts.vocabulary.add({text}).has_value());
  return finish(parts);
}

std::unique_ptr<cyb::Tokenizer> sentence_piece() {
  cyb::TokenizerParts parts;
  parts.config = cyb::tokenizer_preset(cyb::TokenizerKind::kSpm, cyb::PreTokenizer::kNone);
  parts.config.add_space_prefix = false;
  for (const std::string_view text : kControl)
    require(parts.vocabulary.add({text, cyb::TokenType::kControl}).has_value());
  for (unsigned byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    require(parts.vocabulary.add({text, cyb::TokenType::kByte}).has_value());
  }
  float score = 0;
  for (const std::string_view text : {"a", "b", "ab", "aba", "aa", "\xE2\x96\x81",
                                      "\xE2\x96\x81"
                                      "a"}) {
    require(parts.vocabulary.add({text, cyb::TokenType::kNormal, score -= 1}).has_value());
  }
  require(parts.vocabulary.add({"\n\n", cyb::TokenType::kUserDefined, -1000.0F}).has_value());
  return finish(parts);
}

void check(const cyb::Tokenizer& tokenizer, std::string_view text, std::size_t cut) {
  const cyb::TextSegment segments[] = {{text.substr(0, cut), true}, {text.substr(cut), false}};
  const auto ids = tokenizer.encode_segments(segments);
  if (!ids) return;  // not UTF-8
  const auto back = tokenizer.decode(*ids);
  require(back.has_value());
  const bool spm = tokenizer.config().type == cyb::TokenizerKind::kSpm;
  // U+2581 in a text comes back as a space.
  if (!spm || text.find("\xE2\x96\x81") == std::string_view::npos) require(*back == text);
  std::size_t written = 0, found = 0;
  for (const std::int32_t id : *ids) found += tokenizer.is_control(id) ? 1 : 0;
  for (const std::string_view token : kControl) {
    for (std::size_t at = text.substr(0, cut).find(token); at != std::string_view::npos;
         at = text.substr(0, cut).find(token, at + 1))
      ++written;
  }
  require(found == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<cyb::Tokenizer> kTokenizers[] = {byte_level(), sentence_piece()};
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto& tokenizer : kTokenizers)
    check(*tokenizer, text, text.empty() ? 0 : data[0] % (text.size() + 1));
  return 0;
}
