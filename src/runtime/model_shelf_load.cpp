// The thread that loads and unloads. An engine is destroyed here alone: its scheduler's thread may
// be the one that gives the last lease back, and cannot end itself.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "runtime/model_shelf_entry.hpp"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::hours kLongest{1};  // between looks at what expires
/// An answer that is out gives its model back a moment later.
constexpr std::chrono::milliseconds kGrace{250};

std::uint32_t percent_of(std::uint64_t done, std::uint64_t total) noexcept {
  if (total == 0) return 0;
  return static_cast<std::uint32_t>(100.0 * static_cast<double>(std::min(done, total)) /
                                    static_cast<double>(total));
}

}  // namespace

void ModelShelf::note(const std::string& line) const {
  if (options_.note) options_.note(line);
}

std::optional<Clock::time_point> ModelShelf::end_of(const Entry& entry) const {
  if (!entry.loaded() || entry.busy()) return std::nullopt;
  if (entry.leaving) return entry.last_used;
  const KeepAlive keep = entry.keep.value_or(options_.keep_alive);
  if (entry.spec.pinned || keep < KeepAlive::zero()) return std::nullopt;
  return entry.last_used + keep;
}

ModelShelf::Entry* ModelShelf::next_expired(Clock::time_point& next) const {
  const Clock::time_point now = Clock::now();
  next = now + kLongest;
  for (const auto& entry : entries_) {
    const auto end = end_of(*entry);
    if (end && *end <= now) return entry.get();
    if (end) next = std::min(next, *end);
  }
  return nullptr;
}

void ModelShelf::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Clock::time_point next = Clock::now() + kLongest;
    if (Entry* expired = closed_ ? nullptr : next_expired(next)) {
      unload_now(*expired, lock);
      continue;
    }
    if (!wanted_.empty()) {
      Entry& entry = *wanted_.front();
      wanted_.pop_front();
      // Those who waited may have gone.
      if (!closed_ && !entry.waiters.empty() && !entry.loaded()) load_now(entry, lock);
      continue;
    }
    wake_.wait_until(lock, stop, next, [this] { return std::exchange(changed_, false); });
  }
}

void ModelShelf::unload_now(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state = ShelfState::kUnloading;
  std::unique_ptr<Scheduler> scheduler = std::move(entry.scheduler);
  std::shared_ptr<const Model> model = std::move(entry.model);
  SchedulerStats stats = joined_stats(entry.past, scheduler->stats());
  stats.waiting = stats.running = stats.kept_prefixes = stats.pages_used = stats.pages_total = 0;
  entry.past = stats;
  lock.unlock();
  scheduler.reset();
  model.reset();
  note("unloaded " + entry.spec.name);
  lock.lock();
  entry.state = ShelfState::kUnloaded;
  entry.percent = 0;
  entry.leaving = false;
  entry.keep.reset();
  ++entry.unloads;
  if (!entry.waiters.empty()) wanted_.push_back(&entry);
  const auto leavers = std::exchange(entry.leavers, {});
  lock.unlock();
  for (const Entry::Leaver& leaver : leavers) leaver.done({});
  lock.lock();
}

void ModelShelf::load_now(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state = ShelfState::kLoading;
  lock.unlock();
  const Clock::time_point began = Clock::now();
  const Result<void> outcome = load_entry(entry);
  note(
      outcome
          ? fmt::format(
                "loaded {} in {} ms", entry.spec.name,
                std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count())
          : fmt::format("could not load {}: {}", entry.spec.name, outcome.error().text()));
  lock.lock();
  ++(outcome ? entry.loads : entry.failed_loads);
  if (!outcome) entry.state = ShelfState::kUnloaded;
  std::vector<std::function<void()>> calls;
  for (Entry::Waiter& waiter : std::exchange(entry.waiters, {})) {
    Result<ModelLease> got = outcome ? Result<ModelLease>(lease(entry, waiter.keep))
                                     : Result<ModelLease>(fail(Error(outcome.error())));
    calls.push_back([done = std::move(waiter.events.done), got = std::move(got)]() mutable {
      done(std::move(got));
    });
  }
  if (!outcome) {
    entry.leaving = false;
    for (Entry::Leaver& leaver : std::exchange(entry.leavers, {})) {
      calls.push_back([done = std::move(leaver.done)] { done({}); });
    }
  }
  lock.unlock();
  for (const auto& call : calls) call();
  calls.clear();
  lock.lock();
}

Result<std::shared_ptr<const Model>> ModelShelf::open_file(Entry& entry,
                                                           const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& other : entries_) {
      if (other->model != nullptr && other->file() == entry.file()) return other->model;
    }
  }
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(mutex_);
    entry.percent = percent_of(done, total);
  };
  return entry.spec.open(stop, progress);
}

Result<EngineOptions> ModelShelf::engine_options(Entry& entry, const Model& model) {
  CYB_ASSIGN(ModelFacts facts, model_facts(model));
  EngineOptions out = entry.spec.engine;
  if (entry.spec.adapters) {
    CYB_ASSIGN(out.adapters, entry.spec.adapters(model));
  }
  out.stop = loads_.get_token();
  out.progress = [&](const LoadProgress& progress) {
    if (options_.progress) options_.progress(progress);
    const std::lock_guard lock(mutex_);
    entry.percent = percent_of(progress.bytes_done, progress.bytes_total);
  };
  const std::lock_guard lock(mutex_);
  if (facts.model_id == entry.facts.model_id) facts.stop_strings = entry.facts.stop_strings;
  entry.facts = std::move(facts);
  return out;
}

Result<void> ModelShelf::plan(Entry& entry, const std::shared_ptr<const Model>& model,
                              const EngineOptions& options) {
  const auto made = entry.spec.backend ? Engine::plan(model, entry.spec.backend, options)
                                       : Engine::plan(model, options);
  if (!made) return fail(Error(made.error()));
  const MemoryPools& bytes = made->bytes;
  const std::lock_guard lock(mutex_);
  entry.need.shared = bytes.weights_mapped + bytes.weights_packed;
  entry.need.own = bytes.total() - bytes.process - entry.need.shared;
  entry.ctx_tokens = made->ctx_tokens;
  entry.path = path_name(made->path);
  entry.backend = made->backend;
  return {};
}

Result<void> ModelShelf::describe(std::size_t index, const std::stop_token& stop) {
  Entry& known = entry(index);
  CYB_ASSIGN(const std::shared_ptr<const Model> model, open_file(known, stop));
  return describe(known, model);
}

Result<void> ModelShelf::describe(Entry& entry, const std::shared_ptr<const Model>& model) {
  CYB_ASSIGN(const EngineOptions options, engine_options(entry, *model));
  CYB_TRY(plan(entry, model, options));
  const std::lock_guard lock(mutex_);
  entry.percent = 0;
  return check_largest(entry);
}

Result<void> ModelShelf::load_entry(Entry& entry) {
  CYB_ASSIGN(std::shared_ptr<const Model> model, open_file(entry, loads_.get_token()));
  CYB_ASSIGN(const EngineOptions options, engine_options(entry, *model));
  if (options_.memory_bytes != 0) {
    CYB_TRY(plan(entry, model, options));
    CYB_TRY(make_room(entry));
  }
  auto loaded = entry.spec.backend ? Engine::load(model, entry.spec.backend, options)
                                   : Engine::load(model, options);
  if (!loaded) return fail(std::move(loaded).error());
  for (const std::string& line : (*loaded)->report().notes) note("warning: " + line);
  const std::lock_guard lock(mutex_);
  entry.model = std::move(model);
  take(entry, *std::move(loaded));
  return {};
}

/// The entry is loaded with it.
void ModelShelf::take(Entry& entry, std::shared_ptr<Engine> engine) {
  if (options_.memory_bytes == 0) {
    MemoryPools bytes = engine->memory();
    bytes.kv = engine->report().kv_bytes;
    entry.need.shared = bytes.weights_mapped + bytes.weights_packed;
    entry.need.own = bytes.total() - bytes.process - entry.need.shared;
  }
  entry.facts.stop_strings = engine->stop_strings();
  entry.ctx_tokens = engine->ctx_tokens();
  entry.path = path_name(engine->path());
  entry.backend = engine->backend().name();
  entry.last_used = Clock::now();
  entry.percent = 100;
  entry.scheduler = std::make_unique<Scheduler>(std::move(engine), options_.scheduler);
  entry.state = ShelfState::kLoaded;
}

/// Of the loaded models that `keeps` takes and of `with`: a file's mapped weights count once.
std::uint64_t ModelShelf::bytes_of(const Entry* with, Keeps keeps) const {
  std::uint64_t own = 0;
  std::map<std::string_view, std::uint64_t> shared;
  for (const auto& entry : entries_) {
    if (entry.get() != with && !(entry->loaded() && keeps(*entry))) continue;
    own += entry->need.own;
    std::uint64_t& most = shared[entry->file()];
    most = std::max(most, entry->need.shared);
  }
  for (const auto& [file, bytes] : shared) own += bytes;
  return own;
}

Result<void> ModelShelf::check_largest(const Entry& entry) const {
  if (options_.memory_bytes == 0) return {};
  const std::uint64_t most = bytes_of(&entry, [](const Entry& other) { return other.spec.pinned; });
  if (most <= options_.memory_bytes) return {};
  const std::uint64_t alone = entry.need.own + entry.need.shared;
  return fail(
      Error(ErrorKind::kOutOfMemory, "model_too_large",
            fmt::format(
                "{} takes {} bytes{}; all models together may take {} (a shorter context or fewer "
                "slots need less)",
                entry.spec.name, alone,
                most > alone ? fmt::format(" beside {} of pinned models", most - alone) : "",
                options_.memory_bytes)));
}

Result<void> ModelShelf::make_room(Entry& entry) {
  std::unique_lock lock(mutex_);
  CYB_TRY(check_largest(entry));
  const auto stays = [](const Entry& other) { return other.spec.pinned || other.busy(); };
  const Clock::time_point end = Clock::now() + kGrace;
  while (bytes_of(&entry, [](const Entry&) { return true; }) > options_.memory_bytes) {
    if (closed_) return fail(busy("shutdown"));
    const std::uint64_t held = bytes_of(&entry, stays);
    if (held > options_.memory_bytes) {
      if (idle_.wait_until(lock, end) == std::cv_status::no_timeout) continue;
      return fail(Error(ErrorKind::kOutOfMemory, "memory_in_use",
                        fmt::format("{} and the models in use take {} bytes of {}", entry.spec.name,
                                    held, options_.memory_bytes)));
    }
    Entry* oldest = nullptr;
    for (const auto& other : entries_) {
      if (!other->loaded() || stays(*other)) continue;
      if (oldest == nullptr || other->last_asked < oldest->last_asked) oldest = other.get();
    }
    unload_now(*oldest, lock);
  }
  return {};
}

}  // namespace cyb
