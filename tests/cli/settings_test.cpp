// Options from the command line, variables and a TOML file: one name each, one order of precedence,
// the same checks.
#include "cli/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/serve_options.hpp"

namespace cyb::cli {
namespace {

const SettingNames kNames{"CYB_SETTINGS_TEST_", {"openapi"}};

/// The options of serve without a command line.
struct Told {
  ServeOptions options;
  LooseOptions loose;
  Told() {
    Options declared = loose.options();
    options.declare(declared);
  }
  Result<Settings> file(std::string_view text) {
    return file_settings(text, "f.toml", loose.values(), kNames);
  }
  std::string error(std::string_view text) {
    const auto settings = file(text);
    if (!settings) return settings.error().text();
    const auto applied = apply_settings(loose.values(), {*settings});
    return applied ? "" : applied.error().text();
  }
};

struct Variable {
  std::string name;
  Variable(const std::string& option, const std::string& value)
      : name("CYB_SETTINGS_TEST_" + option) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name.c_str()); }
};

TEST(Settings, TheFirstThatHasAValueCounts) {
  Told told;
  const Variable port("PORT", "9"), hosts("ALLOW_HOST", "a,b"), exact("EXACT", "1");
  const auto file = told.file(
      "port = 8\nmax-queue = 7 # waits\nmodel = \"m\"\nallow-host = [\"c\"]\nslots = 3\n"
      "exact = false\nverify = true\n");
  ASSERT_TRUE(file.has_value()) << file.error().text();
  const auto variables = environment_settings(told.loose.values(), kNames);
  ASSERT_TRUE(variables.has_value()) << variables.error().text();
  const Settings flags = {{"slots", {"2"}, "--slots"}};
  const auto all = apply_settings(told.loose.values(), {flags, *variables, *file});
  ASSERT_TRUE(all.has_value()) << all.error().text();
  EXPECT_EQ(told.options.port, 9u);
  EXPECT_EQ(told.options.max_queue, 7u);
  EXPECT_EQ(told.options.slots, 2u);
  EXPECT_EQ(told.options.models, std::vector<std::string>{"m"});
  EXPECT_EQ(told.options.allow_hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(told.options.engine.engine_options().exact);
  const std::string text = settings_toml(told.loose.values(), *all, kNames);
  for (const char* line :
       {"port = 9  # CYB_SETTINGS_TEST_PORT\n", "slots = 2  # --slots\n",
        "max-queue = 7  # f.toml, line 2\n", "allow-host = [\"a\", \"b\"]  # CYB_SETTINGS_TEST_",
        "exact = true  # CYB_SETTINGS_TEST_EXACT\n", "model = [\"m\"]  # f.toml, line 3\n",
        "# host: 127.0.0.1, the default\n", "# unix: not set\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  Told again;  // what it prints says the same
  EXPECT_EQ(again.error(text), "");
  EXPECT_EQ(again.options.port, 9u);
  EXPECT_EQ(again.options.allow_hosts, told.options.allow_hosts);
}

TEST(Settings, MistakesAreNamedWithTheirPlace) {
  const auto expect = [](std::string_view text, std::string_view part) {
    Told told;
    const std::string error = told.error(text);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect("port = 1\n\nprot = 2\n", "f.toml, line 3: unknown key \"prot\"; did you mean port?");
  expect("[server]\nport = 1\n", "f.toml, line 1: unknown key \"server\"");
  expect("openapi = true\n", "f.toml, line 1: unknown key \"openapi\"");
  expect("api-key = \"0123456789abcdef\"\n", "unknown key \"api-key\"");  // only by a file's path
  expect("host = 1\nport = [1]\n", "f.toml, line 2: port must be a string or a number");
  expect("exact = 1\n", "f.toml, line 1: exact must be true or false");
  expect("host = true\n", "f.toml, line 1: host must be");
  expect("port = 65536\n", "f.toml, line 1: ");
  expect("port = 65536\n", "\"65536\" is not a whole number from 0 to 65535");
  expect("host = \"\"\n", "the empty text is no value");
  expect("port = 1\nport = 2\n", "f.toml: duplicate key \"port\"");
  expect("port = \n", "f.toml: TOML error at line 1");
}

TEST(Settings, VariablesAreCheckedToo) {
  Told told;
  {
    const Variable wrong("PROT", "1");
    const auto settings = environment_settings(told.loose.values(), kNames);
    ASSERT_FALSE(settings.has_value());
    EXPECT_NE(settings.error().text().find("CYB_SETTINGS_TEST_PROT\"; did you mean"),
              std::string::npos)
        << settings.error().text();
  }
  {
    const Variable wrong("EXACT", "yes");
    EXPECT_FALSE(environment_settings(told.loose.values(), kNames).has_value());
  }
  const Variable empty("HOST", ""), port("PORT", "x");
  const auto settings = environment_settings(told.loose.values(), kNames);
  ASSERT_TRUE(settings.has_value());
  const auto applied = apply_settings(told.loose.values(), {*settings});
  ASSERT_FALSE(applied.has_value());
  EXPECT_NE(applied.error().text().find("CYB_SETTINGS_TEST_PORT: "), std::string::npos);
  EXPECT_EQ(told.options.host, "127.0.0.1");
}

}  // namespace
}  // namespace cyb::cli
