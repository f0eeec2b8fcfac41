// SchedulerCore: the scheduler's one thread. Who is admitted, what a run consists of, whose pages
// are taken where memory is short.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/prefix_cache.hpp"
#include "runtime/run_batch.hpp"
#include "runtime/scheduler.hpp"

namespace cyb {

/// A request with its answers, made where it was submitted.
struct LiveRequest {
  RequestId id = 0;
  GenerateRequest request;
  RequestEvents events;
  ContextCut prompt;
  std::vector<GenerateOptions> options;  // one for each answer; the runs point at them
  std::vector<AnswerRun> runs;
  std::vector<std::string> texts;                      // not reported yet
  std::vector<std::size_t> n_reported;                 // log-probabilities
  std::vector<std::optional<GenerateResult>> results;  // of answers that are over
  bool kept = false;                                   // its prompt is among the kept prefixes
  std::optional<Error> error;

  /// Errors: as Scheduler::submit() says of generate().
  static Result<std::unique_ptr<LiveRequest>> create(Engine& engine, GenerateRequest request,
                                                     RequestEvents events);
  void cancel() noexcept;
  /// on_done with the results or the error.
  void tell_end();
};

class SchedulerCore {
 public:
  SchedulerCore(Engine& engine, const SchedulerOptions& options)
      : engine_(engine),
        options_(options),
        prefixes_(engine, options.cached_prefixes),
        batch_(engine) {}

  void add(std::unique_ptr<LiveRequest> request);
  void cancel(RequestId id);
  void cancel_all();
  /// One round. False: nothing is left.
  bool turn();
  /// Those that are over; the caller tells their ends.
  std::vector<std::unique_ptr<LiveRequest>> take_done() { return std::exchange(done_, {}); }
  std::size_t n_waiting() const noexcept { return waiting_.size(); }
  void fill(SchedulerStats& stats) const;

 private:
  struct Slot {
    LiveRequest* request;
    AnswerRun* run;
    std::uint64_t admitted;  // counts up
    bool paused = false;     // gave its pages back; runs again when there is room
    bool growing() const noexcept { return !paused && run->begun() && !run->over(); }
  };
  using Waiting = std::list<std::unique_ptr<LiveRequest>>;

  void admit();
  Waiting::iterator next_waiting();
  std::size_t n_growing() const;
  bool has_room(std::uint64_t n_tokens);
  bool evict_prefix();
  void start(std::unique_ptr<LiveRequest> request, Sequence sequence);
  void resume_paused();
  void collect();
  void add_to_batch(Slot& slot, RunBudget most);
  void run_batch();
  void account();
  bool take_pages();
  void settle();
  void keep_prompt(LiveRequest& request);
  void report(LiveRequest& request);
  void finish(std::unique_ptr<LiveRequest> request);
  static void fail_request(LiveRequest& request, Error error);
  LiveRequest& owner(const AnswerRun& run);

  Engine& engine_;
  SchedulerOptions options_;
  PrefixCache prefixes_;
  RunBatch batch_;
  Waiting waiting_;
  std::vector<std::unique_ptr<LiveRequest>> active_, done_;
  std::vector<Slot> slots_;
  std::unordered_map<std::string, double> service_;  // tokens that a tenant was served
  std::size_t first_ = 0;  // of the slots that want a token: who is first in the next run
  std::uint64_t n_admitted_ = 0;
  SchedulerStats stats_;
};

}  // namespace cyb
