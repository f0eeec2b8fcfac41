// Read-only mappings, small reads and the user's folders. Atomic writes are in atomic_file.cpp.
#include "base/file.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace cyb {
namespace {

/// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

int open_retrying(const char* path, int flags) noexcept {
  int fd = -1;
  do {
    fd = ::open(path, flags);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Opens a regular file. O_NONBLOCK keeps a FIFO from blocking the open; it has no effect on
/// regular files.
Result<struct stat> open_regular(const std::string& path, int fd) {
  if (fd < 0) return fail(io_errno(path, "open", errno));
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail(io_errno(path, "stat", errno));
  if (S_ISDIR(info.st_mode)) return fail(io_errno(path, "open", EISDIR));
  if (!S_ISREG(info.st_mode)) return fail(io_error(path, "open", "not a regular file"));
  return info;
}

std::string home_folder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return home;
  const struct passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : ".";
}

/// $own, or $xdg/cyb-llm where it is absolute (the XDG rule), or ~/fallback/cyb-llm.
std::string user_folder(const char* own, const char* xdg, const char* fallback) {
  const char* value = std::getenv(own);
  if (value != nullptr && *value != '\0') return value;
  value = std::getenv(xdg);
  if (value != nullptr && *value == '/') return std::string(value) + "/cyb-llm";
  return home_folder() + "/" + fallback + "/cyb-llm";
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor fd(open_retrying(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return map(path, fd.get());
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open_beneath(const std::string& folder,
                                                                   const std::string& relative) {
  const std::string path = folder + "/" + relative;
  int parent = open_retrying(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  std::size_t begin = 0;
  while (true) {
    const Descriptor here(parent);
    if (parent < 0) return fail(io_errno(path, "open", errno));
    const std::size_t slash = relative.find('/', begin);
    const std::string name = relative.substr(begin, slash - begin);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos)
      return fail(io_error(path, "open", "the name leaves its folder"));
    const bool last = slash == std::string::npos;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    parent = ::openat(here.get(), name.c_str(), flags);
    if (!last) {
      begin = slash + 1;
      continue;
    }
    const Descriptor fd(parent);
    if (parent < 0 && errno == ELOOP)
      return fail(io_error(path, "open",
                           "a symbolic link is not followed: put the file itself there (cp -L)"));
    CYB_ASSIGN(const struct stat info, open_regular(path, fd.get()));
    if (info.st_nlink != 1)
      return fail(
          io_error(path, "open", "it is a hard link: the file has other names; put a copy there"));
    return map(path, fd.get());
  }
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map(const std::string& path, int fd) {
  CYB_ASSIGN(const struct stat info, open_regular(path, fd));
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<std::size_t>(info.st_size);
  file->mtime_ns_ =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + std::int64_t{info.st_mtim.tv_nsec};
  if (file->size_ == 0) return file;
  void* address = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) {
    file->size_ = 0;
    return fail(io_errno(path, "map", errno));
  }
  file->data_ = static_cast<const std::byte*>(address);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (data_ == nullptr || offset >= size_) return;
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t end = size > size_ - offset ? size_ : offset + size;
  const std::uint64_t first = (offset + page - 1) / page * page;
  const std::uint64_t last = end == size_ ? end : end / page * page;
  if (first >= last) return;
  ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t limit_bytes) {
  const Descriptor fd(open_retrying(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  CYB_ASSIGN(const struct stat info, open_regular(path, fd.get()));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > limit_bytes) {
    return fail(io_error(
        path, "read",
        std::to_string(size) + " bytes exceed the limit of " + std::to_string(limit_bytes)));
  }
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_errno(path, "read", errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

Result<void> make_folders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return fail(io_error(path, "create the folder", code.message()));
  return {};
}

std::string data_folder() {
  return user_folder("CYB_DATA", "XDG_DATA_HOME", ".local/share");
}
std::string cache_folder() {
  return user_folder("CYB_CACHE", "XDG_CACHE_HOME", ".cache");
}

}  // namespace cyb
