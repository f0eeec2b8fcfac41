// run: one answer to a prompt, streamed; without a prompt at a terminal, a chat.
#include <fmt/format.h>

#include <utility>

#include "api/answer_json.hpp"
#include "cli/chat.hpp"
#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "cli/progress.hpp"
#include "cli/sampling_flags.hpp"
#include "cli/text_input.hpp"
#include "runtime/chat.hpp"
#include "runtime/generation.hpp"
#include "runtime/session.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm run smollm2.gguf "Name three rivers."
  cyb-llm run smollm2 --temperature 0.8 --seed 7 "Tell me a story." > story.txt
  git diff | cyb-llm run coder --system "You review code." --max-tokens 300
  cyb-llm run base-model --raw "Once upon a time"
Without PROMPT: standard input where it is a pipe or file, a chat where it is a terminal (/help there).
Sampling that you do not set comes from the model; --temperature, --top-k, --top-p or --min-p turn a greedy default into
sampling, --temperature 0 turns it off. Without --max-tokens an answer ends at a stop or when the context is full.
Ctrl-C ends the answer (exit code 5).)";

class RunCommand final : public Command {
 public:
  void declare(Options& options) override;
  Result<int> run(Context& context) override;
  bool wants_json() const noexcept override { return json_; }

 private:
  bool is_chat(const Context& context) const;
  Result<std::vector<std::int32_t>> prompt_ids(const Engine& engine, const std::string& text) const;
  Result<int> answer(Context& context, Engine& engine, const std::string& text);

  ModelFlags model_;
  SamplingFlags sampling_;
  ChatFlags chat_;
  std::string prompt_;
  std::optional<std::string> prompt_file_;
  bool raw_ = false, json_ = false;
};

void RunCommand::declare(Options& options) {
  model_.declare_model(options);
  options.positional("PROMPT", prompt_, "The message to answer", false);
  options.optional_text("--prompt-file", prompt_file_, "FILE",
                        "Read the prompt from a file (-: standard input)");
  options.optional_text("--system", chat_.system, "TEXT", "System message");
  options.optional_text("--chat", chat_.preset, "PRESET",
                        "Chat template instead of the model's own: chatml, llama3, gemma or plain");
  options.flag(
      "--raw", raw_,
      "Plain completion without a chat template; control tokens in the prompt are read as such");
  sampling_.declare(options);
  model_.declare_context(options);
  model_.declare_engine(options);
  model_.declare_verify(options);
  options.flag("--json", json_, "One JSON object on stdout instead of the text");
  options.examples(kExamples);
}

bool RunCommand::is_chat(const Context& context) const {
  return prompt_.empty() && !prompt_file_ && !json_ && stdin_is_terminal() &&
         context.output.out_is_terminal();
}

Result<int> RunCommand::run(Context& context) {
  if (raw_ && (chat_.system || chat_.preset)) {
    return fail(
        invalid_input("--raw is plain completion: it goes with neither --system nor --chat"));
  }
  const std::stop_token stop = context.interrupts.begin();
  std::string text;
  if (!is_chat(context)) {
    const std::optional<std::string> argument =
        prompt_.empty() ? std::nullopt : std::optional(prompt_);
    CYB_ASSIGN(text, text_argument(argument, prompt_file_, "the prompt"));
  }
  CYB_ASSIGN(const std::shared_ptr<Engine> engine, model_.load(context, stop));
  if (!is_chat(context)) return answer(context, *engine, text);
  chat_.raw = raw_;
  return run_chat(context, engine, chat_, sampling_.generate_options());
}

Result<std::vector<std::int32_t>> RunCommand::prompt_ids(const Engine& engine,
                                                         const std::string& text) const {
  CYB_ASSIGN(const Tokenizer* tokenizer, engine.need_tokenizer());
  if (raw_) return encode_raw(*tokenizer, text);
  std::vector<ChatMessage> messages;
  if (chat_.system) messages.push_back({"system", *chat_.system});
  messages.push_back({"user", text});
  return encode_messages(engine, chat_, messages);
}

Result<int> RunCommand::answer(Context& context, Engine& engine, const std::string& text) {
  CYB_ASSIGN(const std::vector<std::int32_t> ids, prompt_ids(engine, text));
  Session session(engine.shared_from_this());
  GenerateOptions options = sampling_.generate_options();
  CYB_TRY(add_preset_stops(engine, chat_, options.stop));
  options.cancel = context.interrupts.begin();
  Progress progress(context.output, "reading the prompt",
                    engine.backend().name() == "reference" || ids.size() > 256);
  options.prefill_progress = [&](std::uint32_t done, std::uint32_t total) {
    progress.update(done, total, "");
  };
  const auto on_text = [&](std::string_view piece) {
    progress.clear();
    if (!context.output.print(piece)) context.interrupts.stop();
  };
  CYB_ASSIGN(const GenerateResult result,
             generate(session, ids, options, json_ ? TextSink() : TextSink(on_text)));
  progress.clear();
  if (json_) {
    context.output.line(api::answer_json(result, options.logprobs.has_value()));
  } else if (!result.text.ends_with('\n')) {
    context.output.print("\n");
  }
  if (result.finish_reason == FinishReason::kCancelled) {
    context.output.note(fmt::format("cancelled after {} tokens", result.tokens.size()));
    return kExitCancelled;
  }
  if (result.finish_reason == FinishReason::kLength && !sampling_.has_token_limit()) {
    context.output.warning(fmt::format(
        "the answer ends here because the context of {} tokens is full", engine.ctx_tokens()));
  }
  return kExitOk;
}

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace cyb::cli
