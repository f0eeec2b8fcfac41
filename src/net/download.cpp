// Threads take jobs from one list: a range of the first file that has one left, else the next file.
// A file is prepared and finished by one thread alone; ranges of it run side by side.
#include "net/download.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "net/net_error.hpp"
#include "net/transfer.hpp"

namespace cyb::net {
namespace {

constexpr unsigned kMaxRestarts = 2;

enum class Stage : std::uint8_t { kNew, kAlone, kFetching, kDone };

struct File {
  explicit File(const FileRequest& request) : transfer(request) {}
  FileTransfer transfer;
  Stage stage = Stage::kNew;
  std::vector<std::size_t> pending;  // ranges, the last one first
  unsigned in_flight = 0, restarts = 0;
  bool changed = false, refetched = false, mended = false;
};

struct Job {
  enum class Kind : std::uint8_t { kPrepare, kFetch, kFinish } kind;
  File* file;
  std::size_t chunk = 0;
};

class Downloader {
 public:
  Downloader(const std::vector<FileRequest>& requests, const DownloadOptions& options)
      : options_(options),
        context_{options, stop_.get_token(), [this](const std::string& text) { note(text); }} {
    for (const FileRequest& request : requests) files_.push_back(std::make_unique<File>(request));
  }

  Result<std::vector<FileResult>> run();

 private:
  void work();
  std::optional<Job> next();
  std::optional<Job> ready_job(File& file);
  Result<void> run_job(Connection& connection, const Job& job);
  void settle(const Job& job, Result<void> done);
  Result<void> prepare(Connection& connection, File& file);
  Result<bool> is_there(File& file);
  Result<void> check_space(const File& file);
  Result<void> finish(File& file);
  Result<void> begin_again(File& file);
  void note(const std::string& text);
  std::uint64_t total_bytes();

  const DownloadOptions& options_;
  std::stop_source stop_;
  TransferContext context_;
  std::vector<std::unique_ptr<File>> files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  std::vector<std::string> notes_;
  unsigned n_working_ = 0;
};

void Downloader::note(const std::string& text) {
  const std::lock_guard guard(mutex_);
  notes_.push_back(text);
}

std::optional<Job> Downloader::ready_job(File& file) {
  if (file.stage == Stage::kNew) {
    file.stage = Stage::kAlone;
    return Job{Job::Kind::kPrepare, &file};
  }
  if (file.stage != Stage::kFetching) return std::nullopt;
  if (!file.pending.empty() && !file.changed) {
    const std::size_t chunk = file.pending.back();
    file.pending.pop_back();
    ++file.in_flight;
    return Job{Job::Kind::kFetch, &file, chunk};
  }
  if (file.in_flight != 0) return std::nullopt;
  file.stage = Stage::kAlone;
  if (file.changed) return Job{Job::Kind::kPrepare, &file};
  return Job{Job::Kind::kFinish, &file};
}

std::optional<Job> Downloader::next() {
  std::unique_lock lock(mutex_);
  while (!error_ && !stop_.stop_requested()) {
    bool all_done = true;
    for (const auto& file : files_) {
      if (auto job = ready_job(*file)) return job;
      all_done = all_done && file->stage == Stage::kDone;
    }
    if (all_done) break;
    changed_.wait(lock);
  }
  return std::nullopt;
}

/// Whether the final file is there already, with the right bytes.
Result<bool> Downloader::is_there(File& file) {
  FileTransfer& transfer = file.transfer;
  const std::string& path = transfer.request().path;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info{};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  Result<bool> same = false;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (regular && transfer.has_digest() && transfer.request().size.value_or(size) == size) {
    transfer.set_size(size);
    same = transfer.check_digest(fd, context_);
  }
  ::close(fd);
  if (!same || *same || (options_.replace && regular)) return same;
  return fail(invalid_input(fmt::format(
      "{} is there {}: choose another folder, or remove it", path,
      transfer.has_digest() ? "with other bytes" : "and no digest says whether it is the same")));
}

Result<void> Downloader::check_space(const File& file) {
  std::uint64_t need = 0;
  for (const auto& other : files_) {
    const FileRequest& request = other->transfer.request();
    const std::uint64_t known = other.get() == &file ? other->transfer.size() : 0;
    const std::uint64_t size = request.size.value_or(known);
    struct stat info{};
    const bool whole = ::stat(request.path.c_str(), &info) == 0;
    const bool part = !whole && ::stat(part_path(request.path).c_str(), &info) == 0;
    const std::uint64_t have =
        whole ? size : (part ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0);
    need += size - std::min(size, have) + (options_.copy_follows ? size : 0);
  }
  const std::string& path = file.transfer.request().path;
  const std::string folder = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) return fail(io_errno(folder, "ask for space", errno));
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (need <= free) return {};
  return fail(
      net_error(kNoSpace,
                fmt::format("{}: not enough space: {} bytes needed{}, {} bytes free", folder, need,
                            options_.copy_follows ? " (with the import)" : "", free))
          .with("need_bytes", std::to_string(need))
          .with("free_bytes", std::to_string(free)));
}

Result<void> Downloader::prepare(Connection& connection, File& file) {
  FileTransfer& transfer = file.transfer;
  if (std::exchange(file.changed, false)) {
    if (++file.restarts > kMaxRestarts)
      return fail(net_error(kChanged, transfer.request().url.shown() +
                                          ": the file changes again and again on the server"));
    note(fmt::format("{} has changed on the server: beginning anew",
                     transfer.request().url.shown()));
    context_.done_bytes -= std::min(context_.done_bytes.load(), transfer.part()->done_bytes());
  }
  CYB_ASSIGN(const bool there, is_there(file));
  if (there) {
    transfer.result.already = true;
    context_.done_bytes += transfer.size();
    const std::lock_guard guard(mutex_);
    file.stage = Stage::kDone;
    return {};
  }
  if (transfer.request().size) CYB_TRY(check_space(file));
  CYB_TRY(transfer.probe(connection, context_));
  if (!transfer.request().size) CYB_TRY(check_space(file));
  CYB_TRY(transfer.open_part(context_));
  PartFile& part = *transfer.part();
  context_.done_bytes += part.done_bytes();
  if (part.done_bytes() > 0)
    note(fmt::format("going on with {}: {} of {} bytes are there", transfer.request().path,
                     part.done_bytes(), transfer.size()));
  const std::lock_guard guard(mutex_);
  file.pending.clear();
  if (!transfer.has_ranges()) file.pending.push_back(0);
  for (std::size_t i = part.n_chunks(); i-- > 0;)
    if (!part.has(i)) file.pending.push_back(i);
  file.stage = Stage::kFetching;
  return {};
}

/// All ranges once more.
Result<void> Downloader::begin_again(File& file) {
  PartFile& part = *file.transfer.part();
  CYB_TRY(part.restart());
  context_.done_bytes -= std::min(context_.done_bytes.load(), file.transfer.size());
  const std::lock_guard guard(mutex_);
  if (!file.transfer.has_ranges()) file.pending.push_back(0);
  for (std::size_t i = part.n_chunks(); i-- > 0;) file.pending.push_back(i);
  file.stage = Stage::kFetching;
  return {};
}

Result<void> Downloader::finish(File& file) {
  FileTransfer& transfer = file.transfer;
  PartFile& part = *transfer.part();
  CYB_ASSIGN(const bool right, transfer.check_digest(part.fd(), context_));
  if (right) {
    CYB_TRY(part.commit(transfer.size()));
    transfer.part().reset();
    const std::lock_guard guard(mutex_);
    file.stage = Stage::kDone;
    return {};
  }
  if (!std::exchange(file.mended, true)) {  // the disk's fault? then ranges alone are fetched again
    CYB_ASSIGN(const std::size_t dropped, part.drop_damaged(context_.stop));
    if (dropped > 0) {
      note(
          fmt::format("{}: {} damaged ranges are fetched again", transfer.request().path, dropped));
      const std::lock_guard guard(mutex_);
      for (std::size_t i = part.n_chunks(); i-- > 0;)
        if (!part.has(i)) file.pending.push_back(i);
      file.stage = Stage::kFetching;
      return {};
    }
  }
  if (!std::exchange(file.refetched, true)) {
    note(fmt::format("{}: the digest is not the announced one; fetching once more",
                     transfer.request().url.shown()));
    return begin_again(file);
  }
  part.discard();
  return fail(transfer.digest_error());
}

Result<void> Downloader::run_job(Connection& connection, const Job& job) {
  if (job.kind == Job::Kind::kPrepare) return prepare(connection, *job.file);
  if (job.kind == Job::Kind::kFinish) return finish(*job.file);
  if (!job.file->transfer.has_ranges())
    return job.file->transfer.fetch_stream(connection, context_);
  CYB_ASSIGN(const Fetched fetched,
             job.file->transfer.fetch_chunk(connection, context_, job.chunk));
  const std::lock_guard guard(mutex_);
  job.file->changed = job.file->changed || fetched == Fetched::kOtherFile;
  return {};
}

void Downloader::settle(const Job& job, Result<void> done) {
  const std::lock_guard guard(mutex_);
  if (job.kind == Job::Kind::kFetch) --job.file->in_flight;
  if (!done && !error_) error_ = std::move(done).error();
  if (error_) stop_.request_stop();
  changed_.notify_all();
}

void Downloader::work() {
  auto connection = Connection::create(options_.http);
  if (!connection) {
    const std::lock_guard guard(mutex_);
    if (!error_) error_ = std::move(connection).error();
    stop_.request_stop();
  } else {
    while (const auto job = next()) settle(*job, run_job(*connection, *job));
  }
  const std::lock_guard guard(mutex_);
  --n_working_;
  changed_.notify_all();
}

std::uint64_t Downloader::total_bytes() {
  std::uint64_t total = 0;
  for (const auto& file : files_)
    total += file->transfer.request().size.value_or(
        file->stage == Stage::kFetching ? file->transfer.size() : 0);
  return total;
}

Result<std::vector<FileResult>> Downloader::run() {
  const std::stop_callback forward(options_.stop, [this] { stop_.request_stop(); });
  std::vector<std::jthread> threads;
  n_working_ = options_.connections;
  for (unsigned i = 0; i < options_.connections; ++i) threads.emplace_back([this] { work(); });
  std::unique_lock lock(mutex_);
  while (n_working_ > 0) {
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (stop_.stop_requested()) changed_.notify_all();
    const std::vector<std::string> notes = std::exchange(notes_, {});
    std::string what;
    for (const auto& file : files_)
      if (what.empty() && file->stage == Stage::kFetching)
        what = file->transfer.request().path.substr(file->transfer.request().path.rfind('/') + 1);
    const std::uint64_t total = total_bytes();
    lock.unlock();
    for (const std::string& text : notes)
      if (options_.note) options_.note(text);
    if (options_.progress) options_.progress(context_.done_bytes, total, what);
    lock.lock();
  }
  lock.unlock();
  threads.clear();
  for (const std::string& text : notes_)
    if (options_.note) options_.note(text);
  if (options_.stop.stop_requested()) return fail(cancelled(0));
  if (error_) return fail(*std::move(error_));
  std::vector<FileResult> out;
  for (const auto& file : files_) {
    file->transfer.result.fetched_bytes = file->transfer.fetched_bytes;
    out.push_back(file->transfer.result);
  }
  return out;
}

}  // namespace

Result<std::vector<FileResult>> download(const std::vector<FileRequest>& files,
                                         const DownloadOptions& options) {
  return Downloader(files, options).run();
}

}  // namespace cyb::net
