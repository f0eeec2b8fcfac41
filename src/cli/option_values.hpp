// The options of a command by their names, after the command line was read: what was given, and
// values from elsewhere with the same checks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace cyb::cli {

struct OptionInfo {
  std::string name;  // "port" of --port, "model" of MODEL
  std::string help;
  bool flag = false, list = false;
  std::string given_as{};  // "--port", "MODEL"
};

class OptionValues {
 public:
  explicit OptionValues(CLI::App& app) : app_(&app) {}

  /// In the order of their declaration, without --help.
  std::vector<OptionInfo> all() const;
  /// Empty where it is not given; "true" of a flag.
  std::vector<std::string> given(const std::string& name) const;
  /// As if it stood on the command line, instead of what did; a flag takes "true" and "false".
  /// Errors: Usage.
  Result<void> set(const std::string& name, std::span<const std::string> values);

 private:
  CLI::App* app_;
};

/// Options without a command line.
class LooseOptions {
 public:
  LooseOptions();
  ~LooseOptions();
  Options options();
  OptionValues values();

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace cyb::cli
