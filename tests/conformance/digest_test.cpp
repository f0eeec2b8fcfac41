// Case tables on the reference: the committed digest of every case, on whatever machine this runs
// (tests/aarch64 builds this file for another one).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "base/hash.hpp"
#include "conformance/case_run.hpp"

namespace cyb::test {
namespace {

std::string digest_of(const Result<std::vector<Output>>& outputs) {
  if (!outputs) return "error:" + outputs.error().code();
  Blake3 hash;
  for (const Output& out : *outputs) {
    hash.update(out.view.shape.text());
    hash.update(out.bytes);
  }
  return hex(hash.finish()).substr(0, 32);
}

std::map<std::string, std::string> read_digests() {
  std::ifstream file(std::string(CYB_TESTS_DIR) + "/golden/ops/digests.txt");
  std::map<std::string, std::string> out;
  for (std::string path, digest; file >> path >> digest;) out[path] = digest;
  return out;
}

TEST(Conformance, TheReferenceGivesTheCommittedBits) {
  const auto golden = read_digests();
  // CYB_WRITE_DIGESTS=FILE writes what this build computes, to be looked at and committed.
  const char* write_to = std::getenv("CYB_WRITE_DIGESTS");
  std::ofstream written(write_to != nullptr ? write_to : "/dev/null");
  std::size_t n = 0;
  for (const OpCases& table : all_cases()) {
    for (const Case& c : table.cases) {
      const std::string path = path_of(table, c);
      const std::string digest = digest_of(run_reference(c, Made(c, path)));
      written << path << " " << digest << "\n";
      const auto it = golden.find(path);
      const std::string want = it == golden.end() ? "(none committed)" : it->second;
      EXPECT_EQ(digest, want) << path;
      ++n;
    }
  }
  EXPECT_EQ(n, golden.size());
}

TEST(Conformance, NoCaseOfTheTablesIsAnErrorUnlessNamedSo) {
  for (const OpCases& table : all_cases()) {
    for (const Case& c : table.cases) {
      const std::string path = path_of(table, c);
      const auto result = run_reference(c, Made(c, path));
      EXPECT_TRUE(result) << path << ": " << result.error().text();
    }
  }
}

}  // namespace
}  // namespace cyb::test
