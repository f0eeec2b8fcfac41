#include "cli/serve_config.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/text_input.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

const SettingNames kInFile{"CYB_SERVE_", {"openapi", "print-config", "config"}};
const SettingNames kElsewhere{"CYB_SERVE_", {"openapi", "print-config"}};
/// What a running server takes.
constexpr std::string_view kRenewable[] = {"api-key-file", "admin-key-file", "allow-host",
                                           "tls-cert", "tls-key"};

const Setting* find(const Settings& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

}  // namespace

void ServeConfig::declare(Options& options) {
  options_.declare(options);
  values_.emplace(options.values());
}

Result<Settings> ServeConfig::collect(OptionValues values, int wake_fd) const {
  CYB_ASSIGN(Settings variables, environment_settings(values, kElsewhere));
  const Setting* path = find(given_, "config");
  if (path == nullptr) path = find(variables, "config");
  Settings file;
  if (path != nullptr) {
    const std::string& name = path->values.front();
    CYB_ASSIGN(const std::string text, read_text(name, wake_fd));
    CYB_ASSIGN(file, file_settings(text, name, values, kInFile));
  }
  return apply_settings(values, {given_, std::move(variables), std::move(file)});
}

Result<void> ServeConfig::read(int wake_fd) {
  given_ = given_settings(*values_, kElsewhere);
  CYB_ASSIGN(settings_, collect(*values_, wake_fd));
  return {};
}

std::string ServeConfig::toml() const {
  return settings_toml(*values_, settings_, kInFile);
}

Result<ServeConfig::Renewed> ServeConfig::renew(int wake_fd) {
  Renewed out;
  ServeOptions fresh;
  LooseOptions loose;
  Options options = loose.options();
  fresh.declare(options);
  CYB_ASSIGN(Settings settings, collect(loose.values(), wake_fd));
  CYB_ASSIGN(out.options, fresh.server_options(wake_fd));
  for (const OptionInfo& option : loose.values().all()) {
    const Setting* before = find(settings_, option.name);
    const Setting* now = find(settings, option.name);
    const bool same =
        before == nullptr || now == nullptr ? before == now : before->values == now->values;
    if (!same && std::ranges::find(kRenewable, option.name) == std::end(kRenewable)) {
      out.unused.push_back(option.name);
    }
  }
  return out;
}

}  // namespace cyb::cli
