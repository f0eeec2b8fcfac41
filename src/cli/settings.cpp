// The file is one flat table of TOML. Where its keys stand is found in its text, as the reader of
// TOML keeps no lines.
#include "cli/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "cli/usage.hpp"
#include "model/config.hpp"
#include "model/toml_cursor.hpp"

namespace cyb::cli {
namespace {

bool takes_part(const SettingNames& names, std::string_view name) {
  return std::ranges::find(names.flag_only, name) == names.flag_only.end();
}

std::string variable_of(const SettingNames& names, std::string_view option) {
  std::string out(names.prefix);
  for (const char c : option) {
    out += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return out;
}

Error unknown(std::string_view where, std::string_view what, const std::string& name,
              const std::vector<std::string>& known) {
  const std::string close = closest_name(name, known);
  return usage_error(fmt::format("{}unknown {} \"{}\"{}", where, what, name,
                                 close.empty() ? "" : "; did you mean " + close + "?"));
}

/// "1" and "true", "0" and "false".
std::optional<std::string> flag_text(std::string_view text) {
  if (text == "1" || text == "true") return "true";
  if (text == "0" || text == "false") return "false";
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view item : split_list(text)) out.emplace_back(item);
  return out;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return line;
}

/// Of `key`, or of the table's name; 0 where it was not found.
std::size_t line_of(std::string_view text, std::string_view key) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && std::string_view("[ \"'").find(line.front()) != line.npos) {
      line.remove_prefix(1);
    }
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.empty() || std::string_view(" \t=.]\"'").find(line.front()) != line.npos) {
      return number;
    }
  }
  return 0;
}

/// A scalar as the command line writes it.
std::optional<std::string> scalar_text(const ConfigValue& value) {
  if (value.string() != nullptr) return *value.string();
  if (value.integer() != nullptr) return std::to_string(*value.integer());
  if (value.real() != nullptr) return fmt::format("{}", *value.real());
  return std::nullopt;
}

/// nullopt: of another type.
std::optional<std::vector<std::string>> texts_of(const OptionInfo& option,
                                                 const ConfigValue& value) {
  if (option.flag) {
    if (value.boolean() == nullptr) return std::nullopt;
    return std::vector<std::string>{*value.boolean() ? "true" : "false"};
  }
  std::vector<std::string> out;
  const ConfigArray* array = value.array();
  if (array != nullptr && !option.list) return std::nullopt;
  const std::span<const ConfigValue> items =
      array != nullptr ? std::span<const ConfigValue>(*array) : std::span(&value, 1);
  for (const ConfigValue& item : items) {
    auto text = scalar_text(item);
    if (!text) return std::nullopt;
    out.push_back(*std::move(text));
  }
  return out;
}

std::string_view type_of(const OptionInfo& option) {
  return option.flag ? "true or false" : option.list ? "a list of strings" : "a string or a number";
}

/// The text between "(default: " and ")" of an option's help.
std::string_view default_of(std::string_view help) {
  constexpr std::string_view kMark = "(default: ";
  const std::size_t at = help.find(kMark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = help.substr(at + kMark.size());
  return rest.substr(0, rest.find(')'));
}

std::string value_toml(const OptionInfo& option, const std::vector<std::string>& values) {
  const auto one = [](const std::string& value) {
    std::string out;
    if (const auto number = parse_integer(value); number && value == std::to_string(*number)) {
      return value;
    }
    append_toml_string(out, value, false);
    return out;
  };
  if (option.flag) return values.front();
  if (!option.list) return one(values.front());
  std::string out;
  for (const std::string& value : values) {
    out += out.empty() ? "[" : ", ";
    append_toml_string(out, value, false);
  }
  return out.empty() ? "[]" : out + "]";
}

std::vector<std::string> known_names(const OptionValues& options, const SettingNames& names) {
  std::vector<std::string> out;
  for (const OptionInfo& option : options.all()) {
    if (takes_part(names, option.name)) out.push_back(option.name);
  }
  return out;
}

}  // namespace

Settings given_settings(const OptionValues& options, const SettingNames& names) {
  Settings out;
  for (const OptionInfo& option : options.all()) {
    auto values = options.given(option.name);
    if (values.empty() || !takes_part(names, option.name)) continue;
    out.push_back({option.name, std::move(values), option.given_as});
  }
  return out;
}

Result<Settings> environment_settings(const OptionValues& options, const SettingNames& names) {
  Settings out;
  std::vector<std::string> known;
  const std::vector<OptionInfo> all = options.all();
  for (const OptionInfo& option : all) {
    if (takes_part(names, option.name)) known.push_back(variable_of(names, option.name));
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size() - 1);
    const std::string name(text.substr(0, equals));
    if (!name.starts_with(names.prefix)) continue;
    const std::string value(text.substr(equals + 1));
    if (std::ranges::find(known, name) == known.end()) {
      return fail(unknown("", "variable", name, known));
    }
    if (value.empty()) continue;  // as if it were not set
    const auto option = std::ranges::find_if(all, [&](const OptionInfo& candidate) {
      return variable_of(names, candidate.name) == name;
    });
    const auto flag = flag_text(value);
    if (option->flag && !flag) {
      return fail(usage_error(fmt::format("{}: \"{}\" is not 1, true, 0 or false", name, value)));
    }
    out.push_back({option->name,
                   option->flag   ? std::vector{*flag}
                   : option->list ? split(value)
                                  : std::vector{value},
                   name});
  }
  return out;
}

Result<Settings> file_settings(std::string_view text, const std::string& path,
                               const OptionValues& options, const SettingNames& names) {
  auto parsed = parse_toml(text, path);
  if (!parsed) {
    Error error = std::move(parsed).error();
    return fail(error.text().starts_with(path) ? std::move(error) : std::move(error).in(path));
  }
  const ConfigTable& table = *parsed;
  const std::vector<OptionInfo> all = options.all();
  Settings out;
  for (const auto& [key, value] : table.items()) {
    const std::string where = fmt::format("{}, line {}", path, line_of(text, key));
    const auto option = std::ranges::find(all, key, &OptionInfo::name);
    if (option == all.end() || !takes_part(names, key)) {
      return fail(unknown(where + ": ", "key", key, known_names(options, names)));
    }
    auto values = texts_of(*option, value);
    if (!values) {
      return fail(usage_error(fmt::format("{}: {} must be {}", where, key, type_of(*option))));
    }
    out.push_back({key, *std::move(values), where});
  }
  return out;
}

Result<Settings> apply_settings(OptionValues options, const std::vector<Settings>& ranked) {
  Settings out;
  for (const Settings& settings : ranked) {
    for (const Setting& setting : settings) {
      if (std::ranges::find(out, setting.name, &Setting::name) != out.end()) continue;
      if (auto set = options.set(setting.name, setting.values); !set) {
        return fail(usage_error(setting.origin + ": " + set.error().message()));
      }
      out.push_back(setting);
    }
  }
  return out;
}

std::string settings_toml(const OptionValues& options, const Settings& settings,
                          const SettingNames& names) {
  std::string out;
  for (const OptionInfo& option : options.all()) {
    if (!takes_part(names, option.name)) continue;
    const auto own = std::ranges::find(settings, option.name, &Setting::name);
    if (own != settings.end()) {
      out +=
          fmt::format("{} = {}  # {}\n", option.name, value_toml(option, own->values), own->origin);
      continue;
    }
    const std::string_view text = option.list ? "" : default_of(option.help);
    out += fmt::format("# {}: {}\n", option.name,
                       option.flag    ? "false, the default"
                       : text.empty() ? "not set"
                                      : std::string(text) + ", the default");
  }
  return out;
}

}  // namespace cyb::cli
