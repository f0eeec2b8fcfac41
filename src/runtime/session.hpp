// Session: one conversation on an engine. One thread at a time: a second user gets Busy. A call
// that fails or is cancelled leaves the position at the last completed forward, and the session can
// go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "runtime/engine.hpp"

namespace cyb {

struct PrefillOptions {
  std::stop_token stop{};  // looked at between chunks and inside each
  std::function<void(std::uint32_t done, std::uint32_t total)>
      progress{};  // after each chunk; may be empty
};

struct PrefillReport {
  std::uint32_t n_reused = 0;  // tokens whose K and V were in the cache already
  std::uint32_t n_computed = 0;
};

class Session {
 public:
  explicit Session(std::shared_ptr<Engine> engine);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Engine& engine() const noexcept { return *engine_; }
  const std::shared_ptr<Engine>& shared_engine() const noexcept { return engine_; }

  /// Exclusive use for several calls in a row (a whole answer). Movable; ends when destroyed.
  class Use {
   public:
    Use(Use&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (session_ != nullptr) session_->busy_.store(false, std::memory_order_release);
    }

    Engine& engine() const noexcept { return *session_->engine_; }
    std::span<const std::int32_t> tokens() const noexcept { return session_->sequence_.tokens(); }
    std::uint32_t position() const noexcept { return session_->sequence_.position(); }
    /// Makes the session hold exactly `ids` (1 or more) with logits of the last: keeps the longest
    /// common prefix of what it holds, rolls the rest back, computes what is missing in chunks.
    /// Warm and cold give equal bits. Errors: ContextOverflow (before anything changed),
    /// InvalidInput, Cancelled, what the engine says.
    Result<PrefillReport> prefill(std::span<const std::int32_t> ids,
                                  const PrefillOptions& options = {});
    /// Adds `ids` after the position, in chunks. Errors as prefill.
    Result<void> append(std::span<const std::int32_t> ids, const PrefillOptions& options = {});
    /// Adds one token and hands its logits [V] to `sink` without a copy; last_logits() is void
    /// afterwards. Allocates nothing, but where the rope depends on the length.
    Result<void> advance(std::int32_t id, const LogitsSink& sink, std::stop_token stop = {});
    /// The same for several tokens in one run, with the logits of each, [ids, V]. Errors:
    /// InvalidInput for more than Engine::max_outputs().
    Result<void> advance(std::span<const std::int32_t> ids, const LogitsSink& sink,
                         std::stop_token stop = {});
    /// For runs that join several sequences: Engine::step() itself. last_logits() are gone.
    Sequence& sequence() noexcept {
      session_->logits_.clear();
      return session_->sequence_;
    }
    const Sequence& sequence() const noexcept { return session_->sequence_; }
    /// Logits [V] after the last token of prefill() or append(); empty when there are none.
    std::span<const float> last_logits() const noexcept { return session_->logits_; }
    /// Rolls back to `position` <= position(). Errors: InvalidInput.
    Result<void> truncate(std::uint32_t position);

   private:
    friend class Session;
    bool must_restart(std::uint64_t length) const;
    Result<void> restart(std::span<const std::int32_t> ids, const PrefillOptions& options);
    Result<void> advance_one_by_one(std::span<const std::int32_t> ids, const LogitsSink& sink,
                                    const std::stop_token& stop);
    explicit Use(Session& session) noexcept : session_(&session) {}
    Session* session_;
  };
  /// Errors: Busy{"session"}.
  Result<Use> use();

  // The same as single calls.
  Result<PrefillReport> prefill(std::span<const std::int32_t> ids,
                                const PrefillOptions& options = {});
  Result<void> append(std::span<const std::int32_t> ids, const PrefillOptions& options = {});
  Result<void> truncate(std::uint32_t position);
  Result<void> reset();
  /// Copies: safe to call while no run is in progress. Errors: Busy.
  Result<std::vector<std::int32_t>> tokens();
  Result<std::vector<float>> logits();

 private:
  std::shared_ptr<Engine> engine_;
  Sequence sequence_;
  std::vector<float> logits_;  // [V] or empty
  std::atomic<bool> busy_{false};
};

}  // namespace cyb
