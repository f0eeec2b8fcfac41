// Saved sessions: what goes on from one has the bits of the uninterrupted session; anything else
// than the file that was written, for the engine that wrote it, is refused by its code.
#include "runtime/session_file.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "model/temporary_folder.hpp"
#include "runtime/generation.hpp"
#include "support/engine_support.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

EngineOptions options_of(const std::string& backend, const std::string& path,
                         std::optional<DType> kv = {}) {
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.n_threads = 1;
  options.max_sequences = 4;
  options.kv_dtype = kv;
  return options;
}

struct Way {
  std::string model, backend, path;
  std::optional<DType> kv{};
};

class SessionFile : public ::testing::TestWithParam<Way> {};

TEST_P(SessionFile, GoesOnBitForBit) {
  const Way& way = GetParam();
  const TemporaryFolder folder;
  const std::string path = folder / "a.chat";
  const auto engine = tiny_engine(way.model, options_of(way.backend, way.path, way.kv));
  const GenerateOptions request{.max_tokens = 40,
                                .sampling = {.temperature = 0.9},
                                .seed = 5,
                                .logprobs = 1,
                                .ignore_stop_ids = true};
  const auto prompt = some_ids(61);
  Session whole(engine), first(engine);
  const GenerateResult expected = value(generate(whole, prompt, request));
  CYB_ASSERT_OK(first.prefill(std::span(prompt).first(50)));
  CYB_ASSERT_OK(save_session(first, path, {"own", {{"user", "hello"}, {"assistant", "ho"}}}));
  // Another process: another engine, with another number of threads.
  EngineOptions options = options_of(way.backend, way.path, way.kv);
  options.n_threads = 2;
  const auto other = tiny_engine(way.model, options);
  Session later(other);
  const RestoredSession restored = value(restore_session(later, path, "own"));
  EXPECT_EQ(restored.n_tokens, 48u);  // whole pages
  ASSERT_EQ(restored.messages.size(), 2u);
  EXPECT_EQ(restored.messages[1].content, "ho");
  const GenerateResult got = value(generate(later, prompt, request));
  EXPECT_EQ(got.reused_tokens, 48u);
  EXPECT_EQ(got.tokens, expected.tokens);
  for (std::size_t i = 0; i < expected.logprobs.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got.logprobs[i].logprob),
              std::bit_cast<std::uint32_t>(expected.logprobs[i].logprob));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, SessionFile,
                         ::testing::Values(Way{"llama3", "cpu", "curated"},
                                           Way{"gemma3", "cpu", "curated", DType::kQ8},
                                           Way{"llama3", "cpu", "curated", DType::kQ4},
                                           Way{"qwen3", "reference", "curated"},
                                           Way{"llama3", "reference", "curated", DType::kQ4},
                                           Way{"smollm2", "cpu", "graph", DType::kF32}));

class SessionFileFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_ = tiny_engine("llama3", options_of("cpu", "curated"));
    Session session(engine_);
    CYB_ASSERT_OK(session.prefill(some_ids(40)));
    CYB_ASSERT_OK(save_session(session, path_, {"own", {{"user", "hello"}}}));
  }
  std::string code(const std::shared_ptr<Engine>& engine, const std::string& name = "own") {
    Session session(engine);
    const auto restored = restore_session(session, path_, name);
    if (restored) return "";
    EXPECT_TRUE(value(session.tokens()).empty());
    EXPECT_EQ(exit_code(restored.error().kind()),
              restored.error().code().starts_with("K") ? 2 : exit_code(restored.error().kind()));
    return restored.error().code();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.chat";
  std::shared_ptr<Engine> engine_;
};

TEST_F(SessionFileFaults, AnotherEngineIsRefusedByWhatDiffers) {
  EXPECT_EQ(code(engine_), "");
  EXPECT_EQ(code(tiny_engine("llama2", options_of("cpu", "curated"))), "K02");
  EXPECT_EQ(code(tiny_engine("llama3", options_of("reference", "curated"))), "K03");
  EXPECT_EQ(code(tiny_engine("llama3", options_of("cpu", "graph"))), "K03");
  EXPECT_EQ(code(tiny_engine("llama3", options_of("cpu", "curated", DType::kQ8))), "K03");
  EngineOptions scalar = options_of("cpu", "curated");
  scalar.isa = "scalar";
  EXPECT_EQ(code(tiny_engine("llama3", scalar)), "K03");
  EXPECT_EQ(code(engine_, "chatml"), "K04");
  EngineOptions small = options_of("cpu", "curated");
  small.ctx_tokens = 20;
  EXPECT_EQ(code(tiny_engine("llama3", small)), "ContextOverflow");
}

TEST_F(SessionFileFaults, EveryChangedByteAndEveryCutIsFound) {
  const std::string good = bytes_of(path_);
  ASSERT_GT(good.size(), 2000u);
  for (std::size_t at = 0; at < good.size(); at += at < 400 ? 1 : 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_bytes(path_, bad);
    ASSERT_EQ(code(engine_), "K01") << at;
    write_bytes(path_, good.substr(0, at));
    ASSERT_NE(code(engine_), "") << at;
  }
  write_bytes(path_, good + "x");
  EXPECT_EQ(code(engine_), "K01");
  write_bytes(path_, good);
  EXPECT_EQ(code(engine_), "");
}

TEST_F(SessionFileFaults, AFailedSaveLeavesTheFileAsItWas) {
  const std::string before = bytes_of(path_);
  Session session(scripted_engine(tiny_model("llama3"), std::make_shared<ScriptedBackend>()));
  CYB_ASSERT_OK(session.prefill(some_ids(40)));
  const auto saved = save_session(session, path_, {"own"});  // its pages cannot be read
  ASSERT_FALSE(saved.has_value());
  EXPECT_EQ(saved.error().kind(), ErrorKind::kNotBuilt);
  EXPECT_EQ(bytes_of(path_), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1);
  EXPECT_FALSE(save_session(session, folder_ / "none/b.chat", {"own"}).has_value());
}

TEST_F(SessionFileFaults, AMissingFileIsAnIoError) {
  path_ = folder_ / "absent";
  EXPECT_EQ(code(engine_), "Io");
}

}  // namespace
}  // namespace cyb::test
