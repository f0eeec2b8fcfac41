// run: one answer to a prompt, streamed; without a prompt at a terminal, a chat.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/answer_json.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "cli/chat.hpp"
#include "cli/command.hpp"
#include "cli/commands/run_tensors.hpp"
#include "cli/generation_flags.hpp"
#include "cli/grammar_flags.hpp"
#include "cli/memory_text.hpp"
#include "cli/model_flags.hpp"
#include "cli/progress.hpp"
#include "cli/sampling_flags.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "runtime/chat.hpp"
#include "runtime/generation.hpp"
#include "runtime/session.hpp"
#include "runtime/session_file.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm run smollm2.gguf "What is gravity?"
  cyb-llm run smollm2 --temperature 0.8 --seed 7 "Tell me a story." > story.txt
  git diff | cyb-llm run coder --system "You review code." --max-tokens 300
  cyb-llm run base-model --raw "Once upon a time"
  cyb-llm run smollm2 --answers 3 --temperature 1 --json "Name a colour."
  cyb-llm run smollm2 --json-schema person.schema.json "Who wrote Faust?"
  cyb-llm run coder --speculate lookup --prompt-cache book.cache --prompt-file book.txt
  cyb-llm run detector.onnx --input images=photo.npy --output results
Without PROMPT: standard input where it is a pipe or file, a chat where it is a terminal (/help there).
Sampling that you do not set comes from the model; a temperature, a filter such as --top-p or --samplers turns a greedy
default into sampling, --temperature 0 turns it off. Without --max-tokens an answer ends at a stop or when the context is full.
A text that begins with - goes after --: cyb-llm run MODEL -- "-v means what?"
The weights are used as they are; --verify checks their hashes first (as `cyb-llm verify` does).
Ctrl-C ends the answer (exit code 5).)";

/// A model without text cannot answer a prompt: says how it is run.
Result<void> refuse_tensor_model(const Model& model) {
  CYB_ASSIGN(const bool tensors, is_tensor_model(model));
  if (!tensors) return {};
  CYB_ASSIGN(const Graph graph, model.graph());
  std::string inputs;
  for (const GraphInput& input : graph.inputs) {
    inputs += (inputs.empty() ? "" : "; ") + input_text(input, graph.symbols);
  }
  return fail(usage_error(fmt::format(
      "this is a model of tensors, it takes no prompt: run it with --input NAME=FILE; it takes: {}",
      inputs)));
}

class RunCommand final : public Command {
 public:
  void declare(Options& options) override;
  Result<int> run(Context& context) override;
  bool wants_json() const noexcept override { return json_; }

 private:
  bool is_chat(const Context& context) const;
  Result<std::string> read_prompt(const Context& context) const;
  Result<std::vector<std::int32_t>> prompt_ids(const Engine& engine, const std::string& text) const;
  Result<int> run_tensors(Context& context, std::stop_token stop);
  Result<int> answer(Context& context, Engine& engine, const std::string& text);
  Result<std::vector<GenerateResult>> generate_for(Context& context, Session& session,
                                                   std::span<const std::int32_t> ids,
                                                   GenerateOptions options);
  void show(Context& context, std::span<const GenerateResult> results) const;
  Result<int> finish(Context& context, const Engine& engine,
                     std::span<const GenerateResult> results) const;

  ModelFlags model_;
  SamplingFlags sampling_;
  GenerationFlags generation_;
  GrammarFlags grammar_;
  ChatFlags chat_;
  TensorFlags tensors_;
  std::optional<std::string> prompt_, prompt_file_;
  bool json_ = false;
};

void RunCommand::declare(Options& options) {
  model_.declare_model(options);
  options.optional_positional("PROMPT", prompt_, "The message to answer");
  options.optional_text("--prompt-file", prompt_file_, "FILE",
                        "Read the prompt from a file (-: standard input)");
  options.optional_text("--system", chat_.system, "TEXT", "System message", true);
  options.optional_text("--chat", chat_.preset, "PRESET",
                        "Chat template instead of the model's own: chatml, llama3, gemma or plain");
  options.flag(
      "--raw", chat_.raw,
      "Plain completion without a chat template; control tokens in the prompt are read as such");
  sampling_.declare(options);
  generation_.declare(options);
  grammar_.declare(options);
  tensors_.declare(options);
  model_.declare_context(options);
  model_.declare_engine(options);
  model_.declare_verify(options);
  options.flag("--json", json_, "One JSON object on stdout instead of the text");
  options.examples(kExamples);
}

bool RunCommand::is_chat(const Context& context) const {
  return !prompt_ && !prompt_file_ && !json_ && stdin_is_terminal() &&
         context.output.out_is_terminal();
}

/// Of white space alone there is nothing to answer; a completion may begin with it, or with nothing
/// where the model has a token to begin with (encode_raw).
Result<std::string> RunCommand::read_prompt(const Context& context) const {
  const TextWanted wanted{"the prompt", "as PROMPT, with --prompt-file FILE"};
  CYB_ASSIGN(std::string text,
             text_argument(prompt_, prompt_file_, wanted, context.interrupts.wake_fd()));
  if (!chat_.raw && text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(
        usage_error("the prompt is empty: give it as PROMPT, with --prompt-file FILE or "
                    "through a pipe"));
  }
  return text;
}

Result<int> RunCommand::run(Context& context) {
  CYB_TRY(check_chat_flags(chat_));
  CYB_TRY(sampling_.check(json_));
  CYB_TRY(generation_.check(is_chat(context)));
  const std::vector<std::string> sampling = sampling_.given();
  CYB_TRY(grammar_.check(std::ranges::find(sampling, "--stop") != sampling.end()));
  CYB_TRY(model_.check_kv());
  const std::stop_token stop = context.interrupts.begin();
  if (!tensors_.given().empty()) return run_tensors(context, stop);
  CYB_TRY(Output::check_writable());
  std::string text;
  if (!is_chat(context)) {
    auto read = read_prompt(context);
    if (!read) {
      // Nothing was asked: a model of tensors takes no prompt, and says what it takes.
      const auto model = prompt_ ? nullptr : model_.open(context, stop).value_or(nullptr);
      if (model) CYB_TRY(refuse_tensor_model(*model));
      return fail(std::move(read).error());
    }
    text = *std::move(read);
  }
  CYB_ASSIGN(std::shared_ptr<const Model> model, model_.open(context, stop));
  CYB_TRY(refuse_tensor_model(*model));
  EngineOptions engine_options = model_.engine_options();
  generation_.apply(engine_options);
  CYB_ASSIGN(const std::shared_ptr<Engine> engine,
             model_.load(context, std::move(model), stop, engine_options));
  CYB_ASSIGN(const std::string warning, preset_warning(*engine, chat_));
  if (!warning.empty()) context.output.warning(warning);
  for (const std::string& name : sampling_.without_effect(engine->sampling_defaults())) {
    context.output.note(fmt::format("{} has no effect: the answer is greedy", name));
  }
  for (const std::string& name : sampling_.without_partner(engine->sampling_defaults())) {
    context.output.note(fmt::format("{} has no effect: what it belongs to is off", name));
  }
  if (!is_chat(context)) return answer(context, *engine, text);
  GenerateOptions options = sampling_.generate_options();
  options.constraint = grammar_.grammar();
  CYB_TRY(generation_.apply(context, model_, stop, options));
  chat_.prompt_cache = generation_.prompt_cache();
  return run_chat(context, engine, chat_, options);
}

Result<int> RunCommand::run_tensors(Context& context, std::stop_token stop) {
  std::vector<std::string> text_only = sampling_.given();
  for (std::string& name : generation_.given()) text_only.push_back(std::move(name));
  for (std::string& name : grammar_.given()) text_only.push_back(std::move(name));
  if (prompt_) text_only.emplace_back("a prompt");
  if (prompt_file_) text_only.emplace_back("--prompt-file");
  if (chat_.system) text_only.emplace_back("--system");
  if (chat_.preset) text_only.emplace_back("--chat");
  if (chat_.raw) text_only.emplace_back("--raw");
  if (model_.has_context()) text_only.emplace_back("--ctx");
  if (model_.has_kv_type()) text_only.emplace_back("--kv");
  if (model_.has_adapters()) text_only.emplace_back("--lora");
  if (!text_only.empty()) {
    return fail(usage_error(fmt::format("{} is for a model of tensors, {} for one of text",
                                        tensors_.given(), text_only[0])));
  }
  CYB_ASSIGN(std::shared_ptr<const Model> model, model_.open(context, stop));
  return tensors_.run(context, model_, std::move(model), json_);
}

Result<std::vector<std::int32_t>> RunCommand::prompt_ids(const Engine& engine,
                                                         const std::string& text) const {
  CYB_ASSIGN(const Tokenizer* tokenizer, engine.need_tokenizer());
  if (chat_.raw) {
    const TokenizerConfig& config = tokenizer->config();
    if (text.empty() && !(config.add_bos_token && config.bos_token_id)) {
      return fail(
          usage_error("the prompt is empty, and this model has no begin-of-text token to "
                      "complete"));
    }
    return encode_raw(*tokenizer, text);
  }
  std::vector<ChatMessage> messages;
  if (chat_.system) messages.push_back({"system", *chat_.system});
  messages.push_back({"user", text});
  return encode_messages(engine, chat_, messages);
}

/// One answer streams; several come one after the other once all are there.
Result<std::vector<GenerateResult>> RunCommand::generate_for(Context& context, Session& session,
                                                             std::span<const std::int32_t> ids,
                                                             GenerateOptions options) {
  options.cancel = context.interrupts.begin();
  Progress progress(context.output, "reading the prompt",
                    session.engine().backend().name() == "reference" || ids.size() > 256);
  options.prefill_progress = [&](std::uint32_t done, std::uint32_t total) {
    progress.update(done, total, "");
  };
  const bool streams = !json_ && generation_.n_answers() == 1;
  const auto on_text = [&](std::uint32_t, std::string_view piece) {
    progress.clear();
    if (!context.output.print(piece)) context.interrupts.stop();
  };
  CYB_ASSIGN(std::vector<GenerateResult> results,
             generate_answers(session, ids, options, generation_.n_answers(),
                              streams ? AnswerSink(on_text) : AnswerSink()));
  progress.clear();
  return results;
}

void RunCommand::show(Context& context, std::span<const GenerateResult> results) const {
  const bool with_logprobs = sampling_.generate_options().logprobs.has_value();
  if (json_) {
    context.output.line(results.size() == 1 ? api::answer_json(results[0], with_logprobs)
                                            : api::answers_json(results, with_logprobs));
    return;
  }
  for (const GenerateResult& result : results) {
    if (results.size() > 1) {
      context.output.print(
          fmt::format("[answer {} of {}]\n{}", result.index + 1, results.size(), result.text));
    }
    if (!result.text.ends_with('\n')) context.output.print("\n");
  }
}

/// What is to be said after the answers, and the exit code.
Result<int> RunCommand::finish(Context& context, const Engine& engine,
                               std::span<const GenerateResult> results) const {
  const auto any = [&](FinishReason reason) {
    return std::ranges::any_of(
        results, [&](const GenerateResult& result) { return result.finish_reason == reason; });
  };
  std::size_t n_tokens = 0;
  for (const GenerateResult& result : results) n_tokens += result.tokens.size();
  log_info("memory: " + memory_text(engine.memory()));
  report_overflow(context.output, results[0].overflow);
  report_speculation(context.output, results[0].speculation);
  if (any(FinishReason::kCancelled)) {
    context.output.note(fmt::format("cancelled after {} tokens", n_tokens));
    return kExitCancelled;
  }
  if (any(FinishReason::kLength) && !sampling_.has_token_limit()) {
    context.output.warning(fmt::format(
        "the answer ends here because the context of {} tokens is full", engine.ctx_tokens()));
  }
  return kExitOk;
}

Result<int> RunCommand::answer(Context& context, Engine& engine, const std::string& text) {
  CYB_ASSIGN(const std::vector<std::int32_t> ids, prompt_ids(engine, text));
  if (!generation_.may_overflow()) CYB_TRY(check_context(engine, ids.size(), "the prompt"));
  Session session(engine.shared_from_this());
  GenerateOptions options = sampling_.generate_options();
  options.constraint = grammar_.grammar();
  CYB_TRY(generation_.apply(context, model_, context.interrupts.begin(), options));
  CYB_TRY(add_preset_stops(engine, chat_, options.stop));
  if (generation_.prompt_cache()) {
    CYB_TRY(open_prompt_cache(context.output, session, *generation_.prompt_cache(), chat_));
    // A path that cannot be written must not cost the answer first.
    CYB_TRY(AtomicFile::create(*generation_.prompt_cache()));
  }
  CYB_ASSIGN(const std::vector<GenerateResult> results,
             generate_for(context, session, ids, std::move(options)));
  show(context, results);
  CYB_TRY(context.output.result());  // what could not be written was not cancelled by anyone
  if (generation_.prompt_cache()) {
    CYB_TRY(save_session(session, *generation_.prompt_cache(), {template_name(chat_)}));
    if (results[0].reused_tokens > 0) {
      context.output.note(fmt::format("{} of {} prompt tokens came from {}",
                                      results[0].reused_tokens, results[0].prompt_tokens,
                                      *generation_.prompt_cache()));
    }
  }
  if (context.output.closed()) return kExitOk;
  return finish(context, engine, results);
}

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace cyb::cli
