// The journal's first line says what the part is of; a line of a chunk is its index and digest. A
// torn last line is no line.
#include "net/part_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>

#include "base/file.hpp"
#include "base/rename.hpp"
#include "net/net_error.hpp"

namespace cyb::net {
namespace {

constexpr std::uint64_t kMinChunk = std::uint64_t{256} << 10, kMaxChunk = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxJournalBytes = std::uint64_t{256} << 20;

std::string journal_path(const std::string& path) {
  return part_path(path) + ".state";
}

/// About 64 chunks, of a power of two.
std::uint64_t chunk_size(std::uint64_t size) {
  return std::clamp(std::bit_ceil(size / 64 + 1), kMinChunk, kMaxChunk);
}

Error write_error(const std::string& path, int error) {
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return io_errno(path, "write", error);
  return net_error(kNoSpace, io_errno(path, "write", error).message() +
                                 "; what was fetched is kept: make room, then the same command "
                                 "goes on from there");
}

Result<void> write_fully(int fd, const std::string& path, std::uint64_t offset,
                         std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(write_error(path, errno));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<int> open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  struct stat info{};
  if (fd < 0) return fail(io_errno(path, "open", errno));
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
  ::close(fd);
  return fail(io_error(path, "open", "not a regular file"));
}

}  // namespace

Result<void> read_range(int fd, std::uint64_t offset, std::uint64_t size, std::stop_token stop,
                        const std::function<void(std::span<const std::byte>)>& each) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  while (size > 0) {
    if (stop.stop_requested()) return fail(cancelled(0));
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, buffer.size()));
    const ssize_t n = ::pread(fd, buffer.data(), wanted, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_errno("the part", "read", errno));
    if (n == 0) return fail(io_error("the part", "read", "it is shorter than it was"));
    each(std::span(buffer).first(static_cast<std::size_t>(n)));
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<PartFile> PartFile::open(const std::string& path, std::uint64_t size,
                                const std::string& identity, std::stop_token stop) {
  PartFile part;
  part.path_ = path;
  part.size_ = size;
  part.chunk_bytes_ = chunk_size(size);
  part.chunks_.resize(static_cast<std::size_t>((size + part.chunk_bytes_ - 1) / part.chunk_bytes_));
  part.header_ =
      fmt::format("cyb-llm part 1 {} {} {}", size, part.chunk_bytes_, hex(blake3(identity)));
  CYB_ASSIGN(part.fd_, open_file(part_path(path)));
  CYB_ASSIGN(part.journal_, open_file(journal_path(path)));
  const auto text = read_text_file(journal_path(path), kMaxJournalBytes);
  if (text && !identity.empty()) part.read_journal(*text, part.header_);
  CYB_TRY(part.drop_damaged(stop));
  CYB_TRY(part.write_journal());
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      header_(std::move(other.header_)),
      fd_(std::exchange(other.fd_, -1)),
      journal_(std::exchange(other.journal_, -1)),
      size_(other.size_),
      chunk_bytes_(other.chunk_bytes_),
      chunks_(std::move(other.chunks_)) {}

PartFile::~PartFile() {
  if (fd_ >= 0) ::close(fd_);
  if (journal_ >= 0) ::close(journal_);
}

void PartFile::read_journal(const std::string& text, const std::string& header) {
  if (!text.starts_with(header + "\n")) return;
  std::size_t at = header.size() + 1;
  while (true) {
    const std::size_t end = text.find('\n', at);
    const std::size_t space = text.find(' ', at);
    if (end == std::string::npos || space == std::string::npos || space > end) return;
    std::size_t index = 0;
    const auto parsed = std::from_chars(text.data() + at, text.data() + space, index);
    const auto digest = parse_digest(std::string_view(text).substr(space + 1, end - space - 1));
    if (parsed.ptr != text.data() + space || index >= chunks_.size() || !digest) return;
    chunks_[index] = {true, *digest};
    at = end + 1;
  }
}

Result<void> PartFile::write_journal() {
  std::string text = header_ + "\n";
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    if (chunks_[i].done) text += fmt::format("{} {}\n", i, hex(chunks_[i].digest));
  if (::ftruncate(journal_, 0) != 0) return fail(write_error(journal_path(path_), errno));
  return write_fully(journal_, journal_path(path_), 0, std::as_bytes(std::span(text)));
}

std::pair<std::uint64_t, std::uint64_t> PartFile::range(std::size_t chunk) const noexcept {
  const std::uint64_t first = chunk * chunk_bytes_;
  return {first, std::min(size_, first + chunk_bytes_) - 1};
}

std::uint64_t PartFile::done_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    if (chunks_[i].done) sum += range(i).second - range(i).first + 1;
  return sum;
}

Result<void> PartFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  return write_fully(fd_, part_path(path_), offset, bytes);
}

Result<void> PartFile::mark(std::size_t chunk, const Digest& digest) {
  const std::lock_guard guard(mutex_);
  chunks_[chunk] = {true, digest};
  const std::string line = fmt::format("{} {}\n", chunk, hex(digest));
  const off_t end = ::lseek(journal_, 0, SEEK_END);
  if (end < 0) return fail(io_errno(journal_path(path_), "seek", errno));
  return write_fully(journal_, journal_path(path_), static_cast<std::uint64_t>(end),
                     std::as_bytes(std::span(line)));
}

Result<std::size_t> PartFile::drop_damaged(std::stop_token stop) {
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (!chunks_[i].done) continue;
    Blake3 hasher;
    const auto [first, last] = range(i);
    const auto read = read_range(fd_, first, last - first + 1, stop,
                                 [&](std::span<const std::byte> bytes) { hasher.update(bytes); });
    if (stop.stop_requested()) return fail(cancelled(0));
    if (read && hasher.finish() == chunks_[i].digest) continue;
    chunks_[i].done = false;
    ++dropped;
  }
  if (dropped > 0) CYB_TRY(write_journal());
  return dropped;
}

Result<void> PartFile::restart() {
  for (Chunk& chunk : chunks_) chunk.done = false;
  return write_journal();
}

Result<void> PartFile::commit(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0)
    return fail(io_errno(path_, "cut to size", errno));
  CYB_TRY(sync_and_rename(fd_, part_path(path_), path_));
  ::unlink(journal_path(path_).c_str());
  return {};
}

void PartFile::discard() noexcept {
  ::unlink(part_path(path_).c_str());
  ::unlink(journal_path(path_).c_str());
}

}  // namespace cyb::net
