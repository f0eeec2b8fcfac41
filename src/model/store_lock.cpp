// flock-based locks. A staging folder is made and locked under the store's lock, and swept under it
// too, so a folder whose lock can be taken there has no living owner.
#include "model/store_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/file.hpp"
#include "base/hash.hpp"

namespace cyb {
namespace {

constexpr int kStoreWaitMs = 30000;
constexpr int kPollMs = 10;
constexpr const char* kOwnerLock = "owner.lock";

std::string random_name() {
  std::random_device device;
  Digest bytes{};
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(device());
  return hex(bytes).substr(0, 32);
}

}  // namespace

Result<FileLock> FileLock::take(const std::string& path, int wait_ms, const std::string& what) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return fail(io_errno(path, "open", errno));
  FileLock lock(fd);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(io_errno(path, "lock", errno));
    if (std::chrono::steady_clock::now() >= deadline) return fail(busy(what));
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::string store_models_folder(const std::string& root) {
  return root + "/models";
}
std::string store_index_path(const std::string& root) {
  return root + "/models/index.toml";
}
std::string store_staging_folder(const std::string& root) {
  return root + "/models/staging";
}

Result<FileLock> lock_store(const std::string& root) {
  CYB_TRY(make_folders(store_models_folder(root)));
  return FileLock::take(store_models_folder(root) + "/lock", kStoreWaitMs, "the model store");
}

void sweep_leftovers(const std::string& root) noexcept {
  std::error_code code;
  // Half-written indices: only the holder of the store's lock writes one.
  for (const auto& entry : std::filesystem::directory_iterator(store_models_folder(root), code)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.starts_with(".index.toml.") && name.ends_with(".tmp"))
      std::filesystem::remove(entry.path(), ignored);
  }
  const std::filesystem::directory_iterator folders(store_staging_folder(root), code);
  if (code) return;
  for (const auto& entry : folders) {
    const std::string folder = entry.path().string();
    const auto lock = FileLock::take(folder + "/" + kOwnerLock, 0, "staging");
    if (lock) std::filesystem::remove_all(folder, code);
  }
}

Result<void> StoreStaging::open(const std::string& root) {
  CYB_ASSIGN(const FileLock store, lock_store(root));
  sweep_leftovers(root);
  const std::string folder = store_staging_folder(root) + "/" + random_name();
  CYB_TRY(make_folders(folder));
  CYB_ASSIGN(lock_, FileLock::take(folder + "/" + kOwnerLock, 0, "a new staging folder"));
  folder_ = folder;
  return {};
}

Result<std::string> StoreStaging::fresh_path(const std::string& root) {
  const std::lock_guard guard(mutex_);
  if (folder_.empty()) CYB_TRY(open(root));
  return folder_ + "/" + std::to_string(next_++) + ".model";
}

StoreStaging::~StoreStaging() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace cyb
