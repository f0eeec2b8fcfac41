// Parts of a check, one function per group of rows.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/check/check.hpp"
#include "model/writer.hpp"
#include "runtime/chat.hpp"
#include "text/tokenizer.hpp"

namespace cyb::api {

/// Where rows go; looks at the stop token before each.
class Rows {
 public:
  Rows(CheckReport& report, const CheckOptions& options) : report_(report), options_(options) {}

  /// Says what is at work. Errors: Cancelled.
  Result<void> begin(std::string_view name);
  void pass(std::string detail) { add(Verdict::kPass, std::move(detail)); }
  void fail(std::string detail) { add(Verdict::kFail, std::move(detail)); }
  void not_run(std::string detail) { add(Verdict::kNotRun, std::move(detail)); }
  /// Passes with `good` where `problem` is empty.
  void judge(std::string problem, std::string good);
  /// A row of its own that was not run.
  void skip(std::string_view name, std::string_view why);
  const std::stop_token& stop() const noexcept { return options_.stop; }
  const CheckOptions& options() const noexcept { return options_; }

 private:
  void add(Verdict verdict, std::string detail);
  CheckReport& report_;
  const CheckOptions& options_;
  std::string name_;
};

/// What text goes through: of the model, and of its source.
struct TextSide {
  TokenizerParts parts;
  std::unique_ptr<Tokenizer> tokenizer;  // null: a model of ids
  std::string template_source;
  std::unique_ptr<ChatTemplate> chat;  // null: none, or chat_problem
  std::string chat_problem;
};

/// Errors: of the tokenizer.
Result<TextSide> text_side(const ConfigTable& config, const VocabData& vocab,
                           const ConfigTable* chat);

/// What `against` holds.
struct Source {
  std::optional<ModelDraft> draft;  // null: goldens alone
  bool has_weights = false;
  std::string path;     // of the source
  std::string goldens;  // path of a file of goldens; "": none
};
Result<Source> read_against(const std::string& against, const std::stop_token& stop);

/// 500 texts, the same each time: scripts, emoji, control characters, white space, digits, code,
/// and `specials` inside of text.
std::vector<std::string> check_texts(const std::vector<std::string>& specials);

/// Conversations that templates are tried on.
std::vector<ChatInput> check_conversations();

/// "" where the texts are equal, else where they begin to differ.
std::string text_difference(std::string_view name, std::string_view got, std::string_view want);

Result<void> check_architecture(const Model& model, const Source& source, Rows& rows);
Result<void> check_weights(const Model& model, const Source& source, Rows& rows);
Result<void> check_vocabulary(const TextSide& model, const TextSide* source, const Source& from,
                              Rows& rows);
Result<void> check_encoding(const TextSide& model, const TextSide* source, Rows& rows);
Result<void> check_chat(const Model& model, const TextSide& side, const TextSide* source,
                        const Source& from, Rows& rows);
Result<void> check_runs(const std::shared_ptr<const Model>& model, const TextSide& side,
                        Rows& rows);
Result<void> check_goldens(const std::shared_ptr<const Model>& model, const TextSide& side,
                           const std::string& path, Rows& rows);

/// Ids that end an answer: of the config, and stop strings that are one token.
std::vector<std::int32_t> stop_ids_of(const TextSide& side);

}  // namespace cyb::api
