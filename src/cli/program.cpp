// Command look-up on CLI11; its exceptions end here.
#include "cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "api/version.hpp"
#include "base/log.hpp"
#include "cli/command.hpp"

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
  cyb-llm run MODEL "What is the capital of France?"    one answer
  cyb-llm run MODEL                                     a chat
MODEL is a .model file, a GGUF file or a Hugging Face folder (imported into the store once), or a name or id in the store.

Exit codes: 0 ok, 1 usage or input, 2 format or configuration, 3 not supported, 4 memory, device or file, 5 cancelled,
6 a check failed.
Environment: CYB_DATA (store), CYB_CACHE (packed weights), CYB_BACKEND, CYB_PATH, CYB_ISA, CYB_THREADS (defaults of the options
of these names). `cyb-llm COMMAND --help` explains a command.)";

std::vector<Entry> declare_commands(CLI::App& app, Globals& globals) {
  app.name("cyb-llm");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", std::string("cyb-llm ") + api::kVersion);
  app.add_flag("-q,--quiet", globals.quiet, "No notes and no progress, only warnings and errors");
  app.add_flag("-v,--verbose", globals.verbose, "Log what happens inside to stderr");
  std::vector<Entry> entries;
  const auto add = [&](const char* name, const char* help, std::unique_ptr<Command> command) {
    CLI::App* sub = app.add_subcommand(name, help);
    Options options(*sub);
    command->declare(options);
    entries.push_back({sub, std::move(command)});
  };
#define CYB_COMMAND(name, help) add(#name, help, make_##name##_command());
#include "cli/command_list.inc"
#undef CYB_COMMAND
  return entries;
}

/// The text behind a failed command line, and where to read on.
int usage_error(const CLI::App& app, const CLI::ParseError& error, Output& output) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    output.print(dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr ? app.version() + "\n"
                                                                             : std::string());
    return kExitOk;
  }
  std::string command;
  for (const CLI::App* sub : app.get_subcommands()) command = sub->get_name() + " ";
  output.error(error.what(), fmt::format("See: cyb-llm {}--help", command));
  return 1;
}

/// Advice that only a person at the command line needs.
std::string hint_for(const Error& error) {
  if (error.code() == "no_chat_template" || error.message().starts_with("no_chat_template")) {
    return "Use --raw for plain completion, or --chat PRESET to choose a template.";
  }
  if (error.code() == "D3") return "Import the model again to store its graph.";
  return {};
}

int report_error(const Error& error, bool json, Output& output) {
  output.error(error.text(), hint_for(error));
  if (json) output.line(R"({"error":)" + error.json() + "}");
  return exit_code(error.kind());
}

int run_command(Command& command, Context& context) {
  try {
    const Result<int> code = command.run(context);
    if (context.output.closed()) return kExitOk;  // `| head` has read what it wanted
    if (!code) return report_error(code.error(), command.wants_json(), context.output);
    if (const auto written = context.output.result(); !written) {
      return report_error(written.error(), false, context.output);
    }
    return *code;
  } catch (const std::bad_alloc&) {
    return report_error(Error(ErrorKind::kOutOfMemory, "host: out of memory"), command.wants_json(),
                        context.output);
  } catch (const std::exception& e) {
    return report_error(internal_error(e.what()), command.wants_json(), context.output);
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
  choose_locale();
  Output output;
  Interrupts interrupts;
  Context context{output, interrupts};
  CLI::App app("Runs neural models: any architecture, any device, and says so when it cannot.");
  Globals globals;
  std::vector<Entry> entries = declare_commands(app, globals);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* asked = &app;
    for (const CLI::App* sub : app.get_subcommands()) asked = sub;
    output.print(asked->help(asked == &app ? "" : "cyb-llm"));
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, output);
  }
  output.set_quiet(globals.quiet);
  if (globals.verbose) set_log_sink(make_stderr_log_sink(LogLevel::kDebug));
  for (Entry& entry : entries) {
    if (entry.app->parsed()) return run_command(*entry.command, context);
  }
  return 1;
}

}  // namespace cyb::cli
