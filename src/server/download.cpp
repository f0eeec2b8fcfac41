// The connection owns the download while it waits for the client: when that is gone, so is this.
#include "server/download.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cyb::server {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

}  // namespace

Download::Download(Service& service, std::shared_ptr<Call> call, SharedFile file, int fd)
    : service_(service), call_(std::move(call)), file_(std::move(file)), fd_(fd) {}

Download::~Download() {
  ::close(fd_);
  service_.registry()->leave(this);
  if (!over_) service_.record(*call_, 499);
}

void Download::refuse(const ApiError& error) {
  over_ = true;
  service_.respond(*call_, error);
}

void Download::start(const ByteRange& range, http::Response head) {
  const std::lock_guard lock(mutex_);
  status_ = head.status;
  at_ = range.first;
  end_ = range.first + range.size;
  call_->exchange->begin_sized(std::move(head), range.size);
  if (call_->request().method == "HEAD") at_ = end_;
  if (at_ == end_) return over(status_);
  next();
}

/// The client got the end, or what is logged.
void Download::over(unsigned logged_status) {
  over_ = true;
  logged_status == status_ ? call_->exchange->end() : call_->exchange->cut_off();
  service_.record(*call_, logged_status);
}

void Download::cut_off(unsigned logged_status) {
  const std::lock_guard lock(mutex_);
  if (!over_) over(logged_status);
}

bool Download::waits_longer_than(Clock::duration time) const noexcept {
  const Clock::rep since = waits_since_.load();
  return since != 0 && Clock::now().time_since_epoch().count() - since > time.count();
}

void Download::next() {
  waits_since_ = Clock::now().time_since_epoch().count();
  call_->exchange->on_drained([self = shared_from_this()] {
    self->waits_since_ = 0;
    // Refused at the end of the server alone; then nobody holds the download any more.
    self->service_.registry()->read_piece([self] { self->step(); });
  });
}

/// False: the file is not what it was.
bool Download::read_piece(std::string& piece) const {
  piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, end_ - at_)));
  std::size_t n = 0;
  while (n < piece.size()) {
    const ssize_t got =
        ::pread(fd_, piece.data() + n, piece.size() - n, static_cast<off_t>(at_ + n));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    n += static_cast<std::size_t>(got);
  }
  return file_stamp(fd_) == file_.stamp;
}

void Download::step() {
  const std::lock_guard lock(mutex_);
  if (over_) return;
  std::string piece;
  if (!read_piece(piece)) return over(500);
  if (!call_->exchange->write(piece)) return;
  at_ += piece.size();
  at_ == end_ ? over(status_) : next();
}

}  // namespace cyb::server
