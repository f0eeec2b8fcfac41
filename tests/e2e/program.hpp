// Runs the built program with a store and caches of its own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/process.hpp"

namespace cyb::test {

/// The program in a world of its own: CYB_DATA and CYB_CACHE are temporary.
class Program {
 public:
  std::vector<std::string> environment() const {
    return {"CYB_DATA=" + folder_.file("data"), "CYB_CACHE=" + folder_.file("cache")};
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

  ProcessResult run(std::vector<std::string> arguments, ProcessOptions options = {}) const {
    arguments.insert(arguments.begin(), built_program("cyb-llm"));
    for (std::string& entry : environment()) options.environment.push_back(std::move(entry));
    return run_process(arguments, options);
  }
  /// The one JSON object on stdout; discarded where it is not exactly one.
  static nlohmann::json json(const ProcessResult& result) {
    return nlohmann::json::parse(result.out, nullptr, false);
  }

 private:
  TemporaryFolder folder_;
};

inline std::string golden(const std::string& name) {
  return std::string(CYB_TESTS_DIR) + "/golden/" + name;
}

/// The end of a bash command that has the program in the background: sends SIGTERM `times` times as
/// soon as the program waits for signals and is at work, then gives its exit code.
inline std::string terminate_when_ready(int times) {
  // Bits of SIGHUP, SIGINT and SIGTERM.
  std::string out =
      "P=$!; until grep -q 'SigBlk:.*4003' /proc/$P/status; do sleep 0.02; done; sleep 0.3; ";
  for (int i = 0; i < times; ++i) out += "kill -TERM $P; ";
  return out + "wait $P";
}

}  // namespace cyb::test
