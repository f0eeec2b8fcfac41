// render: messages through a chat template to text, without a run.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/file.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "runtime/chat.hpp"
#include "runtime/model_text.hpp"
#include "text/template/chat_json.hpp"
#include "text/tokenizer.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  echo '[{"role": "user", "content": "Hi"}]' | cyb-llm render MODEL --messages - --add-generation-prompt
  cyb-llm render --template chat_template.jinja --messages m.json --tools tools.json --bos '<s>'
  cyb-llm render MODEL --messages m.json --template-arg enable_thinking=false
Prints the text as it is, without a newline of its own. A template's own error (raise_exception, an undefined name) ends with
its message, line and column and exit code 2.)";

class RenderCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_positional("MODEL", model_, "A model with a chat template, as in `run`");
    options.optional_text("--template", template_, "FILE",
                          "A Jinja file instead of a model's template");
    options.text("--messages", messages_, "FILE", "JSON list of messages (-: standard input)");
    options.optional_text("--tools", tools_, "FILE", "JSON list of tools");
    options.optional_text("--documents", documents_, "FILE", "JSON list of documents");
    options.flag("--add-generation-prompt", add_generation_prompt_,
                 "End with what begins the model's answer");
    options.texts("--template-arg", arguments_, "K=JSON",
                  "A further variable of the template (may be given several times)");
    options.optional_text("--bos", bos_, "S", "bos_token, instead of the model's", true);
    options.optional_text("--eos", eos_, "S", "eos_token, instead of the model's", true);
    options.flag("--json", json_, "One JSON object: {\"text\"}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    if (model_.has_value() == template_.has_value())
      return fail(usage_error("give either MODEL or --template FILE"));
    if (messages_.empty()) return fail(usage_error("--messages FILE is missing"));
    const std::stop_token stop = context.interrupts.begin();
    CYB_ASSIGN(ChatInput input, read_input(context));
    CYB_ASSIGN(const std::vector<OwnedSegment> segments,
               template_ ? render_file(std::move(input), context)
                         : render_model(std::move(input), context, stop));
    const std::string text = joined_text(segments);
    if (json_) {
      context.output.line(Json{{"text", json_text(text)}}.dump());
    } else {
      context.output.print(text);
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  static Result<ChatValue> read_json(const std::string& path, Context& context) {
    CYB_ASSIGN(const std::string text, read_text(path, context.interrupts.wake_fd()));
    return parse_chat_json(text, path == "-" ? "standard input" : path);
  }

  static Result<ChatValue> read_list(const std::string& path, Context& context) {
    CYB_ASSIGN(ChatValue value, read_json(path, context));
    if (value.kind != ChatValue::Kind::kList)
      return fail(Error(ErrorKind::kInvalidInput, "InvalidInput", path + " is not a JSON list"));
    return value;
  }

  Result<ChatInput> read_input(Context& context) const {
    ChatInput input;
    CYB_ASSIGN(ChatValue messages, read_list(messages_, context));
    for (std::size_t i = 0; i < messages.items.size(); ++i) {
      if (messages.items[i].kind != ChatValue::Kind::kObject) {
        return fail(Error(ErrorKind::kInvalidInput, "InvalidInput",
                          fmt::format("{}: message {} is not an object", messages_, i + 1)));
      }
    }
    input.messages = std::move(messages.items);
    if (tools_) {
      CYB_ASSIGN(input.tools, read_list(*tools_, context));
    }
    if (documents_) {
      CYB_ASSIGN(input.documents, read_list(*documents_, context));
    }
    input.add_generation_prompt = add_generation_prompt_;
    for (const std::string& argument : arguments_) {
      const std::size_t at = argument.find('=');
      if (at == 0 || at == std::string::npos)
        return fail(usage_error(fmt::format("--template-arg {}: want NAME=JSON", argument)));
      CYB_TRY(check_argument(argument.substr(0, at), input));
      const std::string what = "the value of --template-arg " + argument.substr(0, at);
      auto value = parse_chat_json(std::string_view(argument).substr(at + 1), what);
      if (!value) {
        return fail(usage_error(fmt::format("{} (text needs quotes: {}='\"...\"')",
                                            value.error().message(), argument.substr(0, at))));
      }
      input.variables.emplace_back(argument.substr(0, at), *std::move(value));
    }
    return input;
  }

  /// What has an option of its own is not replaced in silence, nor is one argument by another.
  static Result<void> check_argument(const std::string& name, const ChatInput& input) {
    static constexpr std::array kOwn = {
        std::pair{"messages", "--messages"},
        std::pair{"tools", "--tools"},
        std::pair{"documents", "--documents"},
        std::pair{"add_generation_prompt", "--add-generation-prompt"},
        std::pair{"bos_token", "--bos"},
        std::pair{"eos_token", "--eos"}};
    for (const auto& [variable, option] : kOwn) {
      if (name == variable)
        return fail(usage_error(fmt::format("--template-arg {}: {} gives it", name, option)));
    }
    for (const auto& [given, value] : input.variables) {
      if (given == name)
        return fail(usage_error(fmt::format("--template-arg {} is given twice", name)));
    }
    return {};
  }

  Result<std::vector<OwnedSegment>> render_file(ChatInput input, Context& context) const {
    CYB_ASSIGN(const std::string source, read_text(*template_, context.interrupts.wake_fd()));
    CYB_ASSIGN(const Template compiled, Template::compile(source));
    input.bos_token = bos_.value_or("");
    input.eos_token = eos_.value_or("");
    return ChatTemplate::render(compiled, std::move(input));
  }

  Result<std::vector<OwnedSegment>> render_model(ChatInput input, Context& context,
                                                 std::stop_token stop) const {
    ModelFlags flags(*model_);
    CYB_ASSIGN(const std::shared_ptr<const Model> model, flags.open(context, std::move(stop)));
    if (model->chat() == nullptr) return fail(no_chat_template());
    CYB_ASSIGN(TokenizerParts parts, tokenizer_parts(*model));
    CYB_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::create(std::move(parts)));
    CYB_ASSIGN(const std::unique_ptr<ChatTemplate> chat,
               ChatTemplate::create(*model->chat(), *tokenizer));
    if (bos_) input.variables.emplace_back("bos_token", ChatValue::of(std::string_view(*bos_)));
    if (eos_) input.variables.emplace_back("eos_token", ChatValue::of(std::string_view(*eos_)));
    return chat->render(std::move(input));
  }

  std::optional<std::string> model_, template_, tools_, documents_, bos_, eos_;
  std::string messages_;
  std::vector<std::string> arguments_;
  bool add_generation_prompt_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_render_command() {
  return std::make_unique<RenderCommand>();
}

}  // namespace cyb::cli
