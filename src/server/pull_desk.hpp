// PullDesk: models that an admin has this server fetch (POST /v1/models/pull). One at a time of a
// source, a few at once; what is fetched, and from where, is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "runtime/model_shelf.hpp"
#include "server/api_error.hpp"
#include "server/http/worker_pool.hpp"

namespace cyb::server {

struct PullOrder {
  std::string source, name, sha256;  // "": the source's own name; no digest
  /// On the thread of the pull. May be empty.
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes, const std::string& what)>
      progress{};
  std::stop_token stop{};
};

/// Fetches what is ordered into the store and says how it is served; on a thread that may wait.
/// Errors with the code kPullNotAllowed: an origin that is not one of those that are allowed.
using Puller = std::function<Result<ShelfModel>(const PullOrder&)>;
inline constexpr const char* kPullNotAllowed = "PullNotAllowed";

/// Thread-safe.
class PullDesk {
 public:
  explicit PullDesk(Puller puller) : puller_(std::move(puller)) {}
  ~PullDesk() { stop(); }
  PullDesk(const PullDesk&) = delete;
  PullDesk& operator=(const PullDesk&) = delete;

  const Puller& puller() const noexcept { return puller_; }
  /// Runs `work` on a thread of the desk; `stop` ends it too where the desk closes. Errors: 409
  /// `pull_running`, 503 `too_many_pulls` or `shutting_down`.
  ApiResult<void> begin(const std::string& source, const std::stop_source& stop,
                        std::function<void()> work);
  /// Stops what runs and takes no more.
  void close();
  /// close(), and no thread is left.
  void stop();

  static constexpr unsigned kMaxPulls = 2;

 private:
  Puller puller_;
  std::mutex mutex_;                                 // guards what follows
  std::map<std::string, std::stop_source> running_;  // by source
  bool closed_ = false;
  http::WorkerPool threads_{kMaxPulls, kMaxPulls};
};

}  // namespace cyb::server
