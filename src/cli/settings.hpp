// Settings: the options of a command from the command line, from variables and from a TOML file,
// each under one name: --max-queue, CYB_SERVE_MAX_QUEUE, max-queue. The first of these that has a
// value counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/option_values.hpp"

namespace cyb::cli {

struct Setting {
  std::string name;
  std::vector<std::string> values;
  std::string origin;  // "--port", "CYB_SERVE_PORT", "serve.toml, line 3"
};
using Settings = std::vector<Setting>;

/// Which options take part, and the beginning of their variables.
struct SettingNames {
  std::string_view prefix;                  // "CYB_SERVE_"
  std::vector<std::string_view> flag_only;  // "openapi": they are no settings
};

/// What the command line gave.
Settings given_settings(const OptionValues& options, const SettingNames& names);
/// Lists have commas between their elements. Errors: Usage for a variable with the prefix that is
/// no option's.
Result<Settings> environment_settings(const OptionValues& options, const SettingNames& names);
/// `path` names the text in errors. Errors: Usage naming line and key for a key that is no option's
/// or has another type; as parse_toml().
Result<Settings> file_settings(std::string_view text, const std::string& path,
                               const OptionValues& options, const SettingNames& names);

/// Gives the options the values of `ranked`, of which the first have precedence; returns those that
/// count. Errors: Usage with the origin in front.
Result<Settings> apply_settings(OptionValues options, const std::vector<Settings>& ranked);

/// TOML that file_settings() reads back, with the origin of each value; what has its default stands
/// in comments.
std::string settings_toml(const OptionValues& options, const Settings& settings,
                          const SettingNames& names);

}  // namespace cyb::cli
