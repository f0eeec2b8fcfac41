// ModelShelf: several models behind one door. A model is loaded when it is first asked for, stays
// while requests use it, and goes when its time is over or another needs its memory. See
// docs/serving.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/engine.hpp"
#include "runtime/model_facts.hpp"
#include "runtime/scheduler.hpp"

namespace cyb {

/// How long a model stays when nobody uses it; negative: for ever.
using KeepAlive = std::chrono::milliseconds;

struct ShelfModel {
  using Progress = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)>;
  std::string name;
  std::string parent{};  // the model whose file this one reads too; empty: a file of its own
  bool pinned = false;   // never unloaded once it is loaded
  /// Finds and maps the file, which may take an import. On the shelf's thread.
  std::function<Result<std::shared_ptr<const Model>>(const std::stop_token&, const Progress&)>
      open{};
  /// Adapters that are always on; may be empty.
  std::function<Result<std::vector<LoraUse>>(const Model&)> adapters{};
  EngineOptions engine{};              // `adapters`, `progress` and `stop` are the shelf's
  std::shared_ptr<Backend> backend{};  // null: the one that `engine` names
};

struct ShelfOptions {
  std::uint64_t memory_bytes = 0;  // of all loaded models, as Engine::plan() counts; 0: any
  KeepAlive keep_alive{-1};        // of models that no request said another time of
  SchedulerOptions scheduler{};    // of each; max_waiting bounds those that wait for a load too
  std::chrono::milliseconds tell{1000};  // between reports to one that waits
  /// One line of what is loaded, unloaded or failed; on the shelf's thread. May be empty.
  std::function<void(const std::string& line)> note{};
  std::function<void(const LoadProgress&)> progress{};  // of packing; may be empty
};

enum class ShelfState : std::uint8_t { kUnloaded, kLoading, kLoaded, kUnloading };
std::string_view shelf_state_name(ShelfState state) noexcept;

/// A model as it is now. What is not known before the first load is 0 or empty.
struct ShelfView {
  std::string name, parent;
  bool pinned = false;
  ShelfState state = ShelfState::kUnloaded;
  std::uint32_t percent = 0;       // of a load, as far as it tells
  std::uint64_t memory_bytes = 0;  // as Engine::plan() counts, without what models share with it
  std::uint32_t ctx_tokens = 0, slots = 0;
  std::string path, backend;
  ModelFacts facts;
  /// When it goes if nobody asks; nullopt: it stays, or is in use.
  std::optional<std::chrono::system_clock::time_point> expires{};
  std::uint64_t loads = 0, failed_loads = 0, unloads = 0;
  SchedulerStats stats;  // counters go on over loads
};

class ModelShelf;

/// The use of a loaded model, which stays as long as a copy of this lives. None may outlive the
/// shelf.
class ModelLease {
 public:
  explicit operator bool() const noexcept { return held_ != nullptr; }
  void reset() noexcept { held_.reset(); }
  const std::string& name() const noexcept;
  Scheduler& scheduler() const noexcept;
  Engine& engine() const noexcept { return scheduler().engine(); }

 private:
  friend class ModelShelf;
  struct Held;
  std::shared_ptr<const Held> held_;
};

/// Thread-safe. Loads and unloads happen on one thread, one after the other.
class ModelShelf {
 public:
  using WaitId = std::uint64_t;
  /// From the shelf's threads, or inside the call; they must not wait for anything.
  struct LeaseEvents {
    /// Exactly once. Errors: those of open and Engine::load; OutOfMemory with the code
    /// "model_too_large" (it can never fit) or "memory_in_use"; Busy{"queue"}, Busy{"shutdown"};
    /// Cancelled after cancel().
    std::function<void(Result<ModelLease>)> done{};
    /// Every ShelfOptions::tell of waiting, perhaps once more after `done`. May be empty.
    std::function<void(std::string_view name, std::uint32_t percent)> waiting{};
  };
  using Unloaded = std::function<void(Result<void>)>;

  /// Nothing is opened. Errors: InvalidInput for no models, a name twice, an unknown parent.
  static Result<std::unique_ptr<ModelShelf>> create(std::vector<ShelfModel> models,
                                                    ShelfOptions options);
  /// One model that is loaded already and stays.
  static std::unique_ptr<ModelShelf> of(std::shared_ptr<Engine> engine, std::string name,
                                        SchedulerOptions options);
  ~ModelShelf();  // cancels what is left
  ModelShelf(const ModelShelf&) = delete;
  ModelShelf& operator=(const ModelShelf&) = delete;

  std::size_t size() const;
  const std::string& name(std::size_t index) const;
  /// One more model, not loaded; where its name is that of a model with the same content id, that
  /// model. Opens the file and plans its memory, on this thread. Errors: InvalidInput with the code
  /// "name_taken" or "too_many_models"; as describe().
  Result<std::size_t> add(ShelfModel model, const std::stop_token& stop = {});
  static constexpr std::size_t kMaxModels = 256;  // that add() goes to
  /// By name, or by the content id of a file that was opened; "": the first.
  std::optional<std::size_t> find(std::string_view name) const;
  ShelfView view(std::size_t index) const;
  std::vector<ShelfView> views() const;
  const ShelfOptions& options() const noexcept { return options_; }
  std::uint64_t used_bytes() const;

  /// Where it is loaded. `keep`: how long it stays from now on after its last use.
  std::optional<ModelLease> try_acquire(std::size_t index, std::optional<KeepAlive> keep = {});
  /// Loads it first where it is not; 0 where `done` has been called already.
  WaitId acquire(std::size_t index, std::optional<KeepAlive> keep, LeaseEvents events);
  void cancel(WaitId id);
  /// Unloads it as soon as nobody uses it; `done` exactly once. Errors: InvalidInput with the code
  /// "model_pinned", Busy{"shutdown"}.
  WaitId unload(std::size_t index, Unloaded done);

  /// Opens the file and plans its memory, on this thread. Errors: as acquire(), but
  /// "memory_in_use".
  Result<void> describe(std::size_t index, const std::stop_token& stop = {});
  /// acquire() of a thread that may wait.
  Result<void> load(std::size_t index, std::stop_token stop = {});
  /// Loads nothing more, refuses what waits and comes, and returns when nothing is left; false when
  /// `stop` was asked for first.
  bool drain(const std::stop_token& stop = {});

 private:
  friend struct ModelLease::Held;
  struct Entry;
  struct Need {
    std::uint64_t own = 0, shared = 0;  // shared: mapped, once for all engines of a file
  };
  using Keeps = bool (*)(const Entry&);

  ModelShelf(std::vector<ShelfModel> models, ShelfOptions options);
  void start();
  Entry& entry(std::size_t index) const;
  Result<void> describe(Entry& entry, const std::shared_ptr<const Model>& model);
  ModelLease lease(Entry& entry, std::optional<KeepAlive> keep);
  void release(Entry& entry) noexcept;
  void drop_waiters();
  void take(Entry& entry, std::shared_ptr<Engine> engine);

  // The thread that loads and unloads.
  void work(const std::stop_token& stop);
  std::optional<std::chrono::steady_clock::time_point> end_of(const Entry& entry) const;
  Entry* next_expired(std::chrono::steady_clock::time_point& next) const;
  void unload_now(Entry& entry, std::unique_lock<std::mutex>& lock);
  void load_now(Entry& entry, std::unique_lock<std::mutex>& lock);
  Result<void> load_entry(Entry& entry);
  Result<std::shared_ptr<const Model>> open_file(Entry& entry, const std::stop_token& stop);
  Result<EngineOptions> engine_options(Entry& entry, const Model& model);
  Result<void> plan(Entry& entry, const std::shared_ptr<const Model>& model,
                    const EngineOptions& options);
  Result<void> make_room(Entry& entry);
  std::uint64_t bytes_of(const Entry* with, Keeps keeps) const;
  Result<void> check_largest(const Entry& entry) const;
  void note(const std::string& line) const;

  // The thread that tells those who wait.
  void tell(const std::stop_token& stop);

  ShelfOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::stop_source loads_;  // stopped: no load goes on

  mutable std::mutex mutex_;  // guards what follows, and the entries
  std::condition_variable_any wake_, tell_wake_, idle_;
  std::deque<Entry*> wanted_;
  std::vector<std::function<void()>> refused_;  // ends of cancelled ones, to be told
  WaitId last_id_ = 0;
  bool closed_ = false, changed_ = false;  // changed: the worker has something to look at
  std::jthread worker_, teller_;           // last: they use all of the above
};

}  // namespace cyb
