// What `serve` is told by its command line, by CYB_SERVE_ variables and by a TOML file, and what it
// is told anew while it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/option_values.hpp"
#include "cli/serve_options.hpp"
#include "cli/settings.hpp"

namespace cyb::cli {

class ServeConfig {
 public:
  void declare(Options& options);
  /// After the command line was read. Errors: Usage naming flag, variable or file with its line; as
  /// read_text() and parse_toml().
  Result<void> read(int wake_fd);
  const ServeOptions& options() const noexcept { return options_; }
  /// As a file that read() takes.
  std::string toml() const;

  /// What the variables, the file and the files that it names say now.
  struct Renewed {
    server::ServerOptions options;
    std::vector<std::string> unused;  // settings that changed and need a new start
  };
  /// Errors: as read() and ServeOptions::server_options(); nothing has changed then.
  Result<Renewed> renew(int wake_fd);

 private:
  Result<Settings> collect(OptionValues values, int wake_fd) const;

  ServeOptions options_;
  std::optional<OptionValues> values_;
  Settings given_, settings_;
};

}  // namespace cyb::cli
