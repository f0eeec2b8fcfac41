// A digest is kept for as long as the file's stamp is the same.
#include "server/registry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.hpp"
#include "model/model.hpp"
#include "model/store_rebuild.hpp"
#include "server/download.hpp"

namespace cyb::server {
namespace {

constexpr std::size_t kHashStep = std::size_t{1} << 20;

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_nsec};
}

std::optional<FileStamp> stamp_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  const auto stamp = file_stamp(fd);
  ::close(fd);
  return stamp;
}

/// Of the whole file. Errors: Io, Cancelled as soon as `closed`.
Result<Digest> hash_file(const std::string& path, const std::atomic<bool>& closed) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Blake3 hasher;
  const std::span<const std::byte> bytes = file->bytes();
  for (std::size_t at = 0; at < bytes.size(); at += kHashStep) {
    if (closed.load()) return fail(cancelled(0));
    const std::size_t n = std::min(kHashStep, bytes.size() - at);
    hasher.update(bytes.subspan(at, n));
    file->release(at, n);
  }
  return hasher.finish();
}

}  // namespace

std::optional<FileStamp> file_stamp(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileStamp{.device = info.st_dev,
                   .inode = info.st_ino,
                   .size_bytes = static_cast<std::uint64_t>(info.st_size),
                   .mtime_ns = nanoseconds(info.st_mtim),
                   .ctime_ns = nanoseconds(info.st_ctim)};
}

/// The name of a file in the store is its digest.
Result<Registry::Identity> Registry::identify(const std::string& path) const {
  const auto before = stamp_of(path);
  if (!before) return fail(io_errno(path, "open", errno));
  CYB_ASSIGN(const std::shared_ptr<const Model> model, Model::open(path));
  CYB_ASSIGN(const Digest id, model->model_id());
  Identity out{*before, digest_text(id), {}};
  if (const auto stored = file_id_of_path(path)) {
    out.digest = *stored;
  } else {
    CYB_ASSIGN(out.digest, hash_file(path, closed_));
  }
  if (stamp_of(path) != before) return fail(busy("the file changes"));
  return out;
}

std::optional<Registry::Identity> Registry::known_identity(const std::string& path,
                                                           const FileStamp& stamp) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(path);
  if (known == known_.end() || known->second.stamp != stamp) return std::nullopt;
  return known->second;
}

std::vector<SharedFile> Registry::list() {
  std::vector<SharedFile> out;
  for (const ShelfView& view : shelf_.views()) {
    const std::string& path = view.facts.path;
    if (!view.parent.empty() || path.empty()) continue;
    const auto stamp = stamp_of(path);
    if (!stamp) continue;
    auto identity = known_identity(path, *stamp);
    if (!identity) {
      auto found = identify(path);
      if (!found) continue;
      identity = *std::move(found);
      const std::lock_guard lock(mutex_);
      known_[path] = *identity;
    }
    if (identity->model_id != view.facts.model_id) continue;  // another model lies there now
    out.push_back({view.name, identity->model_id, path, identity->digest, identity->stamp});
  }
  return out;
}

std::optional<SharedFile> Registry::find_known(const Digest& digest) {
  for (const ShelfView& view : shelf_.views()) {
    const std::string& path = view.facts.path;
    if (!view.parent.empty() || path.empty()) continue;
    const auto stamp = stamp_of(path);
    const auto identity = stamp ? known_identity(path, *stamp) : std::nullopt;
    if (!identity || identity->digest != digest || identity->model_id != view.facts.model_id)
      continue;
    return SharedFile{view.name, identity->model_id, path, digest, identity->stamp};
  }
  return std::nullopt;
}

bool Registry::enter(const std::shared_ptr<Download>& download) {
  std::vector<std::shared_ptr<Download>> open;  // gone without the lock: they take it
  {
    const std::lock_guard lock(mutex_);
    if (closed_.load()) return false;
    if (downloads_.size() < kMaxModelDownloads) {
      downloads_.emplace_back(download.get(), download);
      return true;
    }
    for (const auto& [key, weak] : downloads_) open.push_back(weak.lock());
  }
  for (const auto& other : open) {
    if (other && other->waits_longer_than(kStalled)) other->cut_off(408);
  }
  return false;
}

void Registry::leave(const Download* download) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(downloads_, [&](const auto& one) { return one.first == download; });
}

void Registry::close() {
  std::vector<std::shared_ptr<Download>> open;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [key, weak] : downloads_) open.push_back(weak.lock());
  }
  for (const auto& one : open) {
    if (one) one->cut_off(503);
  }
}

void Registry::stop() {
  close();
  look_ups_.stop();
  pieces_.stop();
}

}  // namespace cyb::server
