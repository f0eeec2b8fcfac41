// Packed weights between starts: made once, found again, and made anew whenever anything about them
// is not exactly right.
#include "runtime/pack_cache.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/process.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;

std::vector<char> read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_all(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class PackCacheTest : public ::testing::Test {
 protected:
  PackCacheTest() { backend_->packs = true; }

  PackCacheOptions options() const {
    PackCacheOptions out;
    out.folder = folder_.file("panels");
    return out;
  }
  Result<PackCacheResult> open(const PackCacheOptions& options) {
    return open_pack_cache(*model_, *backend_, needs_, options);
  }
  /// Opens, checks that it is usable, and says whether it was made anew.
  bool built(PackCacheOptions o) {
    const PackCacheResult result = value(open(o));
    EXPECT_EQ(result.note, "");
    EXPECT_NE(result.cache, nullptr);
    if (result.cache) expect_right(*result.cache);
    return result.built;
  }
  void expect_right(const PackCache& cache) {
    for (const WeightNeed& need : needs_) {
      const TensorEntry* entry = model_->find_tensor(need.name);
      const WeightSource source = WeightTable::source_of(*model_, *entry);
      const std::uint64_t size = backend_->packed_bytes(source, need.use);
      if (size == 0) continue;
      const auto bytes = cache.find(WeightTable::pack_key(need.name, need.use), size);
      ASSERT_EQ(bytes.size(), size) << need.name;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], ~source.bytes[i]) << need.name;
    }
  }
  fs::path only_file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder_.file("panels"))) {
      EXPECT_TRUE(found.empty()) << entry.path();
      found = entry.path();
    }
    return found;
  }

  TemporaryFolder folder_;
  std::shared_ptr<ScriptedBackend> backend_ = std::make_shared<ScriptedBackend>();
  std::shared_ptr<const Model> model_ = tiny_model("llama2");
  std::vector<WeightNeed> needs_ = value(weight_needs(*model_));
};

TEST_F(PackCacheTest, MadeOnceThenMapped) {
  EXPECT_TRUE(built(options()));
  const int packs = backend_->n_packs;
  EXPECT_GT(packs, 0);
  EXPECT_FALSE(built(options()));
  EXPECT_EQ(backend_->n_packs, packs);
  PackCacheOptions verify = options();
  verify.verify = true;
  EXPECT_FALSE(built(verify));
}

TEST_F(PackCacheTest, NothingToPackMakesNoFile) {
  backend_->packs = false;
  const PackCacheResult result = value(open(options()));
  EXPECT_EQ(result.cache, nullptr);
  EXPECT_EQ(result.bytes, 0u);
  EXPECT_FALSE(fs::exists(folder_.file("panels")));
}

TEST_F(PackCacheTest, AnotherLayoutHasAnotherFile) {
  EXPECT_TRUE(built(options()));
  backend_->layout = "scripted/2 <wide>";
  EXPECT_TRUE(built(options()));
  backend_->layout = "scripted-1";
  EXPECT_FALSE(built(options()));
}

TEST_F(PackCacheTest, EveryDamagedHeaderByteIsSeen) {
  EXPECT_TRUE(built(options()));
  const std::vector<char> good = read_all(only_file());
  const auto header = value(decode_panel_header(std::as_bytes(std::span(good))));
  const std::size_t index_bytes =
      48 + 40 * header.entries.size();  // less than the whole index: bytes that matter
  for (std::size_t i = 0; i < index_bytes; i += 3) {
    std::vector<char> bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_FALSE(decode_panel_header(std::as_bytes(std::span(bad))).has_value()) << i;
  }
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{47}, std::size_t{100}, good.size() - 1}) {
    EXPECT_FALSE(decode_panel_header(std::as_bytes(std::span(good).first(size))).has_value())
        << size;
  }
}

TEST_F(PackCacheTest, ADamagedFileIsMadeAgain) {
  EXPECT_TRUE(built(options()));
  const fs::path path = only_file();
  const std::vector<char> good = read_all(path);
  for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{70}}) {
    std::vector<char> bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_all(path, bad);
    EXPECT_TRUE(built(options())) << at;
  }
  write_all(path, std::vector<char>(good.begin(), good.begin() + 5000));
  EXPECT_TRUE(built(options()));
  write_all(path, {});
  EXPECT_TRUE(built(options()));
  EXPECT_EQ(read_all(path), good);
}

TEST_F(PackCacheTest, ADamagedPanelIsSeenByVerify) {
  EXPECT_TRUE(built(options()));
  const fs::path path = only_file();
  std::vector<char> bad = read_all(path);
  bad[bad.size() - 4096] = static_cast<char>(bad[bad.size() - 4096] ^ 1);
  write_all(path, bad);
  PackCacheOptions verify = options();
  verify.verify = true;
  EXPECT_TRUE(built(verify));
  EXPECT_FALSE(built(verify));
}

TEST_F(PackCacheTest, AnotherModelFileOfTheSameIdIsNotTrusted) {
  EXPECT_TRUE(built(options()));
  // The same bytes at another place: same model_id, another file on this machine.
  const std::string copy = folder_.file("copy.model");
  fs::copy_file(model_->path(), copy);
  model_ = value(Model::open(copy));
  EXPECT_TRUE(built(options()));
  EXPECT_FALSE(built(options()));
}

TEST_F(PackCacheTest, AFileThatOthersMayWriteIsNotOpened) {
  EXPECT_TRUE(built(options()));
  const fs::path path = only_file();
  ::chmod(path.c_str(), 0666);
  EXPECT_TRUE(built(options()));
  fs::rename(path, folder_.file("elsewhere"));
  fs::create_symlink(folder_.file("elsewhere"), path);
  EXPECT_TRUE(built(options()));
  EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(PackCacheTest, AFolderThatCannotBeIsANote) {
  PackCacheOptions o = options();
  write_all(folder_.file("file"), {'x'});
  o.folder = folder_.file("file/panels");
  const PackCacheResult result = value(open(o));
  EXPECT_EQ(result.cache, nullptr);
  EXPECT_GT(result.bytes, 0u);
  EXPECT_TRUE(result.note.starts_with("packed weights are not kept: ")) << result.note;
}

TEST_F(PackCacheTest, AFullDiskIsANote) {
  PackCacheOptions o = options();
  o.folder = "/dev/full/panels";
  EXPECT_NE(value(open(o)).note, "");
}

TEST_F(PackCacheTest, CancelledLeavesNothing) {
  std::stop_source source;
  PackCacheOptions o = options();
  o.stop = source.get_token();
  o.progress = [&](std::uint64_t done, std::uint64_t, std::string_view) {
    if (done > 0) source.request_stop();
  };
  const auto result = open(o);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  EXPECT_TRUE(fs::is_empty(o.folder));
}

TEST_F(PackCacheTest, TwoAtOnce) {
  std::vector<bool> fine(4, false);
  {
    std::vector<std::jthread> threads;
    std::mutex mutex;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto result = open(options());
        const std::lock_guard lock(mutex);
        fine[i] = result && result->cache != nullptr;
      });
    }
  }
  EXPECT_EQ(fine, std::vector<bool>(4, true));
  EXPECT_FALSE(built(options()));
}

TEST_F(PackCacheTest, TheLeastRecentlyUsedGoFirst) {
  const std::string folder = folder_.file("prune");
  fs::create_directory(folder);
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    const fs::path path = fs::path(folder) / (std::to_string(i) + ".panels");
    write_all(path, std::vector<char>(1000));
    fs::last_write_time(path, now - std::chrono::hours(10 - i));
  }
  write_all(fs::path(folder) / "other.txt", std::vector<char>(5000));
  prune_panels(folder, 2500, folder + "/0.panels");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) left.push_back(entry.path().filename());
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{"0.panels", "2.panels", "3.panels", "other.txt"}));
  prune_panels(folder_.file("not there"), 0, "");
}

TEST_F(PackCacheTest, TheCapHolds) {
  PackCacheOptions o = options();
  o.cap_bytes = 1000;
  const PackCacheResult result = value(open(o));
  EXPECT_EQ(result.cache, nullptr);
  EXPECT_NE(result.note.find("exceed the cap"), std::string::npos) << result.note;
}

TEST_F(PackCacheTest, EnginesUseIt) {
  ::setenv("CYB_CACHE", folder_.path().c_str(), 1);
  const auto first = scripted_engine(model_, backend_);
  EXPECT_GT(first->report().packed_bytes, 0u);
  EXPECT_GT(first->report().pack_ms, 0);
  const int packs = backend_->n_packs, loads = backend_->n_packed_loads;
  EXPECT_EQ(packs, loads);
  const auto second = scripted_engine(model_, backend_);
  EXPECT_EQ(backend_->n_packs, packs);
  EXPECT_EQ(backend_->n_packed_loads, 2 * loads);
  EXPECT_EQ(second->report().pack_ms, 0);
  ::unsetenv("CYB_CACHE");
}

// The real layout: what cpu computes from mapped panels is what it computes from panels of its own.
TEST_F(PackCacheTest, MappedPanelsGiveTheSameBits) {
  ::setenv("CYB_CACHE", folder_.path().c_str(), 1);
  std::vector<std::vector<float>> got;
  for (const bool cached : {false, true, true}) {
    EngineOptions options;
    options.backend = "cpu";
    options.path = "curated";
    options.pack_cache = cached;
    const auto engine = value(Engine::load(model_, options));
    std::vector<float>& all = got.emplace_back();
    CYB_ASSERT_OK(all_logits(*engine, some_ids(20),
                             [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
                               all.insert(all.end(), rows.begin(), rows.end());
                               return {};
                             }));
  }
  EXPECT_EQ(got[0], got[1]);
  EXPECT_EQ(got[0], got[2]);
  ::unsetenv("CYB_CACHE");
}

}  // namespace
}  // namespace cyb::test
