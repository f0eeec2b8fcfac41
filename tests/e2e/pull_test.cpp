// `cyb-llm pull` against a hub on loopback that fails in every way (tests/e2e/hub/hub.py).
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "e2e/child.hpp"
#include "e2e/program.hpp"
#include "support/certificate.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Pull : public testing::Test {
 protected:
  Pull() {
    write_certificate(certificate_, folder_.file("key.pem"));
    hub_ = std::make_unique<Child>(
        std::vector<std::string>{"python3", std::string(CYB_TESTS_DIR) + "/e2e/hub/hub.py",
                                 folder_.path(), folder_.file("port"), certificate_,
                                 folder_.file("key.pem")},
        std::vector<std::string>{});
    port_ = wait_for_text(folder_.file("port"));
  }

  std::string hub() const { return "http://127.0.0.1:" + port_; }
  std::string address(const std::string& file) const { return hub() + "/file/" + file; }
  std::vector<std::string> environment() const {
    return {"HF_ENDPOINT=" + hub(), "no_proxy=127.0.0.1", "HF_TOKEN="};
  }
  ProcessResult pull(std::vector<std::string> arguments, std::vector<std::string> more = {}) const {
    arguments.insert(arguments.begin(), "pull");
    ProcessOptions options;
    options.timeout_s = 30;
    options.environment = environment();
    for (std::string& entry : more) options.environment.push_back(std::move(entry));
    return program_.run(arguments, options);
  }
  /// Bytes that are no model, of so many KiB.
  std::string put(const std::string& path, std::size_t kib) const {
    std::string bytes(kib * 1024, '\0');
    std::uint32_t state = 1;
    for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    write_all(folder_.file(path), bytes);
    return bytes;
  }
  std::vector<Json> log() const {
    std::vector<Json> out;
    std::ifstream stream(folder_.file("log"));
    for (std::string line; std::getline(stream, line);) out.push_back(Json::parse(line));
    return out;
  }
  std::uint64_t sent(const std::string& path) const {
    std::uint64_t sum = 0;
    for (const Json& line : log())
      if (line["path"].get<std::string>().find(path) != std::string::npos)
        sum += line["sent"].get<std::uint64_t>();
    return sum;
  }
  std::string out(const std::string& name = "out") const { return program_.file(name); }
  /// The error's code; checks that no file has the final name.
  std::string code_of(const std::string& source, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {source, "--output", out(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = pull(arguments);
    EXPECT_NE(result.exit_code, 0) << result.out;
    EXPECT_FALSE(fs::exists(out() + "/m.gguf"));
    const Json json = Program::json(result);
    return json.is_object() ? json["error"]["code"].get<std::string>() : result.out + result.err;
  }

  /// A pull of slow/NAME into out() that is killed when a third of the file was sent.
  void kill_in_the_middle(const std::string& source, const std::string& path,
                          std::size_t size) const {
    std::vector<std::string> variables = environment();
    for (const std::string& entry : program_.environment()) variables.push_back(entry);
    Child first({built_program("cyb-llm"), "pull", source, "--output", out(), "--connections", "2"},
                variables);
    for (int i = 0; i < 1000 && sent(path) < size / 3; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(first.end(SIGKILL), 128 + SIGKILL);
    EXPECT_FALSE(fs::exists(out() + "/m.gguf"));
  }

  TemporaryFolder folder_;
  std::string certificate_ = folder_.file("cert.pem");
  Program program_;
  std::unique_ptr<Child> hub_;
  std::string port_;
};

TEST_F(Pull, ACheckpointRunsAfterwardsAndIsPulledOnce) {
  ASSERT_TRUE(write_text_checkpoint(folder_.file("good/tiny")));
  write_all(folder_.file("good/tiny/pytorch_model.bin"), "pickle");
  const ProcessResult first = pull({"good/tiny", "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(Program::json(first)["name"], "tiny");
  EXPECT_EQ(program_.run({"info", "tiny"}).exit_code, 0);
  const ProcessResult answer =
      program_.run({"run", "tiny", "Hi", "--max-tokens", "2", "--seed", "1"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(sent("pytorch_model.bin"), 0u);
  const std::uint64_t before = sent("resolve");
  const ProcessResult again = pull({"good/tiny", "--json", "--name", "other"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Program::json(again)["already"], true);
  EXPECT_EQ(sent("resolve"), before);
  EXPECT_EQ(program_.run({"info", "other"}).exit_code, 0);
  EXPECT_EQ(program_.run({"verify", "tiny"}).exit_code, 0);
}

TEST_F(Pull, OneGgufOfSeveralIsChosenByAPartOfItsName) {
  for (const char* name : {"m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-Q8_0.gguf"}) {
    fs::create_directories(folder_.file("good/g"));
    fs::copy_file(golden("gguf/llama.gguf"), folder_.file("good/g/") + name);
  }
  const ProcessResult none = pull({"good/g", "--json"});
  EXPECT_EQ(none.exit_code, 1);
  const std::string text = Program::json(none)["error"]["message"];
  EXPECT_NE(text.find("m-Q4_K_S.gguf"), std::string::npos) << text;
  EXPECT_NE(text.find("MiB"), std::string::npos) << text;
  EXPECT_EQ(code_of("good/g:q4"), "N10");
  EXPECT_EQ(code_of("good/g:q5_k"), "N10");
  const ProcessResult one = pull({"good/g:q4_k_m", "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(Program::json(one)["name"], "m-Q4_K_M");
  EXPECT_EQ(program_.run({"info", "m-Q4_K_M"}).exit_code, 0);
}

TEST_F(Pull, BrokenLinksAndBusyServersAreOvercome) {
  for (const char* how : {"drop10", "drop50", "drop99", "s500", "r429", "corrupt1", "norange"}) {
    const std::string bytes = put(std::string(how) + "/m/m.gguf", 2000);
    const ProcessResult result =
        pull({std::string(how) + "/m", "--output", out(how), "--json", "--connections", "2"});
    ASSERT_EQ(result.exit_code, 0) << how << result.err;
    EXPECT_EQ(result.err.find("trying again in 1 s") != std::string::npos,
              std::string(how) == "r429")
        << result.err;
    EXPECT_TRUE(read_all(out(how) + "/m.gguf") == bytes) << how;
    EXPECT_FALSE(fs::exists(out(how) + "/m.gguf.part")) << how;
    EXPECT_FALSE(fs::exists(out(how) + "/m.gguf.part.state")) << how;
    // Without ranges the server also writes what the first look at the file does not read.
    const bool twice = std::string(how) == "corrupt1" || std::string(how) == "norange";
    const std::uint64_t limit = twice ? 2 * bytes.size() : bytes.size();
    EXPECT_LE(sent(std::string(how) + "/m/resolve"), limit + 1 + 7 * 65536) << how;
  }
}

TEST_F(Pull, WhatCannotBeRightIsRefusedByCode) {
  for (const char* how :
       {"corrupt", "liesrange", "lieslength", "loop", "scheme", "down", "dotdot", "absolute",
        "backslash", "nul", "huge", "bigdisk", "many", "badjson", "bigjson"})
    put(std::string(how) + "/m/m.gguf", 600);
  EXPECT_EQ(code_of("corrupt/m"), "N07");
  EXPECT_FALSE(fs::exists(out() + "/m.gguf.part"));
  EXPECT_EQ(code_of("liesrange/m"), "N05");
  EXPECT_EQ(code_of("lieslength/m"), "N05");
  EXPECT_EQ(code_of("loop/m"), "N04");
  EXPECT_EQ(code_of("scheme/m"), "N04");
  EXPECT_EQ(code_of("down/m", {"--retries", "1"}), "N03");
  for (const char* how : {"dotdot", "absolute", "backslash", "huge", "many"})
    EXPECT_EQ(code_of(std::string(how) + "/m"), "N06") << how;
  EXPECT_EQ(code_of("nul/m"), "N06");
  EXPECT_EQ(code_of("bigdisk/m"), "N08");
  EXPECT_EQ(code_of("badjson/m"), "JSON");
  EXPECT_EQ(code_of("bigjson/m"), "N05");
  EXPECT_EQ(code_of("absent/m"), "N03");
  EXPECT_EQ(code_of("good/m:pytorch_model.bin"), "N11");
  EXPECT_EQ(code_of("http://example.org/m.gguf"), "InvalidInput");
  EXPECT_EQ(code_of("http://127.0.0.1:1/m.gguf", {"--retries", "0"}), "N01");
}

TEST_F(Pull, EndlessBodiesAndSlowDripsEnd) {
  put("endless/m/m.gguf", 600);
  EXPECT_EQ(code_of("endless/m"), "N05");
  put("drip/m/m.gguf", 600);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of("drip/m", {"--stall", "1", "--retries", "0"}), "N02");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST_F(Pull, TheTokenGoesToTheHubAlone) {
  put("other/m/m.gguf", 600);
  write_all(out("token"), "hf_secret\n");
  const ProcessResult result =
      pull({"other/m", "--output", out(), "--token-file", out("token"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::size_t at_hub = 0, elsewhere = 0;
  for (const Json& line : log()) {
    if (line["port"] == std::stoi(port_)) {
      EXPECT_EQ(line["token"], "Bearer hf_secret") << line;
      ++at_hub;
    } else {
      EXPECT_TRUE(line["token"].is_null()) << line;
      ++elsewhere;
    }
  }
  EXPECT_GT(at_hub, 0u);
  EXPECT_GT(elsewhere, 0u);
  const ProcessResult plain =
      pull({"o/m", "--hub", "http://example.org", "--token-file", out("token")});
  EXPECT_NE(plain.err.find("not sent over http"), std::string::npos) << plain.err;
}

TEST_F(Pull, AFileThatChangesBeginsAnew) {
  put("changes/m/m.gguf", 2000);
  std::string other = put("changes2/m/m.gguf", 2000);
  for (char& c : other) c = static_cast<char>(255 - static_cast<unsigned char>(c));
  write_all(folder_.file("changes2/m/m.gguf"), other);
  const ProcessResult result =
      pull({address("changes/m/m.gguf"), "--output", out(), "--json", "--connections", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(read_all(out() + "/m.gguf") == other);
  EXPECT_NE(result.err.find("changed on the server"), std::string::npos) << result.err;
}

TEST_F(Pull, AnAddressIsPinnedByItsFirstFetch) {
  fs::create_directories(folder_.file("good/a"));
  fs::copy_file(golden("gguf/llama.gguf"), folder_.file("good/a/m.gguf"));
  const std::string source = address("good/a/m.gguf");
  const ProcessResult first = pull({source, "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(Program::json(first)["pinned"], true);
  EXPECT_EQ(program_.run({"info", "m"}).exit_code, 0);
  const ProcessResult again = pull({source, "--json"});
  EXPECT_EQ(Program::json(again)["already"], true) << again.err;
  const std::string digest = Program::json(first)["files"][0]["sha256"];
  EXPECT_EQ(code_of(source, {"--sha256", std::string(64, '0')}), "N07");
  const ProcessResult known = pull({source, "--output", out("known"), "--sha256", digest});
  EXPECT_EQ(known.exit_code, 0) << known.err;
  const ProcessResult twice = pull({source, "--output", out("known")});
  EXPECT_EQ(twice.exit_code, 0) << "the pin says that it is the same: " << twice.err;
  put("good/a/m.gguf", 300);
  const ProcessResult elsewhere = pull({source, "--output", out("other")});
  EXPECT_EQ(elsewhere.exit_code, 2) << "the pin holds for every folder";
  const ProcessResult kept = pull({source, "--no-import"});
  EXPECT_EQ(kept.exit_code, 2) << "the pin is not what the server has now";
  EXPECT_NE(kept.err.find("pinned"), std::string::npos) << kept.err;
}

// What the first fetch got was no model: nothing is pinned, and the same command fetches again.
TEST_F(Pull, APageInPlaceOfAFileIsNotKept) {
  fs::create_directories(folder_.file("good/a"));
  const std::string source = address("good/a/m.gguf");
  const std::pair<const char*, const char*> wrong[] = {
      {"\n <!DOCTYPE HTML><title>Log in</title>", "HTML page"},
      {"", "empty"},
      {"no such object", "GGUF"}};
  for (const auto& [bytes, words] : wrong) {
    write_all(folder_.file("good/a/m.gguf"), bytes);
    const ProcessResult page = pull({source});
    EXPECT_EQ(page.exit_code, 2) << words;
    EXPECT_NE(page.err.find(words), std::string::npos) << page.err;
  }
  fs::remove(folder_.file("good/a/m.gguf"));
  fs::copy_file(golden("gguf/llama.gguf"), folder_.file("good/a/m.gguf"));
  const ProcessResult right = pull({source, "--json"});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_EQ(Program::json(right)["pinned"], true);
}

TEST_F(Pull, ATokenFileThatOthersCanReadIsAWarning) {
  put("good/a/m.gguf", 3);
  write_all(folder_.file("token"), "hf_secret\n");
  for (const auto mode : {fs::perms::owner_read | fs::perms::others_read, fs::perms::owner_read}) {
    fs::permissions(folder_.file("token"), mode);
    const ProcessResult result =
        pull({"good/a", "--output", out("t"), "--token-file", folder_.file("token")});
    const bool warned = result.err.find("others can read or write it") != std::string::npos;
    EXPECT_EQ(warned, mode != fs::perms::owner_read) << result.err;
  }
}

TEST_F(Pull, AKilledPullGoesOn) {
  const std::string bytes = put("slow/m/m.gguf", 6000);
  kill_in_the_middle("slow/m", "slow/m/resolve", bytes.size());
  const ProcessResult second = pull({"slow/m", "--output", out(), "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(read_all(out() + "/m.gguf") == bytes);
  const std::uint64_t fetched = Program::json(second)["files"][0]["fetched_bytes"];
  EXPECT_LT(fetched, bytes.size() * 3 / 4);
  EXPECT_NE(second.err.find("going on with"), std::string::npos) << second.err;
}

TEST_F(Pull, BytesThatFlipOnTheDiskAreFetchedAgain) {
  const std::string part = out() + "/m.gguf.part";
  // By the hub's digest, and of an address where nothing but the journal knows the bytes.
  for (const bool known : {true, false}) {
    const std::string path = known ? "slow/flip/m.gguf" : "slow/pin/m.gguf";
    const std::string bytes = put(path, 6000);
    const std::string source = known ? "slow/flip" : address(path);
    kill_in_the_middle(source, known ? "slow/flip/resolve" : "file/slow/pin", bytes.size());
    std::string state = read_all(part + ".state"), kept = read_all(part);
    const std::size_t line = state.find('\n') + 1;  // the first range that is whole: "INDEX DIGEST"
    ASSERT_LT(line, state.size());
    const std::size_t chunk = std::stoull(state.substr(line));
    kept[chunk * 262144 + 99] ^= 0x40;
    write_all(part, kept);
    const ProcessResult second = pull({source, "--output", out(), "--json"});
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_TRUE(read_all(out() + "/m.gguf") == bytes) << known;
    EXPECT_GE(Program::json(second)["files"][0]["fetched_bytes"], 262144u);
    fs::remove(out() + "/m.gguf");
  }
}

TEST_F(Pull, AJournalThatIsDamagedIsNotBelieved) {
  const std::string bytes = put("slow/j/m.gguf", 3000);
  kill_in_the_middle("slow/j", "slow/j/resolve", bytes.size());
  const std::string state = out() + "/m.gguf.part.state", text = read_all(state);
  std::string claims = text.substr(0, text.find('\n') + 1);
  for (int i = 0; i < 12; ++i) claims += std::to_string(i) + " " + std::string(64, 'a') + "\n";
  write_all(state, claims + "999999999999 " + std::string(64, 'b') + "\n7 ");
  const ProcessResult second = pull({"slow/j", "--output", out(), "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(read_all(out() + "/m.gguf") == bytes);
}

TEST_F(Pull, ListsOfSeveralPages) {
  for (const char* how : {"pages", "pagesaway", "pagesround"})
    for (int i = 0; i < 7; ++i)
      put(std::string(how) + "/m/" + (i == 6 ? "m" : "a" + std::to_string(i)) + ".gguf", 20);
  EXPECT_EQ(code_of("pagesaway/m:a0.gguf"), "N04");
  EXPECT_EQ(code_of("pagesround/m:a0.gguf"), "N06");
  const ProcessResult result = pull({"pages/m:m.gguf", "--output", out(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(out() + "/m.gguf"));
  std::size_t n_pages = 0;
  for (const Json& line : log()) {
    const std::string path = line["path"];
    n_pages += path.find("pages/m/tree") != std::string::npos ? 1u : 0u;
  }
  EXPECT_EQ(n_pages, 4u);
}

TEST_F(Pull, ARedirectFromHttpsToHttpIsRefused) {
  put("downgrade/m/m.gguf", 300);
  put("good/m/m.gguf", 300);
  write_all(out("token"), "hf_secret\n");
  const std::string tls = "https://localhost:" + wait_for_text(folder_.file("port.tls"));
  const std::vector<std::string> variables = {"CURL_CA_BUNDLE=" + certificate_,
                                              "no_proxy=127.0.0.1,localhost"};
  const std::vector<std::string> more = {"--hub",    tls,   "--token-file", out("token"),
                                         "--output", out(), "--json"};
  const auto from = [&](const std::string& source, std::vector<std::string> environment) {
    std::vector<std::string> arguments = {source};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return pull(std::move(arguments), std::move(environment));
  };
  const ProcessResult down = from("downgrade/m", variables);
  EXPECT_NE(down.out.find("N04"), std::string::npos) << down.out;
  EXPECT_NE(down.out.find("from https to http"), std::string::npos) << down.out;
  EXPECT_FALSE(fs::exists(out() + "/m.gguf"));
  for (const Json& line : log())
    EXPECT_TRUE(tls.ends_with(":" + line["port"].dump()) || line["token"].is_null()) << line;
  EXPECT_NE(from("good/m", {"no_proxy=127.0.0.1,localhost"}).out.find("N01"), std::string::npos)
      << "a certificate that nobody vouches for";
  EXPECT_EQ(from("good/m", variables).exit_code, 0);
}

TEST_F(Pull, CtrlCKeepsWhatWasFetchedAndASecondProcessWaits) {
  const std::string bytes = put("slow/w/m.gguf", 12000);
  std::vector<std::string> variables = environment();
  for (const std::string& entry : program_.environment()) variables.push_back(entry);
  Child first({built_program("cyb-llm"), "pull", "slow/w", "--output", out()}, variables);
  for (int i = 0; i < 500 && sent("slow/w/resolve") == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const ProcessResult second = pull({"slow/w", "--output", out(), "--json"});
  EXPECT_EQ(first.end(0), 0);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const Json json = Program::json(second);
  EXPECT_EQ(json["waited"], true) << second.err;
  EXPECT_EQ(json["files"][0]["fetched_bytes"], 0);
  EXPECT_LE(sent("slow/w/resolve"), bytes.size() + 1);
  ProcessOptions options;
  options.environment = environment();
  options.interrupt_from_start = true;
  options.interrupt_after_ms = 1500;
  put("slow/c/m.gguf", 60000);
  const ProcessResult stopped = program_.run({"pull", "slow/c", "--output", out("c")}, options);
  EXPECT_EQ(stopped.exit_code, 5) << stopped.err;
  EXPECT_NE(stopped.err.find("goes on from there"), std::string::npos) << stopped.err;
  // A folder of its own: the part says that this process is at work.
  Child third({built_program("cyb-llm"), "pull", "slow/c", "--output", out("d")}, variables);
  for (int i = 0; i < 1000 && !fs::exists(out("d") + "/m.gguf.part"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(third.end(SIGINT), 5);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  EXPECT_TRUE(fs::exists(out("d") + "/m.gguf.part"));
  EXPECT_FALSE(fs::exists(out("d") + "/m.gguf"));
}

TEST_F(Pull, AFullDiskKeepsThePart) {
  put("good/f/m.gguf", 3000);
  ProcessOptions options;
  options.environment = environment();
  for (const std::string& entry : program_.environment()) options.environment.push_back(entry);
  const ProcessResult full =
      run_process({"bash", "-c", "ulimit -f 1000; exec \"$0\" \"$@\"", built_program("cyb-llm"),
                   "pull", "good/f", "--output", out(), "--json", "--connections", "1"},
                  options);
  EXPECT_EQ(full.exit_code, 4) << full.err;
  EXPECT_EQ(Program::json(full)["error"]["code"], "N08") << full.out;
  EXPECT_TRUE(fs::exists(out() + "/m.gguf.part"));
  const ProcessResult again = pull({"good/f", "--output", out(), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_LT(Program::json(again)["files"][0]["fetched_bytes"], 2500 * 1024);
}

}  // namespace
}  // namespace cyb::test
