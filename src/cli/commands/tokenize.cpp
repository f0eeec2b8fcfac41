// tokenize: text to ids and pieces, ids to text.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/text_input.hpp"
#include "runtime/model_text.hpp"
#include "text/tokenizer.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm tokenize MODEL "Hello world"               28120,905
  cyb-llm tokenize MODEL --parse-special "<|im_start|>user"
  cyb-llm tokenize MODEL --decode 28120,905          Hello world
Prints the ids on the first line and the pieces, as JSON strings, on the second. Control tokens written in the text are plain
text unless --parse-special is given.)";

class TokenizeCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.optional_text("--file", file_, "FILE", "Read the text from a file (-: standard input)");
    options.positional("TEXT", text_, "The text", false);
    options.flag("--parse-special", parse_special_,
                 "Match control tokens that are written in the text");
    options.flag("--no-bos", no_bos_, "Add no begin-of-text token where the model would");
    options.optional_text("--decode", decode_, "IDS", "Ids to text: 1,2,3");
    options.flag("--json", json_, "One JSON object: {\"ids\", \"pieces\"} or {\"text\"}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    if (decode_ && (!text_.empty() || file_)) return fail(invalid_input("--decode takes no text"));
    CYB_ASSIGN(const std::shared_ptr<const Model> model,
               model_.open(context, context.interrupts.begin()));
    CYB_ASSIGN(TokenizerParts parts, tokenizer_parts(*model));
    CYB_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::create(std::move(parts)));
    CYB_TRY(decode_ ? decode(context, *tokenizer) : encode(context, *tokenizer));
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  Result<void> encode(Context& context, const Tokenizer& tokenizer) {
    const std::optional<std::string> argument = text_.empty() ? std::nullopt : std::optional(text_);
    CYB_ASSIGN(const std::string text, text_argument(argument, file_, "the text"));
    const EncodeOptions how{.parse_special = parse_special_, .add_special = !no_bos_};
    CYB_ASSIGN(const std::vector<std::int32_t> ids, tokenizer.encode(text, how));
    Json pieces = Json::array();
    for (const std::int32_t id : ids) pieces.push_back(json_text(tokenizer.piece(id)));
    if (json_) {
      context.output.line(Json{{"ids", ids}, {"pieces", pieces}}.dump());
      return {};
    }
    std::string line;
    for (const Json& piece : pieces) line += (line.empty() ? "" : " ") + piece.dump();
    context.output.line(fmt::format("{}\n{}", fmt::join(ids, ","), line));
    return {};
  }

  Result<void> decode(Context& context, const Tokenizer& tokenizer) {
    CYB_ASSIGN(const std::vector<std::int32_t> ids, parse_ids(*decode_));
    CYB_ASSIGN(const std::string text, tokenizer.decode(ids));
    context.output.line(json_ ? Json{{"text", text}}.dump() : text);
    return {};
  }

  ModelFlags model_;
  std::string text_;
  std::optional<std::string> file_, decode_;
  bool parse_special_ = false, no_bos_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenize_command() {
  return std::make_unique<TokenizeCommand>();
}

}  // namespace cyb::cli
