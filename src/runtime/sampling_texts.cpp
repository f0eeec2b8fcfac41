// Biases by text and sequence breakers: what of a request needs the vocabulary.
#include <algorithm>
#include <array>

#include "runtime/sampling.hpp"
#include "text/tokenizer.hpp"

namespace cyb {
namespace {

constexpr std::array<std::string_view, 4> kDryBreakers = {"\n", ":", "\"", "*"};
constexpr std::size_t kMaxTail = 20;  // tokens; as llama.cpp limits them

Error no_vocabulary(std::string_view what) {
  return tokenizer_error(std::string(what) +
                         " needs a vocabulary, and this model has no tokenizer: name token ids");
}

Result<std::int32_t> token_of(const Tokenizer& tokenizer, const std::string& text) {
  if (const std::int32_t control = tokenizer.vocabulary().find(text);
      control >= 0 && tokenizer.is_control(control)) {
    return control;
  }
  CYB_ASSIGN(const std::vector<std::int32_t> ids, tokenizer.encode(text, {.add_special = false}));
  if (ids.size() == 1 && tokenizer.piece(ids[0]) == text) return ids[0];
  // Where the tokenizer puts a space in front, the bare piece may still be a token of its own.
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.vocabulary().contains(id) && tokenizer.piece(id) == text) return id;
  }
  return fail(invalid_input("logit bias: \"" + text + "\" is not one token but " +
                            std::to_string(ids.size()) + ": give ids instead"));
}

/// `text` as tokens that end a repetition: each token that holds it, and each that ends with its
/// beginning, followed by the tokens of the rest (the rule of llama.cpp's DRY).
Result<void> add_breakers(const Tokenizer& tokenizer, std::string_view text,
                          std::vector<DryBreaker>& out) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.vocabulary().contains(id)) continue;
    const std::string_view piece = tokenizer.piece(id);
    if (piece.find(text) != std::string::npos) {
      out.push_back({id});
      continue;
    }
    for (std::size_t at = piece.find(text[0]); at != std::string::npos;
         at = piece.find(text[0], at + 1)) {
      const std::size_t held = piece.size() - at;
      if (held >= text.size() || piece.substr(at) != text.substr(0, held)) continue;
      if ((static_cast<unsigned char>(text[held]) & 0xC0) == 0x80) continue;  // inside a character
      CYB_ASSIGN(std::vector<std::int32_t> tail,
                 tokenizer.encode(text.substr(held), {.add_special = false}));
      if (tail.size() > kMaxTail) tail.resize(kMaxTail);
      if (!tail.empty()) out.push_back({id, std::move(tail)});
    }
  }
  return {};
}

}  // namespace

std::span<const std::string_view> default_dry_breakers() noexcept {
  return kDryBreakers;
}

Result<void> resolve_texts(const Tokenizer* tokenizer, const SamplingOverrides& overrides,
                           SamplingConfig& config) {
  for (const BiasRequest& bias : overrides.logit_bias) {
    std::int32_t id = bias.id;
    if (!bias.text.empty()) {
      if (tokenizer == nullptr) return fail(no_vocabulary("a logit bias by text"));
      CYB_ASSIGN(id, token_of(*tokenizer, bias.text));
    }
    config.logit_bias.push_back({id, bias.bias});
  }
  if (config.dry_multiplier == 0.0) return {};
  if (overrides.dry_breakers) {
    if (tokenizer == nullptr && !overrides.dry_breakers->empty())
      return fail(no_vocabulary("a sequence breaker"));
    for (const std::string& text : *overrides.dry_breakers) {
      if (text.empty()) return fail(invalid_input("a sequence breaker is the empty text"));
      CYB_TRY(add_breakers(*tokenizer, text, config.dry_breakers));
    }
  } else if (tokenizer != nullptr) {
    for (const std::string_view text : kDryBreakers)
      CYB_TRY(add_breakers(*tokenizer, text, config.dry_breakers));
  }
  return {};
}

}  // namespace cyb
