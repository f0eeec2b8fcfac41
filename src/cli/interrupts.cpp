// sigwait in a thread; std::stop_source is not async-signal-safe, a plain thread may use it.
#include "cli/interrupts.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "base/file.hpp"

namespace cyb::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTogether{200};
/// There is a terminal that controls the program.
bool has_terminal() noexcept {
  const int fd = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

constexpr int kExitWithoutWork = 5;  // cancelled, as a command that was asked would say

}  // namespace

struct Interrupts::Impl {
  std::mutex mutex;
  std::stop_source source;  // of the work at hand
  bool asked = false;       // it was asked to stop
  Clock::time_point asked_at{};
  std::function<void()> cleanup, hangup;
  const bool had_terminal = has_terminal();
  std::atomic<bool> terminating{false}, finished{false};
  std::array<int, 2> wake{-1, -1};
  sigset_t signals{};
  std::thread thread;

  /// True: SIGHUP was no end.
  bool on_hangup() {
    const std::lock_guard lock(mutex);
    if (!hangup || (had_terminal && !has_terminal())) return false;
    hangup();
    return true;
  }

  void on_signal(int signal) {
    if (signal == SIGHUP && on_hangup()) return;
    if (signal != SIGINT) terminating.store(true);
    const std::lock_guard lock(mutex);
    if (asked && Clock::now() - asked_at < kTogether) return;
    if (asked || !source.stop_possible()) {
      remove_temporary_files();
      if (cleanup) cleanup();
      ::_exit(asked ? 128 + signal : kExitWithoutWork);
    }
    asked = true;
    asked_at = Clock::now();
    source.request_stop();
    const char byte = 1;
    // A full pipe already wakes whoever waits.
    [[maybe_unused]] const ssize_t n = ::write(wake[1], &byte, 1);
  }

  void wait() {
    while (true) {
      int signal = 0;
      if (::sigwait(&signals, &signal) != 0) continue;
      if (finished.load()) return;
      on_signal(signal);
    }
  }
};

Interrupts::Interrupts() : impl_(std::make_unique<Impl>()) {
  ::signal(SIGPIPE, SIG_IGN);  // a write reports EPIPE instead
  ::signal(SIGXFSZ, SIG_IGN);  // and EFBIG
  sigemptyset(&impl_->signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&impl_->signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &impl_->signals, nullptr);
  if (::pipe2(impl_->wake.data(), O_CLOEXEC | O_NONBLOCK) != 0) impl_->wake = {-1, -1};
  impl_->source = std::stop_source(std::nostopstate);
  impl_->thread = std::thread([impl = impl_.get()] { impl->wait(); });
}

Interrupts::~Interrupts() {
  impl_->finished.store(true);
  ::pthread_kill(impl_->thread.native_handle(), SIGINT);
  impl_->thread.join();
  for (const int fd : impl_->wake) {
    if (fd >= 0) ::close(fd);
  }
}

std::stop_token Interrupts::begin() {
  const std::lock_guard lock(impl_->mutex);
  impl_->source = std::stop_source();
  impl_->asked = false;
  return impl_->source.get_token();
}

void Interrupts::stop() {
  const std::lock_guard lock(impl_->mutex);
  impl_->source.request_stop();
}

void Interrupts::set_cleanup(std::function<void()> cleanup) {
  const std::lock_guard lock(impl_->mutex);
  impl_->cleanup = std::move(cleanup);
}

void Interrupts::on_hangup(std::function<void()> callback) {
  const std::lock_guard lock(impl_->mutex);
  impl_->hangup = std::move(callback);
}

bool Interrupts::terminating() const noexcept {
  return impl_->terminating.load();
}

int Interrupts::wake_fd() const noexcept {
  return impl_->wake[0];
}

void Interrupts::clear_wake() noexcept {
  std::array<char, 64> bytes;
  while (::read(impl_->wake[0], bytes.data(), bytes.size()) > 0) {
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->asked = false;
}

}  // namespace cyb::cli
