// Registry: the files of the served models, offered to other machines (serve --share-models). What
// is offered is found from the shelf alone, never from a path of a request, and is what its digest
// says: a file that is no longer the served model's is offered no more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "base/transfer_limits.hpp"
#include "runtime/model_shelf.hpp"
#include "server/http/worker_pool.hpp"

namespace cyb::server {

class Download;

/// What says that a file is the same as before.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
/// nullopt for what is no regular file.
std::optional<FileStamp> file_stamp(int fd);

struct SharedFile {
  std::string name, model_id, path;
  Digest digest{};  // BLAKE3 of the whole file
  FileStamp stamp;
};

/// Thread-safe.
class Registry {
 public:
  explicit Registry(ModelShelf& shelf) : shelf_(shelf) {}
  ~Registry() { stop(); }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Files of all models that were opened, but those of adapters. Reads a file whole where its
  /// digest is not known: on the thread of look_up() alone.
  std::vector<SharedFile> list();
  /// Without reading a file; nullopt also where its digest is not known yet.
  std::optional<SharedFile> find_known(const Digest& digest);
  /// Runs `work` on the thread that may read files whole. False: too many wait.
  bool look_up(std::function<void()> work) { return look_ups_.post(std::move(work)); }
  /// The same on a thread that reads pieces of files.
  bool read_piece(std::function<void()> work) { return pieces_.post(std::move(work)); }

  /// A place among the kMaxModelDownloads; false: all are taken. A download whose client has not
  /// taken a piece for kStalled loses its own.
  bool enter(const std::shared_ptr<Download>& download);
  void leave(const Download* download) noexcept;
  /// Ends the downloads and takes no more; they go on from there at another time.
  void close();
  /// close(), and no thread is left.
  void stop();

  static constexpr std::chrono::seconds kStalled{30};

 private:
  struct Identity {
    FileStamp stamp;
    std::string model_id;
    Digest digest{};
  };
  Result<Identity> identify(const std::string& path) const;
  std::optional<Identity> known_identity(const std::string& path, const FileStamp& stamp);

  ModelShelf& shelf_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;                       // guards what follows
  std::map<std::string, Identity> known_;  // by path
  std::list<std::pair<const Download*, std::weak_ptr<Download>>> downloads_;
  http::WorkerPool look_ups_{1, 64}, pieces_{2, kMaxModelDownloads};
};

}  // namespace cyb::server
