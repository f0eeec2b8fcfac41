// What the library leaves over (words it could not place) is told before what it misses: a mistyped
// option is the cause, a missing argument often only its consequence.
#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

using Words = std::span<const std::string>;

/// The words before "--".
Words before_mark(Words words) {
  return words.first(static_cast<std::size_t>(std::ranges::find(words, "--") - words.begin()));
}

bool contains(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

const CLI::App* chosen_command(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? nullptr : parsed.front();
}

/// "--name" of "--name=value".
std::string option_name(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

/// A word that was meant as an option: it begins with a dash and does not stand after "--".
bool is_option(const std::string& word, Words words) {
  if (word.size() < 2 || !word.starts_with('-')) return false;
  return contains(before_mark(words), word) || !contains(words, word);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string meant(const std::string& name) {
  return name.empty() ? std::string() : fmt::format("; did you mean {}?", name);
}

Error unknown_option(const std::string& word, const CLI::App& app, const CLI::App* command) {
  const std::string name = option_name(word);
  if (command == nullptr) {
    if (name == "--json") return usage_error("--json needs a command, as in: cyb-llm list --json");
    return usage_error(fmt::format("unknown option \"{}\" before the command{}", name,
                                   meant(closest_name(name, option_names(app)))));
  }
  std::vector<std::string> names = option_names(*command);
  if (contains(names, name)) {
    return usage_error(fmt::format("{} stands before the command; it goes after it: cyb-llm {} {}",
                                   name, command->get_name(), name));
  }
  for (std::string& global : option_names(app)) names.push_back(std::move(global));
  const std::string close = closest_name(name, names);
  std::string text =
      fmt::format("unknown option \"{}\" of {}{}", name, command->get_name(), meant(close));
  if (close.empty()) text += " (a text that begins with - goes after --)";
  return usage_error(text);
}

Error unknown_command(const std::string& word, const CLI::App& app) {
  if (word == "help" || word == "version") {
    return usage_error(fmt::format("unknown command \"{}\"; did you mean --{}?", word, word));
  }
  std::vector<std::string> names;
  std::string list;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    names.push_back(sub->get_name());
    list += (list.empty() ? "" : ", ") + sub->get_name();
  }
  const std::string close = closest_name(word, names);
  if (!close.empty())
    return usage_error(fmt::format("unknown command \"{}\"{}", word, meant(close)));
  std::error_code code;
  if (std::filesystem::exists(word, code)) {
    return usage_error(
        fmt::format("a command is missing before \"{}\", as in: cyb-llm run {}", word, word));
  }
  return usage_error(fmt::format("unknown command \"{}\"; the commands are {}", word, list));
}

Error extra_argument(const std::string& word, const CLI::App& command) {
  std::string positionals;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      positionals += (positionals.empty() ? "" : " and ") + option->get_name(true);
    }
  }
  return usage_error(fmt::format(
      "unexpected argument \"{}\": {} takes {}{}", word, command.get_name(),
      positionals.empty() ? "none" : positionals,
      positionals.find(" and ") == std::string::npos ? "" : "; quote a text that has spaces"));
}

Error missing_argument(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return usage_error(fmt::format("{} is missing: {}", option->get_name(option->get_positional()),
                                   option->get_description()));
  }
  return usage_error("an argument is missing");
}

/// An option without its value, given twice, or a flag with a value.
Error mismatch(const CLI::App& command, const CLI::ParseError& error) {
  const std::string what = error.what();
  std::string name = what.substr(0, what.find_first_of(": "));
  // For a flag the library says the name without its dashes.
  if (!name.starts_with('-')) name.insert(0, name.size() > 1 ? "--" : "-");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() != name) continue;
    if (option->get_expected_max() == 0) return usage_error(name + " takes no value");
    if (option->count() > 1) return usage_error(name + " is given more than once");
    return usage_error(fmt::format("{} needs a value: {} {}", name, name, option->get_type_name()));
  }
  return usage_error(what);
}

}  // namespace

std::vector<std::string> command_words(int argc, char** argv) {
  std::vector<std::string> words;
  bool marked = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    marked |= word == "--";
    if (!marked && word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1) {
      word.pop_back();
      words.push_back(std::move(word));
      words.emplace_back();
    } else {
      words.push_back(std::move(word));
    }
  }
  return words;
}

bool asks_for_json(std::span<const std::string> words) {
  return contains(before_mark(words), "--json");
}

bool asks_for_help(std::span<const std::string> words) {
  return contains(before_mark(words), "--help") || contains(before_mark(words), "-h");
}

Error explain(const CLI::App& app, const CLI::ParseError& error,
              std::span<const std::string> words) {
  const CLI::App* command = chosen_command(app);
  std::vector<std::string> extras = app.remaining(true);
  if (const auto mark = std::ranges::find(extras, "--"); mark != extras.end()) extras.erase(mark);
  for (const std::string& extra : extras) {
    if (is_option(extra, words)) return unknown_option(extra, app, command);
  }
  if (command == nullptr) {
    if (!extras.empty()) return unknown_command(extras.front(), app);
    return usage_error("a command is missing, as in: cyb-llm run MODEL \"What is gravity?\"");
  }
  if (!extras.empty()) return extra_argument(extras.front(), *command);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing_argument(*command);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return mismatch(*command, error);
  }
  return usage_error(error.what());
}

}  // namespace cyb::cli
