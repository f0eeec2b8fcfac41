// A store that somebody or something damaged: its index is made anew, a stored copy that is not
// what was stored is never handed out, and nothing that can still be read is lost.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "base/log.hpp"
#include "model/model.hpp"
#include "model/store.hpp"
#include "model/temporary_folder.hpp"
#include "support/example_model.hpp"

namespace cyb {
namespace {

namespace fs = std::filesystem;

/// Keeps what is logged while it lives.
class Warnings {
 public:
  Warnings() : sink_(std::make_shared<Sink>()), before_(set_log_sink(sink_)) {}
  ~Warnings() { set_log_sink(before_); }
  std::string text() const { return sink_->text; }

 private:
  struct Sink final : LogSink {
    void write(LogLevel level, std::string_view line) noexcept override {
      if (level == LogLevel::kWarning) text.append(line).append("\n");
    }
    std::string text;
  };
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<LogSink> before_;
};

std::string slurp(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class StoreRepair : public testing::Test {
 protected:
  StoredModel add(int number, const std::string& name, const SourceKey* source = nullptr) {
    ModelDraft draft = test::example_draft();
    draft.name = "own-name-" + std::to_string(number);
    draft.config.set("license", "variant " + std::to_string(number));
    const std::string path = store.staging_path().value();
    const WrittenModel written = write_model(path, draft).value();
    return store.add(path, name, source, &written).value();
  }
  std::string names() const {
    const auto rows = store.list();
    if (!rows) return rows.error().text();
    std::string out;
    for (const StoredModel& row : *rows) out += (out.empty() ? "" : " ") + row.name;
    return out;
  }

  test::TemporaryFolder folder;
  std::string root = folder / "data";
  std::string index = root + "/models/index.toml";
  Store store{root};
  Warnings warnings;
};

TEST_F(StoreRepair, AGarbageIndexIsMadeAnewFromTheModels) {
  const StoredModel one = add(1, "one");
  add(2, "two");
  const std::string garbage = std::string("\0\xff not toml [[[", 15);
  put(index, garbage);
  EXPECT_EQ(names(), "own-name-1 own-name-2") << "no row was left: the models' own names";
  EXPECT_EQ(slurp(index + ".bad"), garbage);
  EXPECT_NE(warnings.text().find("index was damaged"), std::string::npos) << warnings.text();
  EXPECT_NE(warnings.text().find("index.toml.bad"), std::string::npos) << warnings.text();
  const auto found = store.find(hex(one.file_id));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(hex((*found)->model_id), hex(one.model_id));
  // And a second accident keeps both files.
  put(index, "garbage");
  add(3, "three");
  EXPECT_EQ(names(), "own-name-1 own-name-2 three");
  EXPECT_EQ(slurp(index + ".bad"), garbage);
  EXPECT_EQ(slurp(index + ".bad.2"), "garbage");
}

TEST_F(StoreRepair, RowsThatStillParseKeepTheirNamesAndSources) {
  const SourceKey key{"/m/a.gguf", 1000, 5, blake3("content")};
  add(1, "one", &key);
  add(2, "two");
  const std::string text = slurp(index);
  // Every cut and every overwritten stretch of the file: the store works, and a name is either its
  // own or the model's.
  for (std::size_t at = 0; at < text.size(); at += 7) {
    for (const bool cut : {true, false}) {
      std::string damaged = cut ? text.substr(0, at) : text;
      if (!cut) damaged.replace(at, std::min<std::size_t>(16, text.size() - at), 16, '\x01');
      put(index, damaged);
      const auto rows = store.list();
      ASSERT_TRUE(rows) << at << ": " << rows.error().text();
      ASSERT_EQ(rows->size(), 2u) << at;
      for (const StoredModel& row : *rows) {
        EXPECT_TRUE(row.name == "one" || row.name == "two" || row.name == "own-name-1" ||
                    row.name == "own-name-2")
            << at << ": " << row.name;
      }
      fs::remove(index + ".bad");
    }
  }
  // Damage in one row leaves the others.
  std::string damaged = text;
  damaged.replace(damaged.find("name = \"two\""), 4, "\x01\x01\x01\x01");
  put(index, damaged);
  EXPECT_EQ(names(), "one own-name-2");
  EXPECT_TRUE(store.find_source(key).value().has_value());
}

TEST_F(StoreRepair, ALostIndexIsMadeAnew) {
  add(1, "one");
  fs::remove(index);
  EXPECT_EQ(names(), "own-name-1");
  EXPECT_TRUE(fs::exists(index));
  EXPECT_FALSE(fs::exists(index + ".bad"));
}

TEST_F(StoreRepair, AnIndexOfANewerProgramIsRefusedWithTheCure) {
  add(1, "one");
  std::string text = slurp(index);
  text.replace(text.find("version = 1"), 11, "version = 9");
  put(index, text);
  const auto rows = store.list();
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code(), "StoreVersion");
  EXPECT_EQ(rows.error().text(), index +
                                     ": the store's index has version 9, this program reads 1: "
                                     "use the newer program, or move this file away to have it "
                                     "made anew (the models stay)");
  EXPECT_EQ(slurp(index), text) << "not touched";
  fs::rename(index, index + ".newer");
  EXPECT_EQ(names(), "own-name-1");
}

TEST_F(StoreRepair, ADamagedModelDoesNotStopTheOthers) {
  const StoredModel one = add(1, "one");
  add(2, "two");
  put(one.path, "no model");
  put(index, "garbage");
  EXPECT_EQ(names(), "own-name-2");
  EXPECT_NE(warnings.text().find(one.path), std::string::npos) << warnings.text();
  EXPECT_EQ(slurp(one.path), "no model") << "nothing is deleted";
}

TEST_F(StoreRepair, ADamagedCopyIsNotHandedOut) {
  const SourceKey key{"/m/a.gguf", 1000, 5, blake3("content")};
  const StoredModel stored = add(1, "one", &key);
  const std::string good = slurp(stored.path);
  std::string other_id = good;
  const std::size_t id = good.find(hex(stored.model_id));
  ASSERT_NE(id, std::string::npos);
  other_id[id] = good[id] == '0' ? '1' : '0';
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"", "0 bytes, " + std::to_string(good.size()) + " were stored"},
      {good.substr(0, good.size() / 2), "bytes, "},
      {good + "x", "bytes, "},
      {std::string(good.size(), '\0'), "its first bytes"},
      {other_id, "its first bytes"}};
  for (const auto& [bytes, problem] : damages) {
    SCOPED_TRACE(problem);
    put(stored.path, bytes);
    EXPECT_FALSE(store.find_source(key).value().has_value()) << "the source must be read again";
    const auto listed = store.list().value();
    ASSERT_EQ(listed.size(), 1u);
    EXPECT_NE(listed[0].problem.find(problem), std::string::npos) << listed[0].problem;
    for (const std::string& what : {std::string("one"), hex(stored.model_id)}) {
      const auto found = store.find(what);
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code(), "StoreCopy");
      const std::string text = found.error().text();
      EXPECT_TRUE(text.starts_with(stored.path + ": ")) << text;
      EXPECT_NE(text.find(problem), std::string::npos) << text;
      EXPECT_NE(text.find("import \"/m/a.gguf\""), std::string::npos) << text;
      EXPECT_NE(text.find("delete the file"), std::string::npos) << text;
    }
  }
  EXPECT_NE(warnings.text().find(stored.path), std::string::npos) << "a note says why";
  fs::remove(stored.path);
  EXPECT_FALSE(store.find_source(key).value().has_value());
  const auto found = store.find("one");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text().find("No such file"), std::string::npos) << found.error().text();
  EXPECT_EQ(found.error().text().find("delete the file"), std::string::npos) << "there is none";
  // Importing it again mends it in its place.
  EXPECT_EQ(add(1, "one", &key).path, stored.path);
  EXPECT_EQ(slurp(stored.path), good);
  EXPECT_EQ(store.list().value().at(0).problem, "");
  EXPECT_TRUE(store.find_source(key).value().has_value());
}

TEST_F(StoreRepair, AFolderInPlaceOfTheIndexIsNamedWithItsCure) {
  add(1, "one");
  fs::remove(index);
  fs::create_directory(index);
  const auto listed = store.list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().kind(), ErrorKind::kIo);
  EXPECT_NE(listed.error().text().find("move it away"), std::string::npos) << listed.error().text();
  fs::rename(index, index + ".moved");
  EXPECT_EQ(names(), "own-name-1");
}

TEST_F(StoreRepair, AFileInTheStoreIsCheckedToItsLastByte) {
  const StoredModel stored = add(1, "one");
  const std::string good = slurp(stored.path);
  ASSERT_TRUE(Model::open(stored.path).value()->verify());
  // What model_id does not cover: here the file_id, which is its place, does.
  for (const char* text : {"own-name-1", "One-layer"}) {
    SCOPED_TRACE(text);
    std::string bytes = good;
    const std::size_t at = bytes.find(text);
    ASSERT_NE(at, std::string::npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    put(stored.path, bytes);
    const auto model = Model::open(stored.path);
    ASSERT_TRUE(model) << model.error().text();
    const auto verified = (*model)->verify();
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().code(), "F40");
    EXPECT_NE(verified.error().text().find("file id mismatch"), std::string::npos);
  }
}

}  // namespace
}  // namespace cyb
