// AtomicFile: a file without a name where the system has them (a process that is killed leaves
// nothing behind), else a temporary name in the same folder; fsync, name, rename, fsync of the
// folder. A fixed registry of temporary names lets a signal handler remove them without allocation
// or locks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/rename.hpp"

namespace cyb {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

enum SlotState : int { kFree, kClaimed, kActive };

struct Slot {
  std::atomic<int> state{kFree};
  std::array<char, PATH_MAX> path{};
};

// Zero-initialised (.bss); a process rarely has more than two files open for writing.
std::array<Slot, 16> g_temporaries;
std::atomic<unsigned> g_serial{0};

void register_temporary(const std::string& path) noexcept {
  if (path.size() >= PATH_MAX) return;
  for (Slot& slot : g_temporaries) {
    int expected = kFree;
    if (!slot.state.compare_exchange_strong(expected, kClaimed)) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.state.store(kActive);
    return;
  }
}

void forget_temporary(const std::string& path) noexcept {
  for (Slot& slot : g_temporaries) {
    if (slot.state.load() == kActive && path == slot.path.data()) {
      slot.state.store(kFree);
      return;
    }
  }
}

struct SplitPath {
  std::string folder;  // with its final '/', or empty
  std::string name;
};

SplitPath split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

constexpr std::string_view kDescriptors = "/proc/self/fd/";

/// How this process calls a file that has no name.
std::string descriptor_path(int fd) {
  return std::string(kDescriptors) + std::to_string(fd);
}

bool has_name(const std::string& temporary) noexcept {
  return !temporary.starts_with(kDescriptors);
}

Result<void> write_all(int fd, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_errno(path, "write", errno));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

/// A file of `folder` without a name, or -1 where the file system has none, or the name cannot be
/// given later.
int open_unnamed(const std::string& folder) noexcept {
#ifdef O_TMPFILE
  const char* const where = folder.empty() ? "." : folder.c_str();
  const int fd = ::open(where, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) return -1;
  if (::access(descriptor_path(fd).c_str(), R_OK) == 0) return fd;  // /proc is there
  ::close(fd);
#else
  (void)folder;
#endif
  return -1;
}

/// A temporary name beside `path`, one that `make` could create.
template <class Make>
Result<std::string> take_name(const std::string& path, const Make& make) {
  const SplitPath parts = split(path);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = parts.folder + "." + parts.name + "." + std::to_string(::getpid()) + "." +
                       std::to_string(g_serial.fetch_add(1)) + ".tmp";
    // Registered before it exists, so that a signal between the two calls leaves nothing behind.
    register_temporary(name);
    if (make(name.c_str())) return name;
    const int error = errno;
    forget_temporary(name);
    if (error != EEXIST && error != EINTR) return fail(io_errno(path, "create", error));
  }
  return fail(io_errno(path, "create", EEXIST));
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& name, AtLink at_link) {
  std::string path = name;
  struct stat info{};
  bool exists = ::lstat(path.c_str(), &info) == 0;
  if (exists && S_ISLNK(info.st_mode) && at_link == AtLink::kFollow) {
    // What the link names is written, the link stays.
    std::array<char, PATH_MAX> target{};
    if (::realpath(path.c_str(), target.data()) == nullptr)
      return fail(io_errno(path, "create", errno));
    path = target.data();
    exists = ::lstat(path.c_str(), &info) == 0;
  }
  const SplitPath parts = split(path);
  if (parts.name.empty()) return fail(io_error(path, "create", "the name is empty"));
  const bool is_link = exists && S_ISLNK(info.st_mode);
  if (exists && S_ISDIR(info.st_mode)) return fail(io_errno(path, "create", EISDIR));
  if (exists && !is_link &&
      !S_ISREG(info.st_mode)) {  // a rename would replace the device or pipe itself
    return fail(io_error(path, "create", "it exists and is not a regular file"));
  }
  AtomicFile file;
  file.path_ = path;
  file.fd_ = open_unnamed(parts.folder);
  if (file.fd_ >= 0) {
    file.temporary_ = descriptor_path(file.fd_);
    return file;
  }
  CYB_ASSIGN(file.temporary_, take_name(path, [&file](const char* temporary) {
               file.fd_ = ::open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
               return file.fd_ >= 0;
             }));
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!has_name(temporary_)) return;
  ::unlink(temporary_.c_str());
  forget_temporary(temporary_);
}

Result<void> AtomicFile::flush() {
  CYB_TRY(write_all(fd_, path_, buffer_));
  buffer_.clear();
  return {};
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) return fail(io_error(path_, "write", "already committed"));
  if (buffer_.size() + bytes.size() > kBufferBytes) CYB_TRY(flush());
  if (bytes.size() >= kBufferBytes) {
    CYB_TRY(write_all(fd_, path_, bytes));
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  size_ += bytes.size();
  return {};
}

Result<void> AtomicFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Result<void> AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (fd_ < 0) return fail(io_error(path_, "write", "already committed"));
  if (offset > size_ || bytes.size() > size_ - offset) {
    return fail(io_error(path_, "write", "offset beyond the bytes written"));
  }
  CYB_TRY(flush());
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_errno(path_, "write", errno));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (fd_ < 0) return fail(io_error(path_, "commit", "already committed"));
  CYB_TRY(flush());
  if (!has_name(temporary_)) {
    CYB_ASSIGN(temporary_, take_name(path_, [from = temporary_](const char* name) {
                 return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
               }));
  }
  auto renamed = sync_and_rename(fd_, temporary_, path_);
  std::error_code code;
  if (!renamed && std::filesystem::exists(temporary_, code)) return renamed;
  forget_temporary(temporary_);
  ::close(std::exchange(fd_, -1));
  return renamed;
}

Result<void> sync_and_rename(int fd, const std::string& from, const std::string& to) {
  if (::fsync(fd) != 0) return fail(io_errno(to, "sync", errno));
  if (::rename(from.c_str(), to.c_str()) != 0)
    return fail(io_errno(to, "rename into place", errno));
  const std::string folder = split(to).folder;
  const int folder_fd =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd < 0) return {};  // a folder may be writable but not readable: the data is safe
  const int status = ::fsync(folder_fd);
  const int error = errno;
  ::close(folder_fd);
  // Some file systems cannot sync a folder and say so with EINVAL.
  if (status != 0 && error != EINVAL) return fail(io_errno(to, "sync the folder", error));
  return {};
}

void remove_temporary_files() noexcept {
  for (const Slot& slot : g_temporaries) {
    if (slot.state.load() == kActive) ::unlink(slot.path.data());
  }
}

}  // namespace cyb
