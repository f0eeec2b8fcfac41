// The door of the shelf: who wants a model, who has one, who goes on waiting. Callbacks are called
// without the lock.
#include "runtime/model_shelf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "runtime/model_shelf_entry.hpp"

namespace cyb {

using Clock = std::chrono::steady_clock;

std::string_view shelf_state_name(ShelfState state) noexcept {
  static constexpr std::array<std::string_view, 4> kNames = {"unloaded", "loading", "loaded",
                                                             "unloading"};
  return kNames[static_cast<std::size_t>(state)];
}

SchedulerStats joined_stats(const SchedulerStats& past, SchedulerStats now) noexcept {
  static constexpr std::uint64_t SchedulerStats::* kCounters[] = {
      &SchedulerStats::submitted,     &SchedulerStats::finished,
      &SchedulerStats::cancelled,     &SchedulerStats::failed,
      &SchedulerStats::refused,       &SchedulerStats::prompt_tokens,
      &SchedulerStats::reused_tokens, &SchedulerStats::answer_tokens,
      &SchedulerStats::runs,          &SchedulerStats::run_tokens,
      &SchedulerStats::preempted,     &SchedulerStats::evicted_prefixes};
  for (const auto counter : kCounters) now.*counter += past.*counter;
  return now;
}

const std::string& ModelLease::name() const noexcept {
  return held_->entry->spec.name;
}

Scheduler& ModelLease::scheduler() const noexcept {
  return *held_->scheduler;
}

ModelShelf::ModelShelf(std::vector<ShelfModel> models, ShelfOptions options)
    : options_(std::move(options)) {
  for (ShelfModel& model : models) {
    entries_.push_back(std::make_unique<Entry>(Entry{.spec = std::move(model)}));
  }
}

void ModelShelf::start() {
  worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  teller_ = std::jthread([this](const std::stop_token& stop) { tell(stop); });
}

Result<std::unique_ptr<ModelShelf>> ModelShelf::create(std::vector<ShelfModel> models,
                                                       ShelfOptions options) {
  if (models.empty()) return fail(invalid_input("no models"));
  const auto count = [&](const std::string& name) {
    return std::ranges::count(models, name, &ShelfModel::name);
  };
  for (const ShelfModel& model : models) {
    if (model.name.empty()) return fail(invalid_input("a model without a name"));
    if (count(model.name) > 1) {
      return fail(invalid_input(fmt::format("two models have the name \"{}\"", model.name)));
    }
    if (!model.parent.empty() && count(model.parent) != 1) {
      return fail(invalid_input(fmt::format("there is no model \"{}\"", model.parent)));
    }
  }
  std::unique_ptr<ModelShelf> out(new ModelShelf(std::move(models), std::move(options)));
  out->start();
  return out;
}

std::unique_ptr<ModelShelf> ModelShelf::of(std::shared_ptr<Engine> engine, std::string name,
                                           SchedulerOptions options) {
  std::vector<ShelfModel> models(1);
  models[0].name = std::move(name);
  models[0].pinned = true;
  ShelfOptions shelf;
  shelf.scheduler = options;
  std::unique_ptr<ModelShelf> out(new ModelShelf(std::move(models), std::move(shelf)));
  Entry& entry = *out->entries_[0];
  entry.model = engine->shared_model();
  entry.facts = model_facts(*entry.model).value_or(ModelFacts{});
  out->take(entry, std::move(engine));
  out->start();
  return out;
}

ModelShelf::~ModelShelf() {
  drop_waiters();
  worker_ = {};  // asked to stop and joined
  teller_ = {};
  for (const auto& end : std::exchange(refused_, {})) end();
  // Ends of what still runs give their leases back here.
  for (const auto& entry : entries_) entry->scheduler.reset();
}

std::optional<std::size_t> ModelShelf::find(std::string_view name) const {
  if (name.empty()) return 0;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i]->spec.name == name) return i;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i]->spec.parent.empty() && entries_[i]->facts.model_id == name) return i;
  }
  return std::nullopt;
}

std::size_t ModelShelf::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

/// Entries stay where they are as long as the shelf lives.
ModelShelf::Entry& ModelShelf::entry(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return *entries_[index];
}

const std::string& ModelShelf::name(std::size_t index) const {
  return entry(index).spec.name;
}

/// Described first: what cannot be opened or planned is not there afterwards.
Result<std::size_t> ModelShelf::add(ShelfModel model, const std::stop_token& stop) {
  auto fresh = std::make_unique<Entry>(Entry{.spec = std::move(model)});
  // By its own open(): a model of its name may be loaded.
  CYB_ASSIGN(const std::shared_ptr<const Model> file,
             fresh->spec.open(stop, [](std::uint64_t, std::uint64_t) {}));
  CYB_TRY(describe(*fresh, file));
  const std::lock_guard lock(mutex_);
  const std::string& name = fresh->spec.name;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& known = *entries_[i];
    if (known.spec.name != name) continue;
    if (known.spec.parent.empty() && known.facts.model_id == fresh->facts.model_id) return i;
    return fail(Error(ErrorKind::kInvalidInput, "name_taken",
                      fmt::format("another model has the name \"{}\"", name)));
  }
  if (entries_.size() >= kMaxModels) {
    return fail(Error(ErrorKind::kInvalidInput, "too_many_models",
                      fmt::format("at most {} models", kMaxModels)));
  }
  entries_.push_back(std::move(fresh));
  return entries_.size() - 1;
}

ShelfView ModelShelf::view(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = *entries_[index];
  ShelfView out{.name = entry.spec.name,
                .parent = entry.spec.parent,
                .pinned = entry.spec.pinned,
                .state = entry.state,
                .percent = entry.percent,
                .memory_bytes = entry.need.own + entry.need.shared,
                .ctx_tokens = entry.ctx_tokens,
                .slots = options_.scheduler.max_running,
                .path = entry.path,
                .backend = entry.backend,
                .facts = entry.facts,
                .loads = entry.loads,
                .failed_loads = entry.failed_loads,
                .unloads = entry.unloads,
                .stats = entry.past};
  if (const auto end = end_of(entry)) {
    const auto left = std::max(*end, Clock::now()) - Clock::now();
    out.expires = std::chrono::system_clock::now() +
                  std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
  }
  if (entry.scheduler) out.stats = joined_stats(entry.past, entry.scheduler->stats());
  return out;
}

std::vector<ShelfView> ModelShelf::views() const {
  std::vector<ShelfView> out;
  for (std::size_t i = 0, n = size(); i < n; ++i) out.push_back(view(i));
  return out;
}

std::uint64_t ModelShelf::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_of(nullptr, [](const Entry&) { return true; });
}

ModelLease ModelShelf::lease(Entry& entry, std::optional<KeepAlive> keep) {
  ++entry.n_leases;
  entry.last_asked = Clock::now();
  if (keep) entry.keep = keep;
  ModelLease out;
  out.held_ = std::make_shared<const ModelLease::Held>(this, &entry, entry.scheduler.get());
  return out;
}

void ModelShelf::release(Entry& entry) noexcept {
  const std::lock_guard lock(mutex_);
  --entry.n_leases;
  entry.last_used = Clock::now();
  if (entry.busy()) return;
  changed_ = true;
  wake_.notify_all();
  idle_.notify_all();
}

std::optional<ModelLease> ModelShelf::try_acquire(std::size_t index,
                                                  std::optional<KeepAlive> keep) {
  const std::lock_guard lock(mutex_);
  if (closed_ || !entries_[index]->loaded()) return std::nullopt;
  return lease(*entries_[index], keep);
}

ModelShelf::WaitId ModelShelf::acquire(std::size_t index, std::optional<KeepAlive> keep,
                                       LeaseEvents events) {
  std::unique_lock lock(mutex_);
  Entry& entry = *entries_[index];
  const char* refused = closed_ ? "shutdown" : nullptr;
  if (!entry.loaded() && entry.waiters.size() >= options_.scheduler.max_waiting) refused = "queue";
  if (refused != nullptr || entry.loaded()) {
    Result<ModelLease> got = refused != nullptr ? Result<ModelLease>(fail(busy(refused)))
                                                : Result<ModelLease>(lease(entry, keep));
    lock.unlock();
    events.done(std::move(got));
    return 0;
  }
  const WaitId id = ++last_id_;
  entry.waiters.push_back({id, keep, std::move(events), Clock::now()});
  if (entry.state == ShelfState::kUnloaded && entry.waiters.size() == 1) wanted_.push_back(&entry);
  changed_ = true;
  wake_.notify_all();
  return id;
}

void ModelShelf::cancel(WaitId id) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    const auto waiter = std::ranges::find(entry->waiters, id, &Entry::Waiter::id);
    if (waiter != entry->waiters.end()) {
      refused_.push_back([done = std::move(waiter->events.done)] { done(fail(cancelled(0))); });
      entry->waiters.erase(waiter);
    }
    const auto leaver = std::ranges::find(entry->leavers, id, &Entry::Leaver::id);
    if (leaver != entry->leavers.end()) {
      refused_.push_back([done = std::move(leaver->done)] { done(fail(cancelled(0))); });
      entry->leavers.erase(leaver);
    }
  }
  tell_wake_.notify_all();
}

ModelShelf::WaitId ModelShelf::unload(std::size_t index, Unloaded done) {
  std::unique_lock lock(mutex_);
  Entry& entry = *entries_[index];
  const bool gone = entry.state == ShelfState::kUnloaded && entry.waiters.empty();
  if (closed_ || gone || entry.spec.pinned) {
    const bool pinned = entry.spec.pinned && !closed_;
    Result<void> result = {};
    if (closed_) result = fail(busy("shutdown"));
    if (pinned) result = fail(Error(ErrorKind::kInvalidInput, "model_pinned", "it is pinned"));
    lock.unlock();
    done(std::move(result));
    return 0;
  }
  const WaitId id = ++last_id_;
  entry.leaving = true;
  entry.leavers.push_back({id, std::move(done)});
  changed_ = true;
  wake_.notify_all();
  return id;
}

Result<void> ModelShelf::load(std::size_t index, std::stop_token stop) {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  std::future<Result<void>> outcome = promise->get_future();
  const std::stop_callback stopped(std::move(stop), [this] { loads_.request_stop(); });
  acquire(index, {}, {.done = [promise](Result<ModelLease> got) {
            promise->set_value(got ? Result<void>() : fail(std::move(got).error()));
          }});
  return outcome.get();
}

/// What waits is told `shutdown`, on the teller's thread or by the destructor.
void ModelShelf::drop_waiters() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  loads_.request_stop();
  for (const auto& entry : entries_) {
    for (Entry::Waiter& waiter : std::exchange(entry->waiters, {})) {
      refused_.push_back([done = std::move(waiter.events.done)] { done(fail(busy("shutdown"))); });
    }
    for (Entry::Leaver& leaver : std::exchange(entry->leavers, {})) {
      refused_.push_back([done = std::move(leaver.done)] { done(fail(busy("shutdown"))); });
    }
  }
  changed_ = true;
  wake_.notify_all();
  idle_.notify_all();
  tell_wake_.notify_all();
}

/// Once closed the worker takes no scheduler away.
bool ModelShelf::drain(const std::stop_token& stop) {
  drop_waiters();
  std::vector<Scheduler*> running;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : entries_) {
      if (entry->loaded()) running.push_back(entry->scheduler.get());
    }
  }
  return std::ranges::all_of(running, [&](Scheduler* one) { return one->drain(stop); });
}

void ModelShelf::tell(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    tell_wake_.wait_for(lock, stop, options_.tell, [this] { return !refused_.empty(); });
    std::vector<std::function<void()>> calls = std::exchange(refused_, {});
    const Clock::time_point late = Clock::now() - options_.tell;
    for (const auto& entry : entries_) {
      for (const Entry::Waiter& waiter : entry->waiters) {
        if (!waiter.events.waiting || waiter.since > late) continue;
        calls.push_back([call = waiter.events.waiting, name = entry->spec.name,
                         percent = entry->percent] { call(name, percent); });
      }
    }
    lock.unlock();
    for (const auto& call : calls) call();
    lock.lock();
  }
}

}  // namespace cyb
