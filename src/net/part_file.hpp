// A file that grows in chunks beside its final place and survives the end of the process:
// `<path>.part` and a journal `<path>.part.state` with one line and one BLAKE3 for each chunk that
// is whole. Lines are only appended; on resume every chunk is held against its line, so that what a
// crash left half written is fetched again.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"

namespace cyb::net {

class PartFile {
 public:
  /// `size`: of the whole file; `identity`: what says that the server's file is the same (digest or
  /// validator), "": nothing does, begin anew. Errors: Io, N08, Cancelled.
  static Result<PartFile> open(const std::string& path, std::uint64_t size,
                               const std::string& identity, std::stop_token stop);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
  std::size_t n_chunks() const noexcept { return chunks_.size(); }
  bool has(std::size_t chunk) const noexcept { return chunks_[chunk].done; }
  /// [first, last], both included.
  std::pair<std::uint64_t, std::uint64_t> range(std::size_t chunk) const noexcept;
  std::uint64_t done_bytes() const noexcept;

  /// From any thread, for different places. Errors: Io; N08 where the disk is full.
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// The chunk is whole. From any thread.
  Result<void> mark(std::size_t chunk, const Digest& digest);
  /// Forgets chunks whose bytes on disk are not those that were written; how many.
  Result<std::size_t> drop_damaged(std::stop_token stop);
  /// Forgets all chunks.
  Result<void> restart();
  int fd() const noexcept { return fd_; }
  /// Cuts to `size`, syncs, renames to the final name and removes the journal.
  Result<void> commit(std::uint64_t size);
  /// Removes part and journal.
  void discard() noexcept;

 private:
  struct Chunk {
    bool done = false;
    Digest digest{};
  };
  PartFile() = default;
  void read_journal(const std::string& text, const std::string& header);
  Result<void> write_journal();

  std::string path_, header_;
  int fd_ = -1, journal_ = -1;
  std::uint64_t size_ = 0, chunk_bytes_ = 0;
  std::vector<Chunk> chunks_;
  std::mutex mutex_;  // the journal
};

/// Where the part of `path` lies.
inline std::string part_path(const std::string& path) {
  return path + ".part";
}

/// Calls `each` for the bytes [offset, offset + size) of a file, piece by piece. Errors: Io (also
/// where the file ends before), Cancelled.
Result<void> read_range(int fd, std::uint64_t offset, std::uint64_t size, std::stop_token stop,
                        const std::function<void(std::span<const std::byte>)>& each);

}  // namespace cyb::net
