// ThreadPool: work cut into shares, done in rounds on a fixed set of threads. A share is nobody's
// own: a thread that the system took away is not waited for before it has begun. The caller takes
// part. Waiting spins, then parks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cyb {

/// A type-erased, non-owning callable `void(unsigned share, unsigned n_shares)`; it must not throw.
struct SpmdTask {
  void (*call)(void* self, unsigned share, unsigned n_shares) noexcept;
  void* self;
};

/// Rounds that follow one another. `begin` is called before each by one thread alone and sees all
/// that was done before; false ends the work. Then `share` is called for each share, by any threads
/// at once. Neither may throw.
struct RoundsTask {
  bool (*begin)(void* self) noexcept;
  void (*share)(void* self, unsigned share, unsigned n_shares) noexcept;
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

  /// Threads, and shares of a round.
  unsigned size() const noexcept;

  /// Does all rounds and returns. One caller at a time, others wait. No allocation. A round costs
  /// about half a microsecond when nobody sleeps.
  void run(RoundsTask task) noexcept;
  /// One round.
  void run(SpmdTask task) noexcept;

  template <class F>
  void run(F& body) noexcept {
    run(SpmdTask{
        [](void* self, unsigned s, unsigned n) noexcept { (*static_cast<F*>(self))(s, n); },
        &body});
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Threads that `n_threads = 0` means here.
unsigned default_threads() noexcept;

}  // namespace cyb
