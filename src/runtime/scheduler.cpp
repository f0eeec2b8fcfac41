// The door to the core: a queue with a lock, and the thread that works it off.
#include "runtime/scheduler.hpp"

#include <utility>

#include "runtime/scheduler_core.hpp"

namespace cyb {

Scheduler::Scheduler(std::shared_ptr<Engine> engine, SchedulerOptions options, bool threaded)
    : engine_(std::move(engine)),
      options_(options),
      core_(std::make_unique<SchedulerCore>(*engine_, options_)) {
  if (threaded) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  for (auto& request : inbox_) core_->add(std::move(request));
  core_->cancel_all();
  for (const auto& request : core_->take_done()) request->tell_end();
}

Result<RequestId> Scheduler::submit(GenerateRequest request, RequestEvents events) {
  if (request.n_answers == 0) return fail(invalid_input("no answers are asked for"));
  if (request.n_answers > options_.max_running) {
    return fail(invalid_input(std::to_string(request.n_answers) + " answers; at most " +
                              std::to_string(options_.max_running) + " grow at the same time"));
  }
  CYB_ASSIGN(std::unique_ptr<LiveRequest> live,
             LiveRequest::create(*engine_, std::move(request), std::move(events)));
  const std::lock_guard lock(mutex_);
  const auto refuse = [this](const char* what) {
    ++stats_.refused;
    return fail(busy(what));
  };
  if (closed_) return refuse("shutdown");
  if (n_waiting_ >= options_.max_waiting) return refuse("queue");
  std::uint32_t& own = per_tenant_[live->request.tenant];
  if (options_.max_per_tenant != 0 && own >= options_.max_per_tenant) return refuse("tenant");
  ++own;
  ++n_open_;
  ++n_waiting_;
  ++stats_.submitted;
  const RequestId id = live->id = ++last_id_;
  inbox_.push_back(std::move(live));
  wake_.notify_one();
  return id;
}

void Scheduler::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  cancels_.push_back(id);
  wake_.notify_one();
}

SchedulerStats Scheduler::stats() const {
  const std::lock_guard lock(mutex_);
  SchedulerStats out = stats_;
  out.waiting = n_waiting_;
  return out;
}

bool Scheduler::turn() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& request : inbox_) core_->add(std::move(request));
    inbox_.clear();
    for (const RequestId id : cancels_) core_->cancel(id);
    cancels_.clear();
  }
  const bool busy = core_->turn();
  const std::vector<std::unique_ptr<LiveRequest>> done = core_->take_done();
  {
    const std::lock_guard lock(mutex_);
    core_->fill(stats_);
    n_waiting_ = static_cast<std::uint32_t>(inbox_.size() + core_->n_waiting());
    n_open_ -= static_cast<std::uint32_t>(done.size());
    for (const auto& request : done) {
      const auto own = per_tenant_.find(request->request.tenant);
      if (--own->second == 0) per_tenant_.erase(own);
    }
  }
  for (const auto& request : done) request->tell_end();
  idle_.notify_all();
  return busy;
}

void Scheduler::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (turn()) continue;
    std::unique_lock lock(mutex_);
    wake_.wait(lock, stop, [this] { return !inbox_.empty() || !cancels_.empty(); });
  }
}

bool Scheduler::drain(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  return idle_.wait(lock, std::move(stop), [this] { return n_open_ == 0; });
}

}  // namespace cyb
