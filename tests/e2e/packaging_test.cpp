// What packaging/ tells `serve` exists, and systemd understands the unit.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "e2e/child.hpp"
#include "e2e/program.hpp"

namespace cyb::test {
namespace {

std::string packaging(const std::string& name) {
  return std::string(CYB_TESTS_DIR) + "/../packaging/" + name;
}

/// Words that begin with -- behind what says that a line is about serve.
std::set<std::string> options_of(const std::string& text) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
  std::set<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t at = std::string::npos;
    for (const char* mark : {"serve ", "CYB_OPTIONS", "CYB_SERVE_"})
      at = std::min(at, line.find(mark));
    for (; at < line.size() && (at = line.find("--", at)) != std::string::npos; at += 2)
      if (at > 0 && std::string_view(" =`").find(line[at - 1]) != std::string_view::npos)
        out.insert(line.substr(at, line.find_first_not_of(kName, at) - at));
  }
  return out;
}

TEST(Packaging, EveryOptionExists) {
  const Program program;
  const std::string help = program.run({"serve", "--help"}).out;
  std::size_t n = 0;
  for (const char* name : {"cyb-llm.service", "serve.env.example", "Containerfile", "README.md"}) {
    const std::string text = read_all(packaging(name));
    ASSERT_FALSE(text.empty()) << name;
    for (const std::string& option : options_of(text)) {
      EXPECT_NE(help.find(option + " "), std::string::npos) << name << ": " << option;
      ++n;
    }
  }
  EXPECT_GE(n, 4u) << "the files name options";
  EXPECT_EQ(options_of("CYB_OPTIONS=--slots 16 --ctx 4096\n# serve m --host 0.0.0.0 --key\n"),
            (std::set<std::string>{"--slots", "--ctx", "--host", "--key"}));
}

TEST(Packaging, SystemdUnderstandsTheUnit) {
  if (run_process({"systemd-analyze", "--version"}).exit_code != 0)
    GTEST_SKIP() << "systemd-analyze is not installed";
  const TemporaryFolder folder;
  std::string unit = read_all(packaging("cyb-llm.service"));
  const std::string program = "/usr/local/bin/cyb-llm";
  ASSERT_NE(unit.find(program), std::string::npos);
  unit.replace(unit.find(program), program.size(), built_program("cyb-llm"));
  const auto verify = [&](const std::string& text) {
    write_all(folder.file("cyb-llm.service"), text);
    const ProcessResult result =
        run_process({"systemd-analyze", "verify", folder.file("cyb-llm.service")});
    std::istringstream lines(result.out + result.err);
    std::string about;
    for (std::string line; std::getline(lines, line);)
      if (line.find("cyb-llm.service") != std::string::npos) about += line + "\n";
    return about;
  };
  EXPECT_EQ(verify(unit), "");
  EXPECT_NE(verify(unit + "[Service]\nProtectHome=maybe\n"), "");  // it can fail
}

}  // namespace
}  // namespace cyb::test
