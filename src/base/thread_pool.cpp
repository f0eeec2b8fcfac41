// The round that is on has a number, odd while it runs; each share has the number of the last round
// in which it was taken. A thread takes the share of its own place first (its data is in that
// thread's cache), then those whose thread does not come. Who ends the last share of a round begins
// the next. Numbers wrap; they are compared by their difference.
#include "base/thread_pool.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
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
using Word = std::atomic<std::uint32_t>;

constexpr std::size_t kLine = 64;   // of the cache: spinning threads do not disturb others
constexpr int kPausesPerLook = 64;  // about a microsecond
constexpr std::uint32_t kRuns = 1;  // bit of a round's number

/// Waits until `word` differs from `old`; returns its new value (acquire).
std::uint32_t wait_change(const Word& word, std::uint32_t old, Clock::duration spin) noexcept {
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

}  // namespace

struct ThreadPool::Impl {
  struct alignas(kLine) Share {
    Word taken{0};  // the last round in which somebody took it
  };

  unsigned n = 1;
  Clock::duration spin{};
  RoundsTask task{};
  std::atomic<bool> stop{false};
  std::mutex one_caller;
  std::vector<Share> shares;
  std::vector<std::atomic<bool>> away;  // the thread of this place did not come the last time
  alignas(kLine) Word round{0};         // even: nothing runs
  alignas(kLine) Word done{0};          // shares of the round that are done
  alignas(kLine) std::vector<std::thread> workers;

  bool take(unsigned share, std::uint32_t now) noexcept {
    Word& taken = shares[share].taken;
    std::uint32_t last = taken.load(std::memory_order_relaxed);
    return static_cast<std::int32_t>(last - now) < 0 &&
           taken.compare_exchange_strong(last, now, std::memory_order_acq_rel);
  }

  void begin_or_end(std::uint32_t next) noexcept {
    // Between rounds this thread is alone.
    const bool more = task.begin(task.self);
    round.store(more ? next : next + kRuns, std::memory_order_release);
    round.notify_all();
  }

  /// A share taken in round `now`: the round stays on until it is done.
  void work(unsigned share, std::uint32_t now) noexcept {
    task.share(task.self, share, n);
    if (done.fetch_add(1, std::memory_order_acq_rel) + 1 != n) return;
    done.store(0, std::memory_order_relaxed);
    begin_or_end(now + 2);
  }

  /// Shares that nobody has taken, those of threads that just stayed away at once, others when
  /// `late`.
  void take_over(unsigned place, std::uint32_t now, bool late) noexcept {
    for (unsigned i = 1; i < n; ++i) {
      const unsigned share = (place + i) % n;
      if (!late && !away[share].load(std::memory_order_relaxed)) continue;
      if (!take(share, now)) continue;
      away[share].store(true, std::memory_order_relaxed);
      work(share, now);
    }
  }

  /// True when round `now` ends within about a microsecond.
  bool ends_soon(std::uint32_t now) const noexcept {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (round.load(std::memory_order_acquire) != now) return true;
      pause_cpu();
    }
    return false;
  }

  /// What a thread does in round `now`; returns the number of the next.
  std::uint32_t take_part(unsigned place, std::uint32_t now) noexcept {
    if (take(place, now)) {
      if (away[place].load(std::memory_order_relaxed))
        away[place].store(false, std::memory_order_relaxed);
      work(place, now);
    }
    take_over(place, now, false);
    if (!ends_soon(now)) take_over(place, now, true);
    return wait_change(round, now, spin);
  }

  void serve(unsigned place) noexcept {
    std::uint32_t now = 0;
    while (!stop.load(std::memory_order_relaxed))
      now = (now & kRuns) != 0 ? take_part(place, now) : wait_change(round, now, spin);
  }
};

ThreadPool::ThreadPool(unsigned n_threads) : impl_(std::make_unique<Impl>()) {
  impl_->n = n_threads == 0 ? default_threads() : n_threads;
  impl_->shares = std::vector<Impl::Share>(impl_->n);
  impl_->away = std::vector<std::atomic<bool>>(impl_->n);
  // With more threads than processors a spinning thread holds the processor that its partner needs.
  const bool crowded = impl_->n > usable_processors();
  impl_->spin = crowded ? std::chrono::microseconds(0) : std::chrono::microseconds(100);
  impl_->workers.reserve(impl_->n - 1);
  for (unsigned place = 1; place < impl_->n; ++place) {
    impl_->workers.emplace_back([impl = impl_.get(), place] { impl->serve(place); });
  }
}

ThreadPool::~ThreadPool() {
  impl_->stop.store(true, std::memory_order_relaxed);
  impl_->round.fetch_add(2, std::memory_order_release);
  impl_->round.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

unsigned ThreadPool::size() const noexcept {
  return impl_->n;
}

void ThreadPool::run(RoundsTask task) noexcept {
  const std::lock_guard lock(impl_->one_caller);
  if (impl_->n == 1) {
    while (task.begin(task.self)) task.share(task.self, 0, 1);
    return;
  }
  impl_->task = task;
  impl_->begin_or_end(impl_->round.load(std::memory_order_relaxed) + kRuns);
  std::uint32_t now = impl_->round.load(std::memory_order_acquire);
  while ((now & kRuns) != 0) now = impl_->take_part(0, now);
}

void ThreadPool::run(SpmdTask task) noexcept {
  struct Once {
    SpmdTask task;
    bool begun = false;
  } once{task};
  run(RoundsTask{[](void* self) noexcept {
                   auto* o = static_cast<Once*>(self);
                   return !std::exchange(o->begun, true);
                 },
                 [](void* self, unsigned share, unsigned n) noexcept {
                   const SpmdTask& t = static_cast<Once*>(self)->task;
                   t.call(t.self, share, n);
                 },
                 &once});
}

unsigned default_threads() noexcept {
  return usable_cores();
}

}  // namespace cyb
