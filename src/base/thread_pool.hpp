// ThreadPool: SPMD regions on a fixed set of threads with barriers that spin, then park. The caller
// is thread 0.
#pragma once

#include <cstdint>
#include <memory>

namespace cyb {

/// A type-erased, non-owning callable `void(unsigned thread, unsigned n_threads)`; it must not
/// throw.
struct SpmdTask {
  void (*call)(void* self, unsigned thread, unsigned n_threads) noexcept;
  void* self;
};

class ThreadPool {
 public:
  /// n_threads >= 1, counting the caller. n_threads = 0: one per physical core that the process may
  /// use.
  explicit ThreadPool(unsigned n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const noexcept;

  /// Runs the task on all threads and returns when all have finished. One region at a time. No
  /// allocation.
  void run(SpmdTask task) noexcept;

  /// Inside a region: waits until all threads of the region arrive. About 0.3 microseconds when
  /// nobody sleeps.
  void barrier() noexcept;

  template <class F>
  void run(F& body) noexcept {
    run(SpmdTask{
        [](void* self, unsigned t, unsigned n) noexcept { (*static_cast<F*>(self))(t, n); },
        &body});
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Threads that `n_threads = 0` means here.
unsigned default_threads() noexcept;

}  // namespace cyb
