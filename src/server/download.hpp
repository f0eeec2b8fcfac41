// Download: one answer that is a file's bytes. A piece is read when the client has taken the one
// before, so that a slow reader costs one piece of memory and no thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "server/byte_range.hpp"
#include "server/registry.hpp"
#include "server/service.hpp"

namespace cyb::server {

class Download : public std::enable_shared_from_this<Download> {
 public:
  /// Takes `fd`, which is open on the file that `file` describes.
  Download(Service& service, std::shared_ptr<Call> call, SharedFile file, int fd);
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Instead of start().
  void refuse(const ApiError& error);
  void start(const ByteRange& range, http::Response head);
  /// Ends it in the middle; the client sees that the body is not whole. From any thread.
  void cut_off(unsigned logged_status);
  /// The client has not taken the last piece for so long.
  bool waits_longer_than(std::chrono::steady_clock::duration time) const noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  void next();
  void step();
  bool read_piece(std::string& piece) const;
  void over(unsigned logged_status);

  Service& service_;
  std::shared_ptr<Call> call_;
  SharedFile file_;
  int fd_;
  std::atomic<Clock::rep> waits_since_{0};
  std::mutex mutex_;  // guards what follows and the exchange
  std::uint64_t at_ = 0, end_ = 0;
  unsigned status_ = 200;
  bool over_ = false;
};

}  // namespace cyb::server
