// A command: declares its options, then runs. One file each in commands/, one line each in
// command_list.inc.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "cli/interrupts.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace cyb::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitMemory = 4;
inline constexpr int kExitCancelled = 5;
inline constexpr int kExitTestFailed = 6;

/// What every command may use.
struct Context {
  Output& output;
  Interrupts& interrupts;
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options& options) = 0;
  /// The exit code; an error becomes its kind's exit code. With --json the command prints its one
  /// object on success, the program prints {"error": ...} otherwise.
  virtual Result<int> run(Context& context) = 0;
  /// --json was given.
  virtual bool wants_json() const noexcept { return false; }
};

#define CYB_COMMAND(name, help) std::unique_ptr<Command> make_##name##_command();
#include "cli/command_list.inc"
#undef CYB_COMMAND

}  // namespace cyb::cli
