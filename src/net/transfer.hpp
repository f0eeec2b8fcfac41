// One file of a download: what the server says of it, one range, the whole as a stream, and its
// digest. download.cpp decides when each happens.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "net/download.hpp"
#include "net/part_file.hpp"

namespace cyb::net {

/// Whether the bytes are those of the file that was begun.
enum class Fetched : std::uint8_t { kWhole, kOtherFile };

/// What all threads of a download share.
struct TransferContext {
  const DownloadOptions& options;
  std::stop_token stop;
  std::function<void(const std::string&)> note;  // from any thread
  std::atomic<std::uint64_t> done_bytes{0};      // progress; goes back when a file begins anew
};

class FileTransfer {
 public:
  explicit FileTransfer(const FileRequest& request) : request_(request), at_(request.url) {}

  /// Asks for one byte: size, validator, whether ranges are served.
  Result<void> probe(Connection& connection, TransferContext& context);
  /// Resumes or begins the part. After probe().
  Result<void> open_part(TransferContext& context);
  Result<Fetched> fetch_chunk(Connection& connection, TransferContext& context, std::size_t chunk);
  /// All of it in one answer, of a server without ranges.
  Result<void> fetch_stream(Connection& connection, TransferContext& context);
  /// SHA-256 of `fd`'s first size() bytes; whether the digests are those announced.
  Result<bool> check_digest(int fd, TransferContext& context);
  Error digest_error() const;

  const FileRequest& request() const noexcept { return request_; }
  std::uint64_t size() const noexcept { return size_.value_or(0); }
  bool has_ranges() const noexcept { return ranges_; }
  bool has_digest() const noexcept {
    return !(request_.sha256 + request_.git_blob + request_.blake3).empty();
  }
  std::optional<PartFile>& part() noexcept { return part_; }
  void set_size(std::uint64_t size) noexcept { size_ = size; }

  FileResult result;
  std::atomic<std::uint64_t> fetched_bytes{0};

 private:
  struct Attempt;
  Url address() const;
  void set_address(const Url& url);
  /// Waits before the next try, or gives the error back.
  Result<void> after_failure(Result<HttpHead> answer, Attempt& attempt, TransferContext& context);
  Result<bool> take_range_head(const HttpHead& head, const ByteRange& wanted, bool& changed) const;
  Result<bool> take_probe_head(const HttpHead& head);

  const FileRequest& request_;
  mutable std::mutex mutex_;
  Url at_;  // after redirects
  std::optional<std::uint64_t> size_;
  std::string validator_;  // strong ETag or Last-Modified; "" where a digest decides
  bool ranges_ = false;
  std::optional<PartFile> part_;
};

}  // namespace cyb::net
