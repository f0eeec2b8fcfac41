// A place is free again before its work's thread is: so many may wait for one.
#include "server/pull_desk.hpp"

#include <utility>
#include <vector>

namespace cyb::server {

ApiResult<void> PullDesk::begin(const std::string& source, const std::stop_source& stop,
                                std::function<void()> work) {
  const ApiError closing{503, "The server is shutting down.", "shutting_down"};
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return refuse(closing);
    if (running_.contains(source)) {
      return refuse({409, "This source is being pulled already.", "pull_running", "source"});
    }
    if (running_.size() >= kMaxPulls) {
      return refuse({503, "Other pulls run; try again later.", "too_many_pulls"});
    }
    running_.emplace(source, stop);
  }
  const bool taken = threads_.post([this, source, work = std::move(work)] {
    work();
    const std::lock_guard lock(mutex_);
    running_.erase(source);
  });
  if (taken) return {};
  const std::lock_guard lock(mutex_);
  running_.erase(source);
  return refuse(closing);
}

void PullDesk::close() {
  std::vector<std::stop_source> stops;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [source, stop] : running_) stops.push_back(stop);
  }
  for (const std::stop_source& stop : stops) stop.request_stop();
}

void PullDesk::stop() {
  close();
  threads_.stop();
}

}  // namespace cyb::server
