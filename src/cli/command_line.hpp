// The words of a command line, and what is wrong with one that cannot be read: which word, the name
// that was probably meant, what to do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace cyb::cli {

/// argv without the program's name; "--option=" is split, so that its value is the empty text and
/// not the next word.
std::vector<std::string> command_words(int argc, char** argv);

/// --json stands among the words, before any "--".
bool asks_for_json(std::span<const std::string> words);

/// The same for --help and -h.
bool asks_for_help(std::span<const std::string> words);

/// A usage error (cli/usage.hpp) in words of ours for what the option library found.
Error explain(const CLI::App& app, const CLI::ParseError& error,
              std::span<const std::string> words);

}  // namespace cyb::cli
