// Names are those of the options, without dashes; arguments have theirs in lower case.
#include "cli/option_values.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

std::string name_of(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return option.get_lnames().front();
  std::string name = option.get_name(true);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

CLI::Option* find(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    if (name_of(*option) == name) return const_cast<CLI::Option*>(option);
  }
  return nullptr;
}

}  // namespace

OptionValues Options::values() const {
  return OptionValues(app_);
}

std::vector<OptionInfo> OptionValues::all() const {
  std::vector<OptionInfo> out;
  for (const CLI::Option* option : app_->get_options()) {
    if (option == app_->get_help_ptr()) continue;
    out.push_back({name_of(*option), option->get_description(), option->get_expected_max() == 0,
                   option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll,
                   option->get_name(option->get_positional())});
  }
  return out;
}

std::vector<std::string> OptionValues::given(const std::string& name) const {
  const CLI::Option* option = find(*app_, name);
  if (option == nullptr || option->count() == 0) return {};
  if (option->get_expected_max() == 0) return {"true"};
  return option->results();
}

Result<void> OptionValues::set(const std::string& name, std::span<const std::string> values) {
  CLI::Option* option = find(*app_, name);
  if (option == nullptr) return fail(usage_error("there is no option --" + name));
  option->clear();
  if (option->get_expected_max() == 0 && std::ranges::find(values, "false") != values.end()) {
    return {};
  }
  for (const std::string& value : values) option->add_result(value);
  try {
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    return fail(usage_error(error.what()));
  }
  return {};
}

LooseOptions::LooseOptions() : app_(std::make_unique<CLI::App>()) {}
LooseOptions::~LooseOptions() = default;

Options LooseOptions::options() {
  return Options(*app_);
}

OptionValues LooseOptions::values() {
  return OptionValues(*app_);
}

}  // namespace cyb::cli
