// One Conversation per chat: the messages are the truth, the session's cache is only reused where
// it fits them.
#include "cli/chat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "api/text_check.hpp"
#include "base/file.hpp"
#include "cli/generation_flags.hpp"
#include "cli/line_editor.hpp"
#include "cli/memory_text.hpp"
#include "cli/model_flags.hpp"
#include "cli/progress.hpp"
#include "cli/usage.hpp"
#include "runtime/session.hpp"
#include "runtime/session_file.hpp"

namespace cyb::cli {
namespace {

constexpr std::string_view kHelp = R"(/help         this text
/reset        forget the conversation (the system message stays)
/stats        tokens, speed and memory of the last answer
/save FILE    keep the conversation for /load; as text where the name ends with .md
/load FILE    go on with a saved conversation
/quit         end (so does Ctrl-D)
Ctrl-C ends an answer or clears the line. A line that ends with \ goes on in the next one.
A message that begins with / needs a space before it.
)";

/// Those of ChatTemplate::preset().
constexpr std::array<std::string_view, 4> kPresets = {"chatml", "llama3", "gemma", "plain"};

class Conversation {
 public:
  Conversation(Context& context, const std::shared_ptr<Engine>& engine, const ChatFlags& flags,
               const GenerateOptions& options)
      : context_(context), session_(engine), flags_(flags), options_(options) {
    reset();
  }

  /// False: the chat is over.
  bool command(std::string_view line);
  Session& session() noexcept { return session_; }
  Result<void> turn(const std::string& text);

 private:
  void reset();
  void show_stats();
  Result<void> save(const std::string& path);
  Result<void> save_text(const std::string& path) const;
  Result<void> load(const std::string& path);
  std::size_t leave_out_oldest(std::size_t n_turns);
  Result<std::vector<std::int32_t>> prompt(const std::string& text) const;

  Context& context_;
  Session session_;
  const ChatFlags& flags_;
  const GenerateOptions& options_;
  std::vector<ChatMessage> messages_;
  std::optional<GenerateResult> last_;
};

void Conversation::reset() {
  messages_.clear();
  if (flags_.system) messages_.push_back({"system", *flags_.system});
}

bool Conversation::command(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  std::string argument(space == std::string_view::npos ? "" : line.substr(space + 1));
  while (argument.starts_with(' ')) argument.erase(0, 1);
  while (argument.ends_with(' ')) argument.pop_back();
  if (name != "/save" && name != "/load" && !argument.empty()) {
    context_.output.error(fmt::format("{} with \"{}\": no such command", name, argument),
                          "/help lists the commands. A message that begins with / needs a space "
                          "before it.");
    return true;
  }
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    context_.output.print(kHelp);
  } else if (name == "/reset") {
    reset();
    context_.output.note("The conversation is forgotten.");
  } else if (name == "/stats") {
    show_stats();
  } else if (name == "/save" || name == "/load") {
    const auto done = name == "/save" ? save(argument) : load(argument);
    if (!done) context_.output.error(done.error().text());
  } else {
    context_.output.error(fmt::format("unknown command {}", name), "/help lists the commands.");
  }
  return true;
}

void Conversation::show_stats() {
  if (!last_) {
    context_.output.note("No answer yet.");
    return;
  }
  const GenerateTimings& t = last_->timings;
  context_.output.print(fmt::format(
      "prompt  {} tokens, {} of them cached; {:.0f} ms, {:.1f} tokens/s\n"
      "answer  {} tokens ({}), {:.1f} tokens/s, {:.1f} ms a token (95 %: {:.1f})\n"
      "context {} of {} tokens; path {}, backend {}; peak memory {}; seed {}\n",
      last_->prompt_tokens, last_->reused_tokens, t.prefill_ms, t.prefill_tps, last_->tokens.size(),
      finish_reason_name(last_->finish_reason), t.decode_tps, t.token_ms_mean, t.token_ms_p95,
      last_->prompt_tokens + last_->tokens.size(), session_.engine().ctx_tokens(), last_->path,
      last_->backend, size_text(t.peak_bytes), last_->seed));
  context_.output.print("memory  " + memory_text(last_->memory) + "\n");
  report_speculation(context_.output, last_->speculation);
}

Result<void> Conversation::save(const std::string& path) {
  if (path.empty()) return fail(usage_error("/save needs a file name: /save holiday.chat"));
  const auto spoken = [](const ChatMessage& message) { return message.role != "system"; };
  if (std::ranges::none_of(messages_, spoken)) {
    return fail(usage_error(flags_.raw ? "with --raw no conversation is kept: nothing to save"
                                       : "nothing was said yet: nothing to save"));
  }
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    return fail(usage_error(fmt::format("\"{}\" exists: choose another name", path)));
  }
  if (path.ends_with(".md")) {
    CYB_TRY(save_text(path));
  } else {
    CYB_TRY(save_session(session_, path, {template_name(flags_), messages_}));
  }
  context_.output.note(fmt::format("{} messages saved to {}", messages_.size(), path));
  return {};
}

Result<void> Conversation::save_text(const std::string& path) const {
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  for (const ChatMessage& message : messages_) {
    CYB_TRY(file.write(fmt::format("## {}\n\n{}\n\n", message.role, message.content)));
  }
  return file.commit();
}

Result<void> Conversation::load(const std::string& path) {
  if (path.empty()) return fail(usage_error("/load needs a file name: /load holiday.chat"));
  if (flags_.raw) return fail(usage_error("with --raw there is no conversation to go on with"));
  CYB_ASSIGN(RestoredSession restored, restore_session(session_, path, template_name(flags_)));
  if (restored.messages.empty()) {
    return fail(usage_error(fmt::format("\"{}\" holds a prompt, no conversation", path)));
  }
  messages_ = std::move(restored.messages);
  last_.reset();
  context_.output.note(fmt::format("{} messages loaded from {}, {} tokens of them computed already",
                                   messages_.size(), path, restored.n_tokens));
  return {};
}

/// Forgets the first `n_turns` questions and answers that are still held; how many messages those
/// were.
std::size_t Conversation::leave_out_oldest(std::size_t n_turns) {
  const auto first = std::ranges::find_if(
      messages_, [](const ChatMessage& message) { return message.role != "system"; });
  const auto held = static_cast<std::size_t>(messages_.end() - first);
  const std::size_t n = std::min(held, 2 * n_turns);
  messages_.erase(first, first + static_cast<std::ptrdiff_t>(n));
  return n;
}

Result<std::vector<std::int32_t>> Conversation::prompt(const std::string& text) const {
  if (flags_.raw) {
    CYB_ASSIGN(const Tokenizer* tokenizer, session_.engine().need_tokenizer());
    return encode_raw(*tokenizer, text);
  }
  std::vector<ChatMessage> messages = messages_;
  messages.push_back({"user", text});
  return encode_messages(session_.engine(), flags_, messages);
}

Result<void> Conversation::turn(const std::string& text) {
  CYB_ASSIGN(std::vector<std::int32_t> ids, prompt(text));
  if (options_.overflow == Overflow::kError) {
    CYB_TRY(check_context(session_.engine(), ids.size(),
                          flags_.raw ? "the prompt" : "the conversation (/reset forgets it)"));
  }
  // Whole turns go first: half a message would be read as something that nobody said.
  std::size_t left_out = 0;
  const bool may_forget = options_.overflow != Overflow::kError && !flags_.raw;
  while (may_forget && ids.size() >= session_.engine().ctx_tokens()) {
    const std::size_t n = leave_out_oldest(1);
    if (n == 0) break;
    left_out += n;
    CYB_ASSIGN(ids, prompt(text));
  }
  if (left_out > 0) {
    context_.output.warning(
        fmt::format("the context is full: the oldest {} messages were left out", left_out));
  }
  GenerateOptions options = options_;
  options.cancel = context_.interrupts.begin();
  CYB_TRY(add_preset_stops(session_.engine(), flags_, options.stop));
  Progress progress(context_.output, "reading", ids.size() > 256);
  options.prefill_progress = [&](std::uint32_t done, std::uint32_t total) {
    progress.update(done, total, "");
  };
  const auto on_text = [&](std::string_view piece) {
    progress.clear();
    if (!context_.output.print(piece)) context_.interrupts.stop();
  };
  CYB_ASSIGN(GenerateResult result, generate(session_, ids, options, on_text));
  progress.clear();
  CYB_TRY(context_.output.result());  // an answer that could not be shown was not stopped by anyone
  if (context_.output.closed()) return {};
  if (!result.text.ends_with('\n')) context_.output.print("\n");
  report_overflow(context_.output, result.overflow);
  if (result.finish_reason == FinishReason::kCancelled) context_.output.note("(stopped)");
  // A question that was stopped before its answer began is as if it was never asked.
  const bool unanswered = result.finish_reason == FinishReason::kCancelled && result.tokens.empty();
  if (!flags_.raw && !unanswered) {
    messages_.push_back({"user", text});
    messages_.push_back({"assistant", result.text});
  }
  last_ = std::move(result);
  return {};
}

/// Whole input of one turn: lines that end with a backslash are joined. nullopt: end of input.
std::optional<std::string> read_turn(LineEditor& editor, Output& output) {
  std::string text;
  while (true) {
    const LineEditor::Line line = editor.read(text.empty() ? "> " : ". ");
    if (line.kind == LineEditor::Kind::kEnd) return std::nullopt;
    if (line.kind != LineEditor::Kind::kText) {
      if (line.kind == LineEditor::Kind::kMalformed) {
        output.error("the line holds bytes that are no UTF-8: it was not sent");
      }
      text.clear();
      continue;
    }
    if (!line.text.ends_with('\\')) return text + line.text;
    text += line.text.substr(0, line.text.size() - 1) + "\n";
  }
}

}  // namespace

std::string template_name(const ChatFlags& flags) {
  return flags.raw ? "raw" : flags.preset.value_or("own");
}

Result<void> open_prompt_cache(Output& output, Session& session, const std::string& path,
                               const ChatFlags& flags) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  auto restored = restore_session(session, path, template_name(flags));
  if (!restored) return fail(std::move(restored).error().in("--prompt-cache"));
  output.note(fmt::format("{} holds {} tokens", path, restored->n_tokens));
  return {};
}

Result<void> check_chat_flags(const ChatFlags& flags) {
  if (flags.raw && (flags.system || flags.preset)) {
    return fail(usage_error("--raw is plain completion: it goes with neither --system nor --chat"));
  }
  if (flags.preset && std::ranges::find(kPresets, *flags.preset) == kPresets.end()) {
    return fail(usage_error(
        fmt::format("--chat: \"{}\" is none of {}", *flags.preset, fmt::join(kPresets, ", "))));
  }
  return api::check_utf8(flags.system.value_or(""), "--system");
}

Result<std::string> preset_warning(const Engine& engine, const ChatFlags& flags) {
  if (!flags.preset) return std::string();
  CYB_ASSIGN(const Tokenizer* tokenizer, engine.need_tokenizer());
  CYB_ASSIGN(const std::unique_ptr<ChatTemplate> chat,
             ChatTemplate::preset(*flags.preset, *tokenizer));
  for (const std::string& stop : chat->stop_strings()) {
    const std::int32_t id = tokenizer->vocabulary().find(stop);
    if (id >= 0 && tokenizer->is_control(id)) continue;
    return fmt::format(
        "--chat {}: \"{}\" is no control token of this model; its marks are read as plain text",
        *flags.preset, stop);
  }
  return std::string();
}

Result<std::vector<std::int32_t>> encode_messages(const Engine& engine, const ChatFlags& flags,
                                                  std::span<const ChatMessage> messages) {
  if (!flags.preset) return encode_chat(engine, messages);
  CYB_ASSIGN(const Tokenizer* tokenizer, engine.need_tokenizer());
  CYB_ASSIGN(const std::unique_ptr<ChatTemplate> chat,
             ChatTemplate::preset(*flags.preset, *tokenizer));
  return chat->encode(chat_input(messages), *tokenizer);
}

Result<void> add_preset_stops(const Engine& engine, const ChatFlags& flags,
                              std::vector<std::string>& stops) {
  if (!flags.preset) return {};
  CYB_ASSIGN(const Tokenizer* tokenizer, engine.need_tokenizer());
  CYB_ASSIGN(const std::unique_ptr<ChatTemplate> chat,
             ChatTemplate::preset(*flags.preset, *tokenizer));
  stops.insert(stops.end(), chat->stop_strings().begin(), chat->stop_strings().end());
  return {};
}

Result<int> run_chat(Context& context, const std::shared_ptr<Engine>& engine,
                     const ChatFlags& flags, const GenerateOptions& options) {
  if (!flags.raw && !flags.preset && engine->chat_template() == nullptr)
    return fail(engine->chat_error());
  Conversation conversation(context, engine, flags, options);
  if (flags.prompt_cache) {
    CYB_TRY(open_prompt_cache(context.output, conversation.session(), *flags.prompt_cache, flags));
  }
  LineEditor editor(context.interrupts, data_folder() + "/history");
  context.output.note(fmt::format("{} on {}, context {} tokens. /help for help, Ctrl-D to end.",
                                  engine->model().name(), engine->backend().description(),
                                  engine->ctx_tokens()));
  while (!context.interrupts.terminating() && !context.output.closed()) {
    const std::optional<std::string> text = read_turn(editor, context.output);
    if (!text) break;
    if (text->find_first_not_of(" \t\n") == std::string::npos) continue;
    if (text->starts_with('/')) {
      if (!conversation.command(*text)) break;
      continue;
    }
    const auto done = conversation.turn(*text);
    CYB_TRY(context.output.result());
    if (!done) context.output.error(done.error().text());
  }
  if (flags.prompt_cache) {
    CYB_TRY(save_session(conversation.session(), *flags.prompt_cache, {template_name(flags)}));
  }
  return kExitOk;
}

}  // namespace cyb::cli
