// Scheduler: requests of many users on one engine, joined in every run. Requests enter and leave
// between runs, and what each is answered never depends on the others. See docs/serving.md.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/engine.hpp"
#include "runtime/generation.hpp"

namespace cyb {

struct SchedulerOptions {
  std::uint32_t max_running = 8;       // answers that grow at the same time
  std::uint32_t max_waiting = 256;     // requests; one more is Busy{"queue"}
  std::uint32_t max_per_tenant = 0;    // running and waiting requests of one tenant; 0: no limit
  std::uint32_t prefill_tokens = 128;  // of prompts in one run where others wait for a token
  std::uint32_t cached_prefixes = 64;  // sequences kept for prompts to come; 0: none
};

struct GenerateRequest {
  std::vector<std::int32_t> prompt{};
  GenerateOptions options{};    // `cancel` and `prefill_progress` are not looked at
  std::uint32_t n_answers = 1;  // rows options.row ..
  std::string tenant{};         // whose prefixes it may use; shares are fair between tenants
  std::int32_t priority = 0;    // higher ones are admitted first
};

/// What an answer has grown by.
struct AnswerDelta {
  std::uint32_t index = 0;                           // GenerateResult::index
  std::string_view text{};                           // whole UTF-8; empty while it is held back
  std::span<const TokenReport> tokens{};             // where log-probabilities are asked for
  std::uint32_t n_tokens = 0;                        // of the answer so far
  bool over = false;                                 // nothing follows for this index
  FinishReason finish_reason = FinishReason::kStop;  // where it is over
};

/// Called from the scheduler's thread: they must not wait for anything.
struct RequestEvents {
  std::function<void(const AnswerDelta&)> on_delta{};
  /// Exactly once, after all deltas. A cancelled request has results with kCancelled.
  std::function<void(Result<std::vector<GenerateResult>>)> on_done{};
};

using RequestId = std::uint64_t;

struct SchedulerStats {
  std::uint64_t submitted = 0, finished = 0, cancelled = 0, failed = 0, refused = 0;
  std::uint64_t prompt_tokens = 0;         // of prompts that were admitted
  std::uint64_t reused_tokens = 0;         // of them, found in kept prefixes
  std::uint64_t answer_tokens = 0;         // of answers
  std::uint64_t runs = 0, run_tokens = 0;  // of the engine
  std::uint64_t preempted = 0;             // answers that gave their pages back for a while
  std::uint64_t evicted_prefixes = 0;
  std::uint32_t waiting = 0;  // requests
  std::uint32_t running = 0;  // answers
  std::uint32_t kept_prefixes = 0;
  std::uint32_t pages_used = 0, pages_total = 0;
};

class SchedulerCore;
struct LiveRequest;

/// Thread-safe.
class Scheduler {
 public:
  /// `threaded` false: nothing runs but in turn(), for tests.
  explicit Scheduler(std::shared_ptr<Engine> engine, SchedulerOptions options = {},
                     bool threaded = true);
  ~Scheduler();  // cancels what is left
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Engine& engine() const noexcept { return *engine_; }
  const SchedulerOptions& options() const noexcept { return options_; }

  /// Errors, before anything is queued: as generate(); InvalidInput for no answers or more than
  /// max_running, Busy{"queue"}, Busy{"tenant"}, Busy{"shutdown"}.
  Result<RequestId> submit(GenerateRequest request, RequestEvents events);
  /// Ends it before the next run; unknown ids are ignored.
  void cancel(RequestId id);
  SchedulerStats stats() const;

  /// Refuses what comes and returns when nothing is left, or false when `stop` was asked for first.
  bool drain(std::stop_token stop = {});
  /// One round: admits, runs, reports. False: there was nothing to do.
  bool turn();

 private:
  void work(const std::stop_token& stop);

  std::shared_ptr<Engine> engine_;
  SchedulerOptions options_;
  std::unique_ptr<SchedulerCore> core_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any wake_, idle_;
  std::vector<std::unique_ptr<LiveRequest>> inbox_;
  std::vector<RequestId> cancels_;
  std::unordered_map<std::string, std::uint32_t> per_tenant_;
  SchedulerStats stats_;
  RequestId last_id_ = 0;
  std::uint32_t n_open_ = 0;     // submitted and not done
  std::uint32_t n_waiting_ = 0;  // not admitted
  bool closed_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace cyb
