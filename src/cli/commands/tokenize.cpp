// tokenize: text to ids and pieces, ids to text.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
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
    options.optional_positional("TEXT", text_, "The text");
    options.flag("--parse-special", parse_special_,
                 "Match control tokens that are written in the text");
    options.flag("--no-bos", no_bos_, "Add no begin-of-text token where the model would");
    options.optional_text("--decode", decode_, "IDS", "Ids to text: 1,2,3");
    options.flag("--json", json_, "One JSON object: {\"ids\", \"pieces\"} or {\"text\"}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(check_options());
    const std::stop_token stop = context.interrupts.begin();
    std::string text;
    if (!decode_) {
      const TextWanted wanted{"the text", "as TEXT, with --file FILE"};
      CYB_ASSIGN(text, text_argument(text_, file_, wanted, context.interrupts.wake_fd()));
    }
    CYB_ASSIGN(const std::shared_ptr<const Model> model, model_.open(context, stop));
    CYB_ASSIGN(TokenizerParts parts, tokenizer_parts(*model));
    CYB_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::create(std::move(parts)));
    CYB_TRY(decode_ ? decode(context, *tokenizer) : encode(context, *tokenizer, text));
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  Result<void> check_options() const {
    if (!decode_) return {};
    if (text_ || file_) return fail(usage_error("--decode takes ids, no text"));
    if (parse_special_) return fail(usage_error("--parse-special has no effect with --decode"));
    if (no_bos_) return fail(usage_error("--no-bos has no effect with --decode"));
    return {};
  }

  Result<void> encode(Context& context, const Tokenizer& tokenizer, const std::string& text) {
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
    context.output.line(json_ ? Json{{"text", json_text(text)}}.dump() : text);
    return {};
  }

  ModelFlags model_;
  std::optional<std::string> text_, file_, decode_;
  bool parse_special_ = false, no_bos_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenize_command() {
  return std::make_unique<TokenizeCommand>();
}

}  // namespace cyb::cli
