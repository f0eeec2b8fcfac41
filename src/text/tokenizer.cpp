// Tokenizer: what it is built from, and everything but encoding.
#include "text/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer_impl.hpp"

namespace cyb {
namespace {

bool looks_like_chat_token(std::string_view text) noexcept {
  return text.size() >= 5 && text.starts_with("<|") && text.ends_with("|>");
}

bool is_blank(std::string_view text) noexcept {
  return text.find_first_not_of(" \t\r\n\xE2\x96\x81") == std::string_view::npos;
}

}  // namespace

Result<void> Tokenizer::Impl::check_ids() const {
  const auto check = [&](std::int32_t id, std::string_view key) -> Result<void> {
    if (vocabulary.contains(id)) return {};
    return fail(invalid_config(
        fmt::format("tokenizer.{}", key),
        fmt::format("token {} is not in the vocabulary of {}", id, vocabulary.size())));
  };
  if (config.bos_token_id) CYB_TRY(check(*config.bos_token_id, "bos_token_id"));
  if (config.pad_token_id) CYB_TRY(check(*config.pad_token_id, "pad_token_id"));
  if (config.unk_token_id) CYB_TRY(check(*config.unk_token_id, "unk_token_id"));
  for (const std::int32_t id : config.eos_token_ids) CYB_TRY(check(id, "eos_token_ids"));
  if (config.add_bos_token && !config.bos_token_id) {
    return fail(invalid_config("tokenizer.add_bos_token", "there is no bos_token_id"));
  }
  if (config.add_eos_token && config.eos_token_ids.empty()) {
    return fail(invalid_config("tokenizer.add_eos_token", "there is no eos_token_ids"));
  }
  return {};
}

Result<void> Tokenizer::Impl::add_specials(std::vector<std::int32_t> special_ids, bool by_score) {
  const auto is_special = [&](std::int32_t id) {
    const TokenType type = vocabulary.type(id);
    return type == TokenType::kControl || type == TokenType::kUserDefined;
  };
  bool any = !special_ids.empty();
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!is_special(id)) continue;
    special_ids.push_back(id);
    any = true;
  }
  for (std::int32_t id = 0; !any && id < vocabulary.size(); ++id) {
    if (looks_like_chat_token(vocabulary.text(id))) special_ids.push_back(id);
  }
  std::sort(special_ids.begin(), special_ids.end());
  special_ids.erase(std::unique(special_ids.begin(), special_ids.end()), special_ids.end());
  control.assign(static_cast<std::size_t>(vocabulary.size()), false);
  // Runs of spaces (Gemma): where scores decide, as in SentencePiece itself, they match before any
  // merge; a list of merges leads to them by itself.
  if (by_score) added.treat_marks_as_spaces();
  for (const std::int32_t id : special_ids) {
    if (!vocabulary.contains(id)) {
      return fail(tokenizer_error(fmt::format("special token {} is not in the vocabulary", id)));
    }
    const bool user = vocabulary.type(id) == TokenType::kUserDefined;
    control[static_cast<std::size_t>(id)] = !user;
    const auto kind = user ? text::MatchKind::kEverywhere : text::MatchKind::kControlOnly;
    if (user && is_symbol(id)) {
      CYB_TRY(pipeline->symbols()->add(id, vocabulary.text(id), kind));
      continue;
    }
    CYB_TRY(added.add(id, vocabulary.text(id), kind, pipeline.get()));
  }
  return {};
}

Result<void> Tokenizer::Impl::build(TokenizerParts parts) {
  config = std::move(parts.config);
  vocabulary = std::move(parts.vocabulary);
  if (config.type == TokenizerKind::kNone) return {};
  CYB_TRY(check_ids());
  if (!config.pipeline.empty()) {
    CYB_ASSIGN(pipeline, text::Pipeline::make(config.pipeline, config));
    for (const auto* ids : {&pipeline->before(), &pipeline->after()}) {
      if (std::ranges::all_of(*ids, [&](auto id) { return vocabulary.contains(id); })) continue;
      return fail(invalid_config("tokenizer.pipeline", "frame: an id is no token"));
    }
  } else if (config.type != TokenizerKind::kBpe && config.type != TokenizerKind::kSpm) {
    return fail(invalid_config("tokenizer.pipeline", "this type of tokenizer needs one"));
  }
  CYB_TRY(add_specials(std::move(parts.special_ids),
                       config.type == TokenizerKind::kSpm && parts.merges.empty() && !pipeline));
  pieces.build(vocabulary, config.type, pipeline ? pipeline->decoding() : nullptr);
  next_piece = text::next_piece(config.pre);
  return build_model(parts.merges);
}

Result<void> Tokenizer::Impl::build_model(const std::vector<MergePair>& merges) {
  if (config.type == TokenizerKind::kUnigram) {
    return unigram.build(config, vocabulary, pipeline->symbols() != nullptr);
  }
  if (config.type == TokenizerKind::kWordPiece || config.type == TokenizerKind::kWordLevel) {
    return words.build(config, vocabulary, {pipeline->word_prefix(), pipeline->max_word_chars()});
  }
  text::PieceShape shape;
  if (pipeline && config.type == TokenizerKind::kBpe) {
    shape = {!pipeline->takes_bytes(), pipeline->word_prefix(), pipeline->word_suffix(),
             pipeline->ranks_are_ids()};
  }
  return encoder.build(config, vocabulary, pieces, merges, std::move(shape));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerParts parts) {
  auto impl = std::make_unique<Impl>();
  CYB_TRY(impl->build(std::move(parts)));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view whole,
                                                    const EncodeOptions& options) const {
  std::vector<text::ControlRun> runs;
  if (options.parse_special) runs.push_back({0, whole.size()});
  return impl_->run(whole, runs, options);
}

Result<std::vector<std::int32_t>> Tokenizer::encode_segments(std::span<const TextSegment> segments,
                                                             const EncodeOptions& options) const {
  std::string whole;
  std::vector<text::ControlRun> runs;
  for (const TextSegment& segment : segments) {
    const std::size_t begin = whole.size();
    whole.append(segment.text);
    if (!segment.control || segment.text.empty()) continue;
    if (!runs.empty() && runs.back().end == begin) {
      runs.back().end = whole.size();
    } else {
      runs.push_back({begin, whole.size()});
    }
  }
  return impl_->run(whole, runs, options);
}

void Tokenizer::Impl::guard(std::int32_t id) {
  if (!is_symbol(id)) return added.set_kind(id, text::MatchKind::kControlOnly);
  pipeline->symbols()->set_kind(id, text::MatchKind::kControlOnly);
  unigram.drop(id);
  // A text that cannot be matched is none that was added: add() checked the same one before.
  (void)added.add(id, vocabulary.text(id), text::MatchKind::kControlOnly, nullptr);
}

void Tokenizer::guard_markers(std::span<const std::string> literals) {
  for (std::int32_t id = 0; id < impl_->vocabulary.size(); ++id) {
    const std::string_view token = impl_->vocabulary.text(id);
    if (impl_->vocabulary.type(id) != TokenType::kUserDefined || is_blank(token)) continue;
    const bool written = std::any_of(
        literals.begin(), literals.end(),
        [&](const std::string& literal) { return literal.find(token) != std::string::npos; });
    if (written) impl_->guard(id);
  }
}

std::string_view Tokenizer::piece(std::int32_t id) const noexcept {
  const bool known = impl_->config.type != TokenizerKind::kNone && impl_->vocabulary.contains(id);
  return known ? impl_->pieces.piece(id) : std::string_view();
}

std::string Tokenizer::first_piece(std::int32_t id) const {
  const text::Decoding* decoding = impl_->pipeline ? impl_->pipeline->decoding() : nullptr;
  if (decoding == nullptr || !impl_->vocabulary.contains(id)) return std::string(piece(id));
  return decoding->render(impl_->vocabulary.text(id), true);
}

DecodeEnds Tokenizer::decode_ends() const noexcept {
  DecodeEnds out;
  if (impl_->pipeline) {
    const text::Decoding* decoding = impl_->pipeline->decoding();
    if (decoding != nullptr) {
      out = {decoding->strips_start(), decoding->strips_end(), decoding->drops_repeats()};
    }
    out.first_space = out.first_space || impl_->pipeline->strips_prefix();
    out.first_spaces = impl_->pipeline->strips_all_spaces();
  }
  if (config().type == TokenizerKind::kSpm && config().add_space_prefix) out.first_space = true;
  return out;
}

bool Tokenizer::is_control(std::int32_t id) const noexcept {
  if (id < 0 || static_cast<std::size_t>(id) >= impl_->control.size()) return false;
  return impl_->control[static_cast<std::size_t>(id)] ||
         impl_->vocabulary.type(id) == TokenType::kUnknown;
}

bool Tokenizer::is_eos(std::int32_t id) const noexcept {
  const auto& ids = impl_->config.eos_token_ids;
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::shared_ptr<const text::TokenTrie> Tokenizer::trie(std::span<const std::int32_t> shown) const {
  const std::lock_guard lock(impl_->trie_mutex);
  Impl::KeptTrie& kept = shown.empty() ? impl_->plain_trie : impl_->shown_trie;
  if (kept.trie == nullptr || !std::ranges::equal(kept.shown, shown)) {
    kept = {{shown.begin(), shown.end()}, std::make_shared<const text::TokenTrie>(*this, shown)};
  }
  return kept.trie;
}

const TokenizerConfig& Tokenizer::config() const noexcept {
  return impl_->config;
}
const Vocabulary& Tokenizer::vocabulary() const noexcept {
  return impl_->vocabulary;
}
std::int32_t Tokenizer::vocab_size() const noexcept {
  return impl_->vocabulary.size();
}

}  // namespace cyb
