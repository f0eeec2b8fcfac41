// The form is told by the bytes: the name `tokenizer.model` stands for two of them.
#include "import/tokenizer_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "import/draft.hpp"
#include "import/sentencepiece_file.hpp"
#include "import/vocabulary_part.hpp"
#include "text/tiktoken_vocabulary.hpp"
#include "text/tokenizer_json.hpp"

namespace cyb {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view without_ending(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

Result<std::string_view> encoding_of(std::string_view name, std::string_view given) {
  if (!given.empty()) return given;
  const auto known = tiktoken_encodings();
  if (std::ranges::find(known, without_ending(name)) != known.end()) return without_ending(name);
  return fail(invalid_input(
      fmt::format("{} holds tiktoken ranks, which do not say how a text is cut: name the encoding "
                  "(--encoding {})",
                  name, fmt::join(known, ", "))));
}

}  // namespace

TokenizerForm tokenizer_form(std::string_view name, std::string_view bytes) noexcept {
  const std::string_view base = base_name(name);
  if (looks_like_tiktoken(bytes)) return TokenizerForm::kTiktoken;
  if (base.ends_with(".tiktoken")) return TokenizerForm::kTiktoken;
  if (base.ends_with(".json")) return TokenizerForm::kJson;
  // A ModelProto begins with its first piece.
  if (bytes.starts_with('\n') &&
      (base.ends_with(".model") || base.ends_with(".spm") || base.starts_with("tokenizer.model"))) {
    return TokenizerForm::kSentencePiece;
  }
  return TokenizerForm::kNone;
}

Result<TokenizerParts> read_tokenizer_file(const std::string& path, std::string_view encoding) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const std::string_view text = file->text();
  const TokenizerForm form = tokenizer_form(path, text);
  if (form != TokenizerForm::kTiktoken && !encoding.empty()) {
    return fail(invalid_input("an encoding is named for tiktoken rank files only"));
  }
  switch (form) {
    case TokenizerForm::kJson:
      return read_tokenizer_json(text);
    case TokenizerForm::kSentencePiece: {
      CYB_ASSIGN(const SentencePieceSource source,
                 read_sentencepiece(std::as_bytes(std::span(text))));
      return vocabulary_from_sentencepiece(source);
    }
    case TokenizerForm::kTiktoken: {
      CYB_ASSIGN(const std::string_view name, encoding_of(base_name(path), encoding));
      return vocabulary_from_tiktoken(text, name);
    }
    case TokenizerForm::kNone:
      break;
  }
  return fail(invalid_input(fmt::format(
      "{} is no tokenizer: a GGUF file, a tokenizer.json, a sentencepiece .model, a .tiktoken rank "
      "file or a checkpoint folder",
      path)));
}

Result<ModelDraft> read_tokenizer_file_alone(const std::string& path, ImportReport& report,
                                             const ImportOptions& options) {
  const auto read = [&]() -> Result<ModelDraft> {
    ModelDraft draft;
    CYB_ASSIGN(TokenizerParts parts, read_tokenizer_file(path, options.encoding));
    const std::string name(base_name(path));
    CYB_ASSIGN(draft.name, draft_name(options.name, std::string(without_ending(name)), report));
    CYB_TRY(place_tokenizer_alone(std::move(parts), draft, report));
    draft.lineage.set("source", name);
    draft.lineage.set("method", "tokenizer-import");
    draft.card = fmt::format("# {}\n\nImported from `{}`.\n", draft.name, name);
    report.source_format = name;
    return draft;
  };
  auto draft = read();
  if (!draft) return fail(std::move(draft).error().in(path));
  return draft;
}

}  // namespace cyb
