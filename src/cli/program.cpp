// Command look-up on CLI11; its exceptions end here. Whatever goes wrong is told once on stderr
// and, with --json, as the one object on stdout.
#include "cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/version.hpp"
#include "base/log.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/environment.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

struct Entry {
  CLI::App* app;
  std::unique_ptr<Command> command;
};

struct Globals {
  bool quiet = false, verbose = false;
};

constexpr const char* kFooter = R"(Start here:
  cyb-llm run MODEL "What is gravity?"    one answer
  cyb-llm run MODEL                       a chat
  cyb-llm serve MODEL                     a server for the clients of OpenAI's API
MODEL is a .model file, a GGUF or ONNX file or a Hugging Face folder (imported into the store once), or a name or id in the store.

Exit codes: 0 ok, 1 usage or input, 2 format or configuration, 3 not supported, 4 memory, device or file, 5 cancelled,
6 a check failed.
Environment: CYB_DATA (store), CYB_CACHE (packed weights), CYB_BACKEND, CYB_PATH, CYB_ISA, CYB_THREADS (defaults of the options
of these names). `cyb-llm COMMAND --help` explains a command.)";

std::vector<Entry> declare_commands(CLI::App& app, Globals& globals) {
  app.name("cyb-llm");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", std::string("cyb-llm ") + api::kVersion);
  app.add_flag("-q,--quiet", globals.quiet, "No notes and no progress, only warnings and errors");
  app.add_flag("-v,--verbose", globals.verbose, "Log what happens inside to stderr");
  std::vector<Entry> entries;
  const auto add = [&](const char* name, const char* help, std::unique_ptr<Command> command) {
    CLI::App* sub = app.add_subcommand(name, help)->group("Commands");
    Options options(*sub);
    command->declare(options);
    entries.push_back({sub, std::move(command)});
  };
#define CYB_COMMAND(name, help) add(#name, help, make_##name##_command());
#include "cli/command_list.inc"
#undef CYB_COMMAND
  return entries;
}

/// Advice that only a person at the command line needs. `command`: its name, or "".
std::string hint_for(const Error& error, const std::string& command) {
  if (error.code() == "no_chat_template" || error.message().starts_with("no_chat_template")) {
    return "Use --raw for plain completion, or --chat PRESET to choose a template.";
  }
  if (error.message().starts_with("input: no model \"")) {
    return "`cyb-llm list` shows the models in the store.";
  }
  if (command == "pull" && (error.code() == "N01" || error.code() == "N02"))
    return "What was fetched is kept: the same command goes on from there.";
  if (error.code() == "D3") return "Import the model again to store its graph.";
  if (error.code() == kUsageCode) {
    return fmt::format("See: cyb-llm {}{}--help", command, command.empty() ? "" : " ");
  }
  return {};
}

/// Work that was stopped before it had a result: how many tokens were done says nothing then.
Error without_count(const Error& error, const std::string& command) {
  if (error.kind() != ErrorKind::kCancelled) return error;
  std::string_view left;
  if (command == "import") left = ": nothing is left behind";
  if (command == "pull") left = ": what was fetched is kept, the same command goes on from there";
  return Error(ErrorKind::kCancelled, fmt::format("{} was cancelled{}", command, left));
}

int report_error(const Error& error, const std::string& command, bool json, Output& output) {
  output.error(error.text(), hint_for(error, command));
  if (json) output.line(R"({"error":)" + error.json() + "}");
  return exit_code(error.kind());
}

/// What the command returned, unless stdout could not take its result.
Result<int> finish(Result<int> code, const Output& output, const std::string& command) {
  if (output.closed()) return kExitOk;  // `| head` has read what it wanted
  CYB_TRY(output.result());             // the cause also of the cancellation that followed
  if (!code) return fail(without_count(code.error(), command));
  return code;
}

Result<int> guarded_run(Command& command, Context& context) {
  try {
    CYB_TRY(check_environment());
    return command.run(context);
  } catch (const std::bad_alloc&) {
    return fail(Error(ErrorKind::kOutOfMemory, "host: out of memory"));
  } catch (const std::exception& e) {
    return fail(internal_error(e.what()));
  }
}

int run_command(const Entry& entry, Context& context) {
  const std::string& name = entry.app->get_name();
  const Result<int> code = finish(guarded_run(*entry.command, context), context.output, name);
  return code ? *code
              : report_error(code.error(), name, entry.command->wants_json(), context.output);
}

/// --help and --version: the text is the result.
int print_result(const std::string& text, Output& output) {
  output.print(text);
  const Result<int> code = finish(kExitOk, output, {});
  return code ? *code : report_error(code.error(), {}, false, output);
}

int print_help(const CLI::App& app, Output& output) {
  const CLI::App* asked = &app;
  for (const CLI::App* sub : app.get_subcommands()) asked = sub;
  return print_result(asked->help(asked == &app ? "" : "cyb-llm"), output);
}

/// nullopt: the command line is right.
std::optional<int> parse(CLI::App& app, const std::vector<std::string>& words, Output& output) {
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return print_help(app, output);
  } catch (const CLI::CallForVersion&) {
    return print_result(app.version() + "\n", output);
  } catch (const CLI::ParseError& error) {
    if (asks_for_help(words)) return print_help(app, output);
    std::string command;
    for (const CLI::App* sub : app.get_subcommands()) command = sub->get_name();
    return report_error(explain(app, error, words), command, asks_for_json(words), output);
  }
}

void choose_locale() {
  // Line editing needs to know that the terminal speaks UTF-8.
  const char* chosen = std::setlocale(LC_CTYPE, "");
  const std::string name = chosen != nullptr ? chosen : "";
  if (name.find("UTF-8") == std::string::npos && name.find("utf8") == std::string::npos) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  Output::reserve_streams();
  choose_locale();
  Output output;
  Interrupts interrupts;
  Context context{output, interrupts};
  CLI::App app("Runs neural models: any architecture, any device, and says so when it cannot.");
  Globals globals;
  const std::vector<Entry> entries = declare_commands(app, globals);
  if (const auto code = parse(app, command_words(argc, argv), output)) return *code;
  output.set_quiet(globals.quiet);
  // Warnings (a store that was mended) reach a person always, the rest only when asked for.
  set_log_sink(make_stderr_log_sink(globals.verbose ? LogLevel::kDebug : LogLevel::kWarning));
  for (const Entry& entry : entries) {
    if (entry.app->parsed()) return run_command(entry, context);
  }
  return 1;
}

}  // namespace cyb::cli
