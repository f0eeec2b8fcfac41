// What is fetched again after a failure: a range from the byte where it broke. A try counts unless
// it brought 64 KiB.
#include "net/transfer.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/transfer_limits.hpp"
#include "net/net_error.hpp"
#include "net/sha.hpp"

namespace cyb::net {
namespace {

constexpr std::uint64_t kProgressBytes = 65536;
constexpr unsigned kNotedWaitS = 1;

/// "bytes FIRST-LAST/TOTAL" or "bytes */TOTAL" (then first > last).
struct ContentRange {
  std::uint64_t first = 1, last = 0, total = 0;
};

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<ContentRange> parse_range(std::string_view text) {
  ContentRange range;
  if (!take(text, "bytes ")) return std::nullopt;
  const bool none = take(text, "*");
  if (!none && !(take(text, range.first) && take(text, "-") && take(text, range.last)))
    return std::nullopt;
  if (!take(text, "/") || !take(text, range.total) || !text.empty()) return std::nullopt;
  if (!none && (range.last < range.first || range.last >= range.total)) return std::nullopt;
  return range;
}

std::string validator_of(const HttpHead& head) {
  const std::string& tag = head.field("etag");
  if (!tag.empty() && !tag.starts_with("W/")) return tag;
  return head.field("last-modified");
}

Error lies(const HttpHead& head, std::string_view what) {
  return net_error(kLies, fmt::format("{}: {}", head.url.shown(), what));
}

/// False: stopped.
bool sleep_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

struct FileTransfer::Attempt {
  unsigned n = 0;
  std::uint64_t bytes = 0;  // of this try
};

Url FileTransfer::address() const {
  const std::lock_guard guard(mutex_);
  return at_;
}

void FileTransfer::set_address(const Url& url) {
  const std::lock_guard guard(mutex_);
  at_ = url;
}

Result<void> FileTransfer::after_failure(Result<HttpHead> answer, Attempt& attempt,
                                         TransferContext& context) {
  unsigned wait_s = 0;
  if (!answer && !is_transient(answer.error())) return fail(std::move(answer).error());
  if (answer && !is_retried_status(answer->status)) {
    const unsigned s = answer->status;
    const bool expired =
        (s == 401 || s == 403 || s == 404 || s == 410) && address().text != request_.url.text;
    if (!expired) return fail(status_error(*answer));
    set_address(request_.url);  // the address behind the redirect is no longer valid
  }
  if (answer) wait_s = answer->retry_after_s();
  if (attempt.bytes >= kProgressBytes) attempt.n = 0;
  attempt.bytes = 0;
  if (attempt.n >= context.options.retries)
    return fail(answer ? status_error(*answer) : std::move(answer).error());
  const auto backoff = std::chrono::milliseconds(250) * (1 << std::min(attempt.n, 7u));
  ++attempt.n;
  if (wait_s >= kNotedWaitS && context.note)
    context.note(fmt::format("{}: the server answers {}; trying again in {} s",
                             request_.url.shown(), answer->status, wait_s));
  const auto wait = std::max<std::chrono::milliseconds>(backoff, std::chrono::seconds(wait_s));
  return sleep_for(wait, context.stop) ? Result<void>() : fail(cancelled(0));
}

Result<bool> FileTransfer::take_probe_head(const HttpHead& head) {
  std::optional<std::uint64_t> size;
  const auto range = parse_range(head.field("content-range"));
  if (head.status == 206 && (!range || range->first != 0 || range->last != 0))
    return fail(lies(head, "Content-Range is not the range that was asked for"));
  if (head.status == 206 || head.status == 416) size = range ? range->total : 0;
  if (head.status == 416 && *size != 0) return fail(lies(head, "no byte of a file that has some"));
  if (head.status == 200) size = head.length();
  if (head.status != 200 && !size) return false;
  if (head.status == 200 && !size && !head.field("content-length").empty())
    return fail(lies(head, "Content-Length is no number"));
  if (size && *size > kMaxDownloadBytes)
    return fail(lies(head, fmt::format("{} bytes, at most {}", *size, kMaxDownloadBytes)));
  if (size && request_.size && *size != *request_.size)
    return fail(lies(head, fmt::format("{} bytes, announced were {}", *size, *request_.size)));
  ranges_ = head.status != 200;
  size_ = size ? size : request_.size;
  validator_ = has_digest() ? "" : validator_of(head);
  return ranges_;
}

Result<void> FileTransfer::probe(Connection& connection, TransferContext& context) {
  set_address(request_.url);
  Attempt attempt;
  while (true) {
    std::uint64_t n = 0;
    HttpReceiver receiver;
    receiver.head = [this](const HttpHead& head) { return take_probe_head(head); };
    receiver.body = [&](std::span<const std::byte> bytes) -> Result<void> {
      n += bytes.size();
      if (n <= 1 || size() == 0) return {};
      return fail(net_error(kLies, request_.url.shown() + ": more bytes than were asked for"));
    };
    auto answer = connection.get({request_.url, ByteRange{0, 0}, ""}, receiver, context.stop);
    const unsigned status = answer ? answer->status : 0;
    if (status == 200 || status == 206 || status == 416) {
      set_address(answer->url);
      return {};
    }
    CYB_TRY(after_failure(std::move(answer), attempt, context));
  }
}

Result<void> FileTransfer::open_part(TransferContext& context) {
  std::string identity;
  if (ranges_) identity = request_.sha256 + request_.git_blob + request_.blake3;
  if (ranges_ && identity.empty()) identity = validator_;
  part_.reset();
  auto part = PartFile::open(request_.path, ranges_ ? size() : 0, identity, context.stop);
  if (!part) return fail(std::move(part).error());
  part_.emplace(*std::move(part));
  return {};
}

Result<bool> FileTransfer::take_range_head(const HttpHead& head, const ByteRange& wanted,
                                           bool& changed) const {
  changed = head.status == 200 || head.status == 416;
  if (head.status != 206) return false;
  const auto range = parse_range(head.field("content-range"));
  if (!range || range->first != wanted.first || range->last > wanted.last)
    return fail(lies(head, "Content-Range is not the range that was asked for"));
  const auto length = head.length();
  if (length && *length != range->last - range->first + 1)
    return fail(lies(head, "Content-Length and Content-Range contradict each other"));
  changed = range->total != size() || (!validator_.empty() && validator_of(head) != validator_);
  return !changed;
}

Result<Fetched> FileTransfer::fetch_chunk(Connection& connection, TransferContext& context,
                                          std::size_t chunk) {
  const auto [first, last] = part_->range(chunk);
  std::uint64_t at = first;
  Blake3 hasher;
  Attempt attempt;
  while (at <= last) {
    const ByteRange wanted{at, last};
    bool changed = false;
    HttpReceiver receiver;
    receiver.head = [&](const HttpHead& head) { return take_range_head(head, wanted, changed); };
    receiver.body = [&](std::span<const std::byte> bytes) -> Result<void> {
      if (bytes.size() > wanted.last + 1 - at)
        return fail(net_error(kLies, request_.url.shown() + ": more bytes than were asked for"));
      CYB_TRY(part_->write_at(at, bytes));
      hasher.update(bytes);
      at += bytes.size();
      attempt.bytes += bytes.size();
      fetched_bytes += bytes.size();
      context.done_bytes += bytes.size();
      return {};
    };
    auto answer = connection.get({address(), wanted, validator_}, receiver, context.stop);
    if (changed) return Fetched::kOtherFile;
    if (answer && answer->status == 206 && (at > last || attempt.bytes >= kProgressBytes)) continue;
    if (answer && answer->status == 206)
      answer = fail(net_error(kBrokenLink, request_.url.shown() + ": an answer without its bytes"));
    CYB_TRY(after_failure(std::move(answer), attempt, context));
  }
  CYB_TRY(part_->mark(chunk, hasher.finish()));
  return Fetched::kWhole;
}

Result<void> FileTransfer::fetch_stream(Connection& connection, TransferContext& context) {
  const std::uint64_t limit = size_.value_or(kMaxDownloadBytes);
  Attempt attempt;
  while (true) {
    std::uint64_t at = 0;
    HttpReceiver receiver;
    receiver.head = [](const HttpHead& head) { return Result<bool>(head.status == 200); };
    receiver.body = [&](std::span<const std::byte> bytes) -> Result<void> {
      if (bytes.size() > limit - at)
        return fail(net_error(kLies, fmt::format("{}: more than the {} bytes that were announced",
                                                 request_.url.shown(), limit)));
      CYB_TRY(part_->write_at(at, bytes));
      at += bytes.size();
      fetched_bytes += bytes.size();
      context.done_bytes += bytes.size();
      return {};
    };
    auto answer = connection.get({address(), {}, ""}, receiver, context.stop);
    if (answer && answer->status == 200) {
      if (size_ && at != *size_)
        return fail(lies(*answer, fmt::format("{} bytes, announced were {}", at, *size_)));
      size_ = at;
      return {};
    }
    context.done_bytes -= at;  // a stream cannot go on in its middle
    CYB_TRY(after_failure(std::move(answer), attempt, context));
  }
}

Result<bool> FileTransfer::check_digest(int fd, TransferContext& context) {
  Sha sha256(Sha::Kind::kSha256), git(Sha::Kind::kGitBlob, size());
  const bool with_git = !request_.git_blob.empty(), with_blake3 = !request_.blake3.empty();
  Blake3 blake3;
  CYB_TRY(read_range(fd, 0, size(), context.stop, [&](std::span<const std::byte> bytes) {
    sha256.update(bytes);
    if (with_git) git.update(bytes);
    if (with_blake3) blake3.update(bytes);
  }));
  result.sha256 = sha256.finish();
  result.size = size();
  if (!request_.sha256.empty() && result.sha256 != request_.sha256) return false;
  if (with_blake3 && hex(blake3.finish()) != request_.blake3) return false;
  return !with_git || git.finish() == request_.git_blob;
}

Error FileTransfer::digest_error() const {
  std::string announced = "SHA-256 " + request_.sha256;
  if (!request_.git_blob.empty()) announced = "git blob " + request_.git_blob;
  if (!request_.blake3.empty()) announced = "BLAKE3 " + request_.blake3;
  return net_error(kDigest, fmt::format("{}: the bytes are not those that were announced: SHA-256 "
                                        "{}, announced {}",
                                        request_.url.shown(), result.sha256, announced))
      .with("sha256", result.sha256);
}

}  // namespace cyb::net
