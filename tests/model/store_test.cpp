// The store: names, ids, prefixes, sources; two processes at once; death at any point.
#include "model/store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "model/model.hpp"
#include "model/temporary_folder.hpp"
#include "support/example_model.hpp"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

/// The example with another licence text: another model.
ModelDraft variant(int number) {
  ModelDraft draft = test::example_draft();
  draft.config.set("license", "variant " + std::to_string(number));
  return draft;
}

Result<StoredModel> add(const Store& store_view, Store& store, int number, const std::string& name,
                        const SourceKey* source = nullptr) {
  CYB_ASSIGN(const std::string path, store_view.staging_path());
  CYB_ASSIGN(const WrittenModel written, write_model(path, variant(number)));
  return store.add(path, name, source, &written);
}
Result<StoredModel> add(Store& store, int number, const std::string& name,
                        const SourceKey* source = nullptr) {
  return add(store, store, number, name, source);
}

std::size_t files_below(const std::string& root, std::string_view ending) {
  std::size_t n = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    n += entry.is_regular_file() && entry.path().string().ends_with(ending) ? 1 : 0;
  }
  return n;
}

TEST(Store, EmptyStoreHasNoFolders) {
  const TemporaryFolder folder;
  const Store store(folder / "data");
  EXPECT_TRUE(store.list().value().empty());
  EXPECT_FALSE(store.find("anything").value().has_value());
  EXPECT_FALSE(fs::exists(folder / "data"));
}

TEST(Store, AddsUnderTheFileId) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  const auto stored = add(store, 1, "one");
  ASSERT_TRUE(stored.has_value()) << stored.error().text();
  const std::string digits = hex(stored->file_id);
  EXPECT_EQ(stored->path, (folder / "data") + "/models/" + digits.substr(0, 2) + "/" +
                              digits.substr(2) + ".model");
  const auto model = Model::open(stored->path);
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ(hex((*model)->file_id().value()), digits);
  EXPECT_EQ(hex((*model)->model_id().value()), hex(stored->model_id));
  EXPECT_EQ(stored->file_bytes, fs::file_size(stored->path));
}

TEST(Store, HashesAFileItKnowsNothingOf) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  const std::string path = store.staging_path().value();
  const auto written = write_model(path, variant(1));
  ASSERT_TRUE(written.has_value());
  const auto stored = store.add(path, "one", nullptr);
  ASSERT_TRUE(stored.has_value()) << stored.error().text();
  EXPECT_EQ(hex(stored->file_id), hex(written->file_id));
  EXPECT_EQ(hex(stored->model_id), hex(written->model_id));
  std::ofstream(store.staging_path().value()) << "no model";
  EXPECT_EQ(store.add(folder / "data/models/staging/nothing", "x", nullptr).error().kind(),
            ErrorKind::kIo);
}

TEST(Store, FindsByNameIdAndPrefix) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  const StoredModel one = add(store, 1, "one").value();
  const StoredModel two = add(store, 2, "two").value();
  const auto found = [&](const std::string& key) {
    const auto result = store.find(key);
    return result && *result ? hex((*result)->file_id) : std::string("none");
  };
  EXPECT_EQ(found("one"), hex(one.file_id));
  EXPECT_EQ(found(hex(two.file_id)), hex(two.file_id));
  EXPECT_EQ(found("blake3:" + hex(two.model_id)), hex(two.file_id));
  EXPECT_EQ(found(hex(one.file_id).substr(0, 12)), hex(one.file_id));
  EXPECT_EQ(found("blake3:" + hex(one.model_id).substr(0, 6)), hex(one.file_id));
  EXPECT_EQ(found(hex(one.file_id).substr(0, 5)), "none") << "prefixes have six digits or more";
  EXPECT_EQ(found("three"), "none");
  EXPECT_EQ(found("../models/index.toml"), "none");
  EXPECT_EQ(store.list().value().size(), 2u);
  // A name wins over an id that it looks like.
  const StoredModel three = add(store, 3, hex(one.file_id).substr(0, 8)).value();
  EXPECT_EQ(found(hex(one.file_id).substr(0, 8)), hex(three.file_id));
}

TEST(Store, AmbiguousPrefixListsTheCandidates) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  // The same weights and text under two cards: one model_id, two file_ids.
  ModelDraft draft = variant(1);
  for (const char* name : {"one", "two"}) {
    draft.card = name;
    const std::string path = store.staging_path().value();
    ASSERT_TRUE(write_model(path, draft).has_value());
    ASSERT_TRUE(store.add(path, name, nullptr).has_value());
  }
  const auto rows = store.list().value();
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(hex(rows[0].model_id), hex(rows[1].model_id));
  const auto result = store.find(hex(rows[0].model_id).substr(0, 10));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidInput);
  for (const auto& row : rows) {
    EXPECT_NE(result.error().text().find(digest_text(row.file_id) + " (" + row.name + ")"),
              std::string::npos);
  }
}

TEST(Store, ANameMovesToTheNewModel) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  const StoredModel old = add(store, 1, "name").value();
  const StoredModel now = add(store, 2, "name").value();
  EXPECT_EQ(hex(store.find("name").value()->file_id), hex(now.file_id));
  const auto rows = store.list().value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "");
  EXPECT_EQ(hex(rows[0].file_id), hex(old.file_id));
  EXPECT_EQ(hex(store.find(hex(old.file_id)).value()->file_id), hex(old.file_id));
  // The same model again under a second name: one file, two rows.
  ASSERT_TRUE(add(store, 2, "other").has_value());
  EXPECT_EQ(store.list().value().size(), 3u);
  EXPECT_EQ(files_below(folder / "data", ".model"), 2u);
}

TEST(Store, RefusesNamesThatArePaths) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("../x"),
        std::string("a/b"), std::string("-x"), std::string(".hidden"), std::string("a b"),
        std::string("a\0b", 3), std::string(129, 'a')}) {
    const auto result = add(store, 1, name);
    ASSERT_FALSE(result.has_value()) << name;
    EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidInput);
  }
  EXPECT_TRUE(store.list().value().empty());
}

TEST(Store, FindsSources) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  const SourceKey key{"/m/a.gguf", 1000, 5, blake3("content")};
  const StoredModel stored = add(store, 1, "one", &key).value();
  const auto found = [&](const SourceKey& wanted) {
    const auto result = store.find_source(wanted);
    return result && *result && hex((*result)->file_id) == hex(stored.file_id);
  };
  EXPECT_TRUE(found({"/m/a.gguf", 1000, 5, {}}));
  EXPECT_FALSE(found({"/m/a.gguf", 1000, 6, {}})) << "another time: the content must be compared";
  EXPECT_FALSE(found({"/m/a.gguf", 1001, 5, blake3("other")}));
  EXPECT_TRUE(found({"/m/b.gguf", 1000, 9, blake3("content")}));
  EXPECT_TRUE(found({"/m/b.gguf", 1000, 9, {}})) << "the match by content renewed the entry";
  EXPECT_TRUE(found({"/m/a.gguf", 1000, 5, {}})) << "and kept the old one";
  fs::remove(stored.path);
  EXPECT_FALSE(found({"/m/a.gguf", 1000, 5, {}})) << "the file is gone";
  EXPECT_TRUE(store.list().value().empty());
}

TEST(Store, ANewerImporterReadsASourceAgain) {
  const TemporaryFolder folder;
  Store store(folder / "data");
  const SourceKey old_key{"/m/a.onnx", 1000, 5, blake3("content")};
  const SourceKey new_key{"/m/a.onnx", 1000, 5, blake3("content"), 1};
  const StoredModel old_model = add(store, 1, "one", &old_key).value();
  EXPECT_FALSE(store.find_source(new_key).value());
  const StoredModel new_model = add(store, 2, "one", &new_key).value();
  EXPECT_EQ(hex(store.find_source(new_key).value()->file_id), hex(new_model.file_id));
  EXPECT_NE(hex(old_model.file_id), hex(new_model.file_id));
}

TEST(Store, StagingIsGoneWithTheStore) {
  const TemporaryFolder folder;
  std::string staged;
  {
    const Store store(folder / "data");
    staged = store.staging_path().value();
    EXPECT_NE(staged, store.staging_path().value());
    std::ofstream(staged) << "half";
    EXPECT_TRUE(fs::exists(staged));
  }
  EXPECT_FALSE(fs::exists(staged));
}

/// Runs `body` in a child; returns its wait status.
template <class F>
int in_child(F body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Store, LeftoversOfADeadProcessAreSwept) {
  const TemporaryFolder folder;
  const std::string root = folder / "data";
  Store alive(root);
  const std::string mine = alive.staging_path().value();
  std::ofstream(mine) << "mine";
  const int status = in_child([&] {
    const Store store(root);
    std::ofstream(store.staging_path().value()) << "half a model";
    ::kill(::getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(files_below(root + "/models/staging", ".model"), 2u);
  Store next(root);
  ASSERT_TRUE(add(next, 1, "one").has_value());
  EXPECT_TRUE(fs::exists(mine)) << "a living process keeps its files";
  EXPECT_EQ(files_below(root + "/models/staging", ".model"), 1u);
}

TEST(Store, AModelWithoutARowIsAdopted) {
  const TemporaryFolder folder;
  const std::string root = folder / "data";
  Store store(root);
  const StoredModel one = add(store, 1, "one").value();
  // As if the process had died between the rename and the index: the index is that of an empty
  // store.
  std::ofstream(root + "/models/index.toml") << "version = 1\n";
  EXPECT_TRUE(store.list().value().empty());
  const StoredModel two = add(store, 2, "two").value();
  const auto found = store.find(hex(one.file_id));
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ(hex((*found)->model_id), hex(one.model_id));
  EXPECT_EQ(store.list().value().size(), 2u);
}

TEST(Store, ManyProcessesAtOnceLoseNothing) {
  const TemporaryFolder folder;
  const std::string root = folder / "data";
  constexpr int kProcesses = 4, kModels = 5;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      Store store(root);
      int failures = 0;
      for (int i = 0; i < kModels; ++i) {
        const int number = 100 * p + i;
        if (!add(store, number, "m" + std::to_string(number))) ++failures;
        if (!store.list()) ++failures;
      }
      ::_exit(failures);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const Store store(root);
  const auto rows = store.list().value();
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(kProcesses * kModels));
  for (const auto& row : rows)
    EXPECT_TRUE(Model::open(row.path, {.verify_weights = true}).has_value());
}

TEST(Store, DeathAtAnyMomentLeavesAWorkingStore) {
  const TemporaryFolder folder;
  const std::string root = folder / "data";
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      Store store(root);
      for (int i = 0;; ++i)
        static_cast<void>(add(store, 1000 * round + i, "r" + std::to_string(round)));
    }
    ::usleep(static_cast<useconds_t>(3000 + 7000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const auto rows = Store(root).list();
    ASSERT_TRUE(rows.has_value()) << rows.error().text();
    for (const auto& row : *rows)
      EXPECT_TRUE(Model::open(row.path, {.verify_weights = true}).has_value());
  }
  Store store(root);
  ASSERT_TRUE(add(store, 7, "last").has_value());
  EXPECT_EQ(files_below(root, ".model"), [&] {
    std::set<std::string> paths;
    const auto rows = store.list().value();
    for (const auto& row : rows) paths.insert(row.path);
    return paths.size();
  }()) << "every file has a row";
  EXPECT_EQ(files_below(root, ".tmp"), 0u);
}

}  // namespace
}  // namespace cyb
