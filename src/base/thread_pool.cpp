// ThreadPool: an epoch counter starts a region, a counter of running threads ends it, a phase
// counter is the barrier. Waiting spins for a bounded time, then parks on the same word (a futex on
// Linux through std::atomic::wait).
#include "base/thread_pool.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu_count.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cyb {
namespace {

inline void pause_cpu() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using Clock = std::chrono::steady_clock;

/// Waits until `word` differs from `old`; returns its new value (acquire).
std::uint32_t wait_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                          Clock::duration spin) noexcept {
  constexpr int kPausesPerLook = 64;
  const auto spin_some = [&] {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (word.load(std::memory_order_acquire) != old) return true;
      pause_cpu();
    }
    return false;
  };
  if (spin_some()) return word.load(std::memory_order_acquire);
  const auto deadline = Clock::now() + spin;
  while (Clock::now() < deadline) {
    if (spin_some()) return word.load(std::memory_order_acquire);
  }
  std::uint32_t now = word.load(std::memory_order_acquire);
  while (now == old) {
    word.wait(old, std::memory_order_acquire);
    now = word.load(std::memory_order_acquire);
  }
  return now;
}

constexpr std::size_t kLine =
    64;  // one cache line per shared word, so that spinning threads do not disturb others

}  // namespace

struct ThreadPool::Impl {
  unsigned n_threads = 1;
  Clock::duration spin{};
  SpmdTask task{};
  bool stop = false;
  std::mutex one_region;
  alignas(kLine) std::atomic<std::uint32_t> epoch{0};    // counts regions
  alignas(kLine) std::atomic<std::uint32_t> running{0};  // workers still inside the region
  alignas(kLine) std::atomic<std::uint32_t> arrived{0};  // at the barrier
  alignas(kLine) std::atomic<std::uint32_t> phase{0};    // counts barriers passed
  alignas(kLine) std::vector<std::thread> workers;

  void work(unsigned thread) noexcept {
    std::uint32_t seen = 0;
    while (true) {
      seen = wait_change(epoch, seen, spin);
      if (stop) return;
      task.call(task.self, thread, n_threads);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }

  void start_region() noexcept {
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
  }
};

ThreadPool::ThreadPool(unsigned n_threads) : impl_(std::make_unique<Impl>()) {
  impl_->n_threads = n_threads == 0 ? default_threads() : n_threads;
  // With more threads than processors a spinning thread holds the processor that its partner needs.
  const bool crowded = impl_->n_threads > usable_processors();
  impl_->spin = crowded ? std::chrono::microseconds(0) : std::chrono::microseconds(100);
  impl_->workers.reserve(impl_->n_threads - 1);
  for (unsigned t = 1; t < impl_->n_threads; ++t) {
    impl_->workers.emplace_back([impl = impl_.get(), t] { impl->work(t); });
  }
}

ThreadPool::~ThreadPool() {
  impl_->stop = true;
  impl_->start_region();
  for (std::thread& worker : impl_->workers) worker.join();
}

unsigned ThreadPool::size() const noexcept {
  return impl_->n_threads;
}

void ThreadPool::run(SpmdTask task) noexcept {
  const std::lock_guard lock(impl_->one_region);
  if (impl_->n_threads == 1) {
    task.call(task.self, 0, 1);
    return;
  }
  impl_->task = task;
  impl_->running.store(impl_->n_threads - 1, std::memory_order_relaxed);
  impl_->start_region();
  task.call(task.self, 0, impl_->n_threads);
  std::uint32_t left = impl_->running.load(std::memory_order_acquire);
  while (left != 0) left = wait_change(impl_->running, left, impl_->spin);
}

void ThreadPool::barrier() noexcept {
  if (impl_->n_threads == 1) return;
  const std::uint32_t old = impl_->phase.load(std::memory_order_acquire);
  if (impl_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == impl_->n_threads) {
    impl_->arrived.store(0, std::memory_order_relaxed);
    impl_->phase.store(old + 1, std::memory_order_release);
    impl_->phase.notify_all();
    return;
  }
  wait_change(impl_->phase, old, impl_->spin);
}

unsigned default_threads() noexcept {
  return usable_cores();
}

}  // namespace cyb
