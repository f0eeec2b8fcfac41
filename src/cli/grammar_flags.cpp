// A schema may stand on the command line itself; grammars are files.
#include "cli/grammar_flags.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/text_input.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

using Compile = Result<std::shared_ptr<const Grammar>> (*)(std::string_view, const GrammarLead&);

/// {...}, true or false: no file's name.
bool is_schema_text(std::string_view given) {
  const std::size_t first = given.find_first_not_of(" \t\r\n");
  return given == "true" || given == "false" ||
         (first != std::string_view::npos && given[first] == '{');
}

}  // namespace

void GrammarFlags::declare(Options& options) {
  options.optional_text("--json-schema", json_schema_, "FILE|JSON",
                        "The answer is JSON that fits this schema");
  options.optional_text("--grammar", gbnf_, "FILE", "The answer fits this GBNF grammar");
  options.optional_text("--regex", regex_, "PATTERN",
                        "The answer as a whole matches this regular expression");
  options.optional_text("--lark", lark_, "FILE", "The answer fits this Lark grammar");
}

std::vector<std::string> GrammarFlags::given() const {
  const std::pair<const char*, bool> all[] = {{"--json-schema", json_schema_.has_value()},
                                              {"--grammar", gbnf_.has_value()},
                                              {"--regex", regex_.has_value()},
                                              {"--lark", lark_.has_value()}};
  std::vector<std::string> names;
  for (const auto& [name, is_given] : all) {
    if (is_given) names.emplace_back(name);
  }
  return names;
}

Result<void> GrammarFlags::check(bool stop_texts) {
  const std::vector<std::string> names = given();
  if (names.empty()) return {};
  if (names.size() > 1) {
    return fail(usage_error(
        fmt::format("{} and {} both say what the answer must be: give one", names[0], names[1])));
  }
  if (stop_texts) {
    return fail(usage_error(fmt::format(
        "{}: the answer ends where its text is complete, --stop would cut it", names[0])));
  }
  struct Source {
    const std::optional<std::string>& given;
    Compile compile;
    bool is_text;
  };
  const Source sources[] = {
      {json_schema_, Grammar::from_json_schema, json_schema_ && is_schema_text(*json_schema_)},
      {gbnf_, Grammar::from_gbnf, false},
      {regex_, Grammar::from_regex, true},
      {lark_, Grammar::from_lark, false}};
  for (const Source& source : sources) {
    if (!source.given) continue;
    std::string text = *source.given;
    if (!source.is_text) {
      CYB_ASSIGN(text, read_text(*source.given));
    }
    auto made = source.compile(text, {});
    if (!made) {
      return fail(
          std::move(made).error().in(source.is_text ? names[0] : names[0] + " " + *source.given));
    }
    grammar_ = *std::move(made);
  }
  return {};
}

}  // namespace cyb::cli
