// WorkerPool: a few threads for what would hold up the connections' own threads: JSON, templates,
// tokenising. Bounded; who comes when it is full is told so.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cyb::http {

class WorkerPool {
 public:
  WorkerPool(unsigned n_threads, std::size_t max_waiting);
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False: too many wait. `work` must not throw.
  bool post(std::function<void()> work);
  /// Ends what is being done, drops what waits; post() is refused from now on.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::size_t max_waiting_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace cyb::http
