// What a ModelShelf keeps of one model. Internal to the shelf's files.
#pragma once

#include "runtime/model_shelf.hpp"

namespace cyb {

struct ModelShelf::Entry {
  struct Waiter {
    WaitId id = 0;
    std::optional<KeepAlive> keep;
    LeaseEvents events;
    std::chrono::steady_clock::time_point since;
  };
  struct Leaver {
    WaitId id = 0;
    Unloaded done;
  };

  ShelfModel spec;
  ShelfState state = ShelfState::kUnloaded;
  std::unique_ptr<Scheduler> scheduler{};  // while loaded
  std::shared_ptr<const Model> model{};    // of the file, while loaded
  std::uint32_t n_leases = 0;
  std::optional<KeepAlive> keep{};  // the last that a request said since it was loaded
  std::chrono::steady_clock::time_point last_asked{}, last_used{};  // a lease taken; given back
  bool leaving = false;  // unload() was called
  std::vector<Waiter> waiters{};
  std::vector<Leaver> leavers{};
  Need need{};
  // For views.
  std::uint32_t percent = 0, ctx_tokens = 0;
  std::string path{}, backend{};
  ModelFacts facts{};
  std::uint64_t loads = 0, failed_loads = 0, unloads = 0;
  SchedulerStats past{};  // of the schedulers before this one

  bool loaded() const noexcept { return state == ShelfState::kLoaded; }
  bool busy() const noexcept { return n_leases > 0; }
  /// Entries with equal ones read one file.
  const std::string& file() const noexcept { return spec.parent.empty() ? spec.name : spec.parent; }
};

struct ModelLease::Held {
  ModelShelf* shelf;
  ModelShelf::Entry* entry;
  Scheduler* scheduler;
  Held(ModelShelf* s, ModelShelf::Entry* e, Scheduler* c) : shelf(s), entry(e), scheduler(c) {}
  ~Held() { shelf->release(*entry); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
};

/// Counters of both; what is now is of `now`.
SchedulerStats joined_stats(const SchedulerStats& past, SchedulerStats now) noexcept;

}  // namespace cyb
