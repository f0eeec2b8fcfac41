// Locks of the store: the lock file that changes take, and the staging folder of one process, held
// by a lock of its own so that a dead owner is known whatever its process id.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace cyb {

/// An exclusive flock on a file, released at destruction and by the kernel when the process dies.
class FileLock {
 public:
  /// Waits up to `wait_ms`, then Busy. Creates the file.
  static Result<FileLock> take(const std::string& path, int wait_ms, const std::string& what);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int fd) noexcept : fd_(fd) {}
  int fd_ = -1;
};

/// Folders and lock of a store.
std::string store_models_folder(const std::string& root);
std::string store_index_path(const std::string& root);
std::string store_staging_folder(const std::string& root);
Result<FileLock> lock_store(const std::string& root);

/// Removes staging folders whose owner is dead, and half-written indices. Under the store's lock.
void sweep_leftovers(const std::string& root) noexcept;

class StoreStaging {
 public:
  ~StoreStaging();
  /// A fresh path in this process's staging folder, which is made on the first call.
  Result<std::string> fresh_path(const std::string& root);

 private:
  Result<void> open(const std::string& root);

  std::mutex mutex_;
  std::string folder_;  // "" until the first call
  std::optional<FileLock> lock_;
  unsigned next_ = 0;
};

}  // namespace cyb
