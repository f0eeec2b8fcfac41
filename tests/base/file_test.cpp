// Mappings refuse what is not a regular file; atomic files appear whole or not at all and leave
// nothing behind.
#include "base/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/process.hpp"

namespace cyb {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const std::string& folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++n;
  return n;
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(MappedFile, MapsAndReleases) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("a");
  std::string text(100'000, 'x');
  text[50'000] = 'y';
  put(path, text);
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ((*file)->text(), text);
  EXPECT_EQ((*file)->path(), path);
  EXPECT_GT((*file)->mtime_ns(), 0);
  (*file)->release(1, 99'999);
  (*file)->release(0, UINT64_MAX);
  (*file)->release(UINT64_MAX, 1);
  EXPECT_EQ((*file)->text(), text);
}

TEST(MappedFile, EmptyFileIsFine) {
  test::TemporaryFolder folder;
  put(folder.file("e"), "");
  const auto file = MappedFile::open(folder.file("e"));
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->bytes().empty());
  (*file)->release(0, 10);
}

TEST(MappedFile, OnlyRegularFiles) {
  test::TemporaryFolder folder;
  EXPECT_EQ(MappedFile::open(folder.file("none")).error().text(),
            folder.file("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(MappedFile::open(folder.path()).error().text(),
            folder.path() + ": cannot open: Is a directory");
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  const auto fifo = MappedFile::open(folder.file("fifo"));  // must not wait for a writer
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().kind(), ErrorKind::kIo);
  EXPECT_EQ(fifo.error().text(), folder.file("fifo") + ": cannot open: not a regular file");
  EXPECT_FALSE(MappedFile::open("/dev/null"));
}

TEST(ReadTextFile, RefusesAboveTheLimit) {
  test::TemporaryFolder folder;
  put(folder.file("t"), "hello");
  EXPECT_EQ(*read_text_file(folder.file("t"), 5), "hello");
  EXPECT_EQ(read_text_file(folder.file("t"), 4).error().text(),
            folder.file("t") + ": cannot read: 5 bytes exceed the limit of 4");
}

TEST(AtomicFile, CommitsWhole) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("out");
  put(path, "old");
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file) << file.error().text();
  const std::string large(200'000, 'b');
  ASSERT_TRUE(file->write("aaa"));
  ASSERT_TRUE(file->write(large));
  ASSERT_TRUE(file->write("ccc"));
  const std::byte z{'z'};
  ASSERT_TRUE(file->write_at(1, std::span(&z, 1)));
  EXPECT_FALSE(file->write_at(file->size(), std::span(&z, 1)));
  EXPECT_EQ(file->size(), 200'006u);
  EXPECT_EQ(*read_text_file(path, 10), "old");
  const auto so_far = MappedFile::open(file->temporary_path());
  ASSERT_TRUE(so_far);
  EXPECT_EQ((*so_far)->text().substr(0, 3), "aza");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(*read_text_file(path, 1 << 20), "aza" + large + "ccc");
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_FALSE(file->commit());
  EXPECT_FALSE(file->write("more"));
}

TEST(AtomicFile, WithoutCommitNothingStays) {
  test::TemporaryFolder folder;
  {
    auto file = AtomicFile::create(folder.file("out"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("x"));
    const AtomicFile moved = std::move(*file);
    EXPECT_TRUE(MappedFile::open(moved.temporary_path()));
  }
  EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(AtomicFile, ErrorsNameThePath) {
  test::TemporaryFolder folder;
  EXPECT_EQ(AtomicFile::create(folder.file("no/out")).error().text(),
            folder.file("no/out") + ": cannot create: No such file or directory");
  EXPECT_EQ(AtomicFile::create(folder.path()).error().text(),
            folder.path() + ": cannot create: Is a directory");
  EXPECT_FALSE(AtomicFile::create(folder.path() + "/"));
}

TEST(AtomicFile, FullDiskIsAnIoErrorWithThePath) {
  test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {  // the size limit stands for a full disk: write() fails the same way
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    bool right = false;
    {
      auto file = AtomicFile::create(folder.file("out"));
      const std::string text(5000, 'x');
      auto done = file ? file->write(text) : Result<void>{};
      if (done) done = file->commit();
      right = !done && done.error().kind() == ErrorKind::kIo &&
              done.error().text() == folder.file("out") + ": cannot write: File too large";
    }
    ::_exit(right && entries(folder.path()) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(AtomicFile, SignalHandlerRemovesTemporaries) {
  test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGTERM, [](int) {
      remove_temporary_files();
      ::_exit(42);
    });
    auto file = AtomicFile::create(folder.file("out"));
    auto kept = AtomicFile::create(folder.file("kept"));
    if (!file || !kept || !file->write("x") || !kept->commit()) ::_exit(1);
    ::raise(SIGTERM);
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_TRUE(fs::exists(folder.file("kept")));
}

TEST(AtomicFile, AKilledProcessLeavesNothing) {
  test::TemporaryFolder folder;
  if (const int fd = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600); fd >= 0) {
    ::close(fd);
  } else {
    GTEST_SKIP() << "this file system has no files without names";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = AtomicFile::create(folder.file("out"));
    if (!file || !file->write(std::string(200'000, 'x'))) ::_exit(1);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(Folders, MakeAndXdg) {
  test::TemporaryFolder folder;
  ASSERT_TRUE(make_folders(folder.file("a/b/c")));
  ASSERT_TRUE(make_folders(folder.file("a/b/c")));
  put(folder.file("f"), "");
  EXPECT_EQ(make_folders(folder.file("f/x")).error().kind(), ErrorKind::kIo);

  ::unsetenv("CYB_DATA");
  ::setenv("XDG_DATA_HOME", "/somewhere", 1);
  EXPECT_EQ(data_folder(), "/somewhere/cyb-llm");
  ::setenv("XDG_DATA_HOME", "relative", 1);
  ::setenv("HOME", "/somewhere/me", 1);
  EXPECT_EQ(data_folder(), "/somewhere/me/.local/share/cyb-llm");
  ::setenv("CYB_DATA", "/own", 1);
  EXPECT_EQ(data_folder(), "/own");
  ::unsetenv("CYB_DATA");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("CYB_CACHE");
  EXPECT_EQ(cache_folder(), "/somewhere/me/.cache/cyb-llm");
}

}  // namespace
}  // namespace cyb

namespace cyb {
namespace {

TEST(AtomicFileTarget, ASymbolicLinkStaysAndItsTargetIsWritten) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::symlink(folder.file("real").c_str(), folder.file("link").c_str()), 0);
  {
    std::ofstream(folder.file("real")) << "old";
  }
  auto file = AtomicFile::create(folder.file("link"));
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_TRUE(file->write("new"));
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(*read_text_file(folder.file("real"), 100), "new");
}

TEST(AtomicFileTarget, ALinkCanBeReplacedInstead) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::symlink(folder.file("real").c_str(), folder.file("link").c_str()), 0);
  {
    std::ofstream(folder.file("real")) << "old";
  }
  auto file = AtomicFile::create(folder.file("link"), AtLink::kReplace);
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_TRUE(file->write("new"));
  ASSERT_TRUE(file->commit());
  EXPECT_FALSE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(*read_text_file(folder.file("link"), 100), "new");
  EXPECT_EQ(*read_text_file(folder.file("real"), 100), "old");
}

TEST(AtomicFileTarget, APipeIsRefusedAndStays) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const auto file = AtomicFile::create(folder.file("pipe"));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().text().find("not a regular file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_fifo(folder.file("pipe")));
}

}  // namespace
}  // namespace cyb
