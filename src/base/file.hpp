// Files: read-only mappings and atomic writes (temporary name, fsync, rename, fsync of the folder).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb {

/// A whole file mapped read-only and private. Regular files only. The file must not be modified
/// while in use.
class MappedFile {
 public:
  /// Errors: Io with the path and the reason.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  /// `relative`: names joined by '/', none of them empty, "." or "..". No link on the way is
  /// followed, and the file has one name only (a hard link could be any file of the system).
  static Result<std::shared_ptr<const MappedFile>> open_beneath(const std::string& folder,
                                                                const std::string& relative);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const noexcept { return path_; }
  /// Last modification, nanoseconds since the epoch.
  std::int64_t mtime_ns() const noexcept { return mtime_ns_; }
  /// Lets the kernel drop the pages of [offset, offset + size) from this process (they stay in the
  /// page cache).
  void release(std::uint64_t offset, std::uint64_t size) const noexcept;

 private:
  MappedFile() = default;
  static Result<std::shared_ptr<const MappedFile>> map(const std::string& path, int fd);

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
  std::int64_t mtime_ns_ = 0;
};

/// What AtomicFile does with a symbolic link under its path: write what it names (a person's own
/// output), or put the file in the link's place (our own folders, where nobody should lead us
/// away).
enum class AtLink : std::uint8_t { kFollow, kReplace };

/// Writes to a file without a name (or, without such files, a temporary one) beside `path`, which
/// appears by commit() alone: destroyed without it, nothing stays. temporary_path(): read it there.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path, AtLink at_link = AtLink::kFollow);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text);
  /// Overwrites bytes already written, at `offset`.
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  std::uint64_t size() const noexcept { return size_; }
  /// fsync, rename over `path`, fsync of the folder.
  Result<void> commit();
  const std::string& temporary_path() const noexcept { return temporary_; }

 private:
  AtomicFile() = default;
  Result<void> flush();

  int fd_ = -1;  // -1: moved from or committed
  std::uint64_t size_ = 0;
  std::string path_, temporary_;
  std::vector<std::byte> buffer_;  // gathers small writes
};

/// Whole small file as text, refused above `limit_bytes`.
Result<std::string> read_text_file(const std::string& path, std::uint64_t limit_bytes);
/// mkdir -p.
Result<void> make_folders(const std::string& path);
/// $XDG_DATA_HOME/cyb-llm or ~/.local/share/cyb-llm ($CYB_DATA overrides); likewise cache
/// ($CYB_CACHE).
std::string data_folder();
std::string cache_folder();
/// Removes temporary files of AtomicFile that this process still has open; async-signal-safe (for a
/// fatal signal).
void remove_temporary_files() noexcept;

}  // namespace cyb
