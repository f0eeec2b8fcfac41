// `cyb-llm pull cyb://...` of a model that another `cyb-llm serve` shares.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/hash.hpp"
#include "e2e/child.hpp"
#include "e2e/program.hpp"
#include "support/certificate.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class PullServer : public testing::Test {
 protected:
  /// A .model of about 3 MB: several ranges.
  void make_model(const std::string& path, unsigned ffn = 8000) const {
    const std::string source = there_.file("source" + std::to_string(ffn));
    ASSERT_TRUE(write_text_checkpoint(source, {.ffn = ffn}));
    const ProcessResult result = there_.run({"import", source, "-o", path});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void SetUp() override { make_model(model_); }

  /// serve of another machine; its port.
  std::string serve(std::vector<std::string> options) {
    const std::string said = there_.file("said" + std::to_string(servers_.size()));
    std::vector<std::string> command = {"bash",
                                        "-c",
                                        "exec \"$0\" -q serve \"$@\" > \"$SAID\"",
                                        built_program("cyb-llm"),
                                        model_,
                                        "--port",
                                        "0",
                                        "--threads",
                                        "1"};
    command.insert(command.end(), options.begin(), options.end());
    std::vector<std::string> environment = there_.environment();
    environment.push_back("SAID=" + said);
    servers_.push_back(std::make_unique<Child>(std::move(command), environment));
    const std::string text = wait_for_text(said);
    const std::size_t colon = text.rfind(':');
    EXPECT_NE(colon, std::string::npos) << "the server does not listen";
    return colon == std::string::npos ? "" : text.substr(colon + 1, text.find('\n') - colon - 1);
  }
  /// Between us and a port: so many bytes a second.
  std::string slow_way_to(const std::string& port, unsigned rate) {
    servers_.push_back(std::make_unique<Child>(
        std::vector<std::string>{"python3", std::string(CYB_TESTS_DIR) + "/e2e/hub/proxy.py",
                                 proxy_, port, std::to_string(rate)},
        std::vector<std::string>{}));
    return wait_for_text(proxy_);
  }
  void wait_for_bytes(std::uint64_t n) const {
    for (int i = 0; i < 3000; ++i) {
      const std::string text = read_all(proxy_ + ".sent");
      if (!text.empty() && std::stoull(text) >= n) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "no " << n << " bytes were sent";
  }
  static std::vector<std::string> network() {
    return {"no_proxy=127.0.0.1,localhost", "HF_TOKEN=", "CYB_TOKEN="};
  }
  ProcessResult pull(std::vector<std::string> arguments, std::vector<std::string> more = {}) const {
    arguments.insert(arguments.begin(), "pull");
    ProcessOptions options;
    options.timeout_s = 60;
    options.environment = network();
    for (std::string& entry : more) options.environment.push_back(std::move(entry));
    return here_.run(arguments, options);
  }
  /// The error's message behind its code; checks that the store has nothing.
  std::string refusal(std::vector<std::string> arguments,
                      std::vector<std::string> more = {}) const {
    arguments.push_back("--json");
    const ProcessResult result = pull(std::move(arguments), std::move(more));
    EXPECT_NE(result.exit_code, 0) << result.out;
    const Json listed = Program::json(here_.run({"list", "--json"}));
    EXPECT_TRUE(listed["models"].empty()) << listed;
    const Json json = Program::json(result);
    if (!json.is_object()) return result.out + result.err;
    return json["error"]["code"].get<std::string>() + " " +
           json["error"]["message"].get<std::string>();
  }
  /// Files of downloads that are there, but locks.
  std::size_t n_leftovers() const {
    std::size_t n = 0;
    std::error_code code;
    for (const auto& file : fs::recursive_directory_iterator(here_.file("data/downloads"), code))
      n += file.is_regular_file() && file.path().extension() != ".lock" ? 1u : 0u;
    return n;
  }

  Program there_, here_;
  std::string model_ = there_.file("m.model"), proxy_ = there_.file("proxy");
  std::vector<std::unique_ptr<Child>> servers_;
};

TEST_F(PullServer, AModelComesWholeAndRuns) {
  const std::string source = "cyb://127.0.0.1:" + serve({"--share-models"}) + "/m";
  const ProcessResult first = pull({source, "--json", "--connections", "3"});
  ASSERT_EQ(first.exit_code, 0) << first.err << first.out;
  const Json json = Program::json(first);
  EXPECT_EQ(json["name"], "m");
  EXPECT_EQ(json["already"], false);
  EXPECT_EQ(json["files"][0]["fetched_bytes"], fs::file_size(model_));
  EXPECT_TRUE(read_all(json["path"]) == read_all(model_));
  EXPECT_EQ(n_leftovers(), 0u);
  EXPECT_EQ(here_.run({"verify", "m"}).exit_code, 0);
  const ProcessResult answer = here_.run({"run", "m", "Hi", "--max-tokens", "2", "--seed", "1"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const ProcessResult again = pull({source, "--json", "--name", "other"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Program::json(again)["already"], true);
  EXPECT_TRUE(Program::json(again)["files"].empty());
  EXPECT_EQ(here_.run({"info", "other"}).exit_code, 0);
  const ProcessResult file = pull({source, "--output", here_.file("out")});
  ASSERT_EQ(file.exit_code, 0) << file.err;
  EXPECT_TRUE(read_all(here_.file("out/m.model")) == read_all(model_));
  const std::string id = json["model_id"];
  const ProcessResult by_id = pull({source.substr(0, source.rfind('/') + 1) + id, "--json"});
  EXPECT_EQ(by_id.exit_code, 0) << by_id.out;
}

TEST_F(PullServer, KeysAreAskedAndGoToTheirServerAlone) {
  const std::string key = "0123456789abcdef";
  write_all(there_.file("keys"), key + "\n");
  write_all(here_.file("wrong"), "fedcba9876543210\n");
  write_all(here_.file("right"), key + "\n");
  const std::string source =
      "cyb://127.0.0.1:" + serve({"--share-models", "--api-key-file", there_.file("keys")}) + "/m";
  for (const std::string& said :
       {refusal({source}), refusal({source, "--token-file", here_.file("wrong")}),
        refusal({source}, {"HF_TOKEN=" + key})}) {  // that is a hub's
    EXPECT_EQ(said.find("N03"), 0u) << said;
    EXPECT_NE(said.find("its key is missing or wrong"), std::string::npos) << said;
  }
  EXPECT_EQ(pull({source, "--output", here_.file("a")}, {"CYB_TOKEN=" + key}).exit_code, 0);
  EXPECT_EQ(pull({source, "--token-file", here_.file("right")}).exit_code, 0);
}

TEST_F(PullServer, WhatCannotBeHadIsSaid) {
  const std::string base = "cyb://127.0.0.1:" + serve({}) + "/";
  EXPECT_NE(refusal({base + "m"}).find("does not share its models"), std::string::npos);
  const std::string shared = "cyb://127.0.0.1:" + serve({"--share-models"}) + "/";
  for (const char* name : {"x", "", "..%2fm", "m:latest"}) {
    const std::string said = refusal({shared + name});
    EXPECT_EQ(said.find("N10"), 0u) << said;
    EXPECT_NE(said.find("\n  m  "), std::string::npos) << said;
  }
  for (const char* bad : {"cyb://", "cyb:///m", "cyb://user:word@127.0.0.1/m", "cyb://a b/m",
                          "cyb://h?x/m", "cyb://h#x/m", "cyb://h:port/m"})
    EXPECT_EQ(refusal({bad}).find("InvalidInput"), 0u) << bad;
  EXPECT_EQ(refusal({shared + "m", "--sha256", std::string(64, '0')}).find("InvalidInput"), 0u);
  write_all(here_.file("token"), "secret\n");
  EXPECT_EQ(refusal({"cyb+http://example.org/m", "--token-file", here_.file("token")}).find("N04"),
            0u);
  // Without a scheme of its own it is TLS, but on this machine: the tunnel is refused here.
  const std::string tunnel = "https_proxy=http://127.0.0.1:1";
  EXPECT_NE(refusal({"cyb://example.org/m"}, {tunnel}).find("https://example.org:8080"),
            std::string::npos);
}

TEST_F(PullServer, AKilledPullGoesOn) {
  const std::string port = slow_way_to(serve({"--share-models"}), 2'000'000);
  const std::string source = "cyb://127.0.0.1:" + port + "/m";
  std::vector<std::string> variables = network();
  for (const std::string& entry : here_.environment()) variables.push_back(entry);
  Child first({built_program("cyb-llm"), "pull", source, "--connections", "2"}, variables);
  wait_for_bytes(fs::file_size(model_) / 2);
  EXPECT_EQ(first.end(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(Program::json(here_.run({"list", "--json"}))["models"].empty());
  const ProcessResult second = pull({source, "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const std::uint64_t fetched = Program::json(second)["files"][0]["fetched_bytes"];
  EXPECT_LT(fetched, fs::file_size(model_) * 7 / 8);
  EXPECT_NE(second.err.find("going on with"), std::string::npos) << second.err;
  EXPECT_TRUE(read_all(Program::json(second)["path"]) == read_all(model_));
}

TEST_F(PullServer, AFileThatIsReplacedInTheMiddleIsNamed) {
  const std::string other = there_.file("other.model");
  make_model(other, 8008);
  const std::string port = slow_way_to(serve({"--share-models"}), 1'000'000);
  std::thread change([&] {
    wait_for_bytes(fs::file_size(model_) / 4);
    fs::rename(other, model_);
  });
  const std::string said =
      refusal({"cyb://127.0.0.1:" + port + "/m", "--connections", "1", "--retries", "2"});
  change.join();
  EXPECT_EQ(said.find("N09"), 0u) << said;
  EXPECT_NE(said.find("m has changed on"), std::string::npos) << said;
}

TEST_F(PullServer, LiesAreFoundBeforeAnythingIsKept) {
  const TemporaryFolder folder;
  const Child hub({"python3", std::string(CYB_TESTS_DIR) + "/e2e/hub/hub.py", folder.path(),
                   folder.file("port")},
                  {});
  const std::string source = "cyb://127.0.0.1:" + wait_for_text(folder.file("port")) + "/m";
  const Json info = Program::json(there_.run({"info", model_, "--json"}));
  const std::string bytes = read_all(model_);
  const std::string id = info["model_id"], zero = "blake3:" + std::string(64, '0');
  Json said = {{"name", "m"}, {"model_id", id}, {"digest", ""}, {"size_bytes", bytes.size()}};
  const auto refused = [&](const std::string& blob) {
    write_all(folder.file("blob"), blob);
    write_all(folder.file("registry.json"), Json{{"data", {said}}}.dump());
    const std::string text = refusal({source});
    EXPECT_EQ(n_leftovers(), 0u) << text;
    return text.substr(0, text.find(' '));
  };
  said["digest"] = zero;
  EXPECT_EQ(refused(bytes), "N07");
  const std::string digest = digest_text(blake3(bytes));
  said["digest"] = digest;
  said["model_id"] = zero;
  EXPECT_EQ(refused(bytes), "N07");
  said["model_id"] = id;
  EXPECT_EQ(refused(bytes + "x"), "N05");
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_EQ(refused(damaged), "N07");
  said["digest"] =
      digest_text(blake3(damaged));  // the server believes it: the file's own hashes do not
  EXPECT_EQ(refused(damaged).front(), 'F');
  said["size_bytes"] = -1;
  EXPECT_EQ(refused(bytes), "N06");
  said["size_bytes"] = bytes.size();
  said["digest"] = "sha256:00";
  EXPECT_EQ(refused(bytes), "N06");
  for (const char* text : {"", "[]", "{}", R"({"data":{}})", R"({"data":[1]})"}) {
    write_all(folder.file("registry.json"), text);
    const std::string code = refusal({source});
    EXPECT_TRUE(code.starts_with("JSON") || code.starts_with("N06")) << code;
  }
}

TEST_F(PullServer, TlsIsHeldAgainstItsCertificate) {
  const std::string certificate = there_.file("cert.pem"), key = there_.file("key.pem");
  write_certificate(certificate, key);
  const std::string source =
      "cyb+https://localhost:" +
      serve({"--share-models", "--tls-cert", certificate, "--tls-key", key}) + "/m";
  EXPECT_EQ(refusal({source, "--retries", "0"}).find("N01"), 0u);
  const ProcessResult known = pull({source, "--json"}, {"CURL_CA_BUNDLE=" + certificate});
  EXPECT_EQ(known.exit_code, 0) << known.out;
}

}  // namespace
}  // namespace cyb::test
