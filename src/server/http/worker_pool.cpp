// First come, first served.
#include "server/http/worker_pool.hpp"

#include <utility>

namespace cyb::http {

WorkerPool::WorkerPool(unsigned n_threads, std::size_t max_waiting) : max_waiting_(max_waiting) {
  for (unsigned i = 0; i < n_threads; ++i) threads_.emplace_back([this] { run(); });
}

void WorkerPool::stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
  }
  wake_.notify_all();
  threads_.clear();
}

bool WorkerPool::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::run() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace cyb::http
